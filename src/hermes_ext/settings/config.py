"""The `extensions:` section of `$HERMES_HOME/config.yaml`.

Nothing that stands in the file raises: what is wrong becomes a `Problem`, and a wrong value never
loosens a rule. So a malformed value counts as its default; a malformed `disabled`, `observe`,
`overridable` or `project_may_set` names nobody; and the names in an `on` or `required` that is no
list (quoted, with commas, a mapping) are taken as they are meant, with a problem. A file that
cannot be read at all leaves the defaults: the global directory is loaded, nothing bundled is on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._text import canonical_name, is_same_name
from hermes_ext._values import Factory, field, frozen
from hermes_ext.hooks.settings import DEFAULT, PREFIX, Setting
from hermes_ext.hosts.default import default_host
from hermes_ext.settings.effects_settings import Tell, read_effects
from hermes_ext.settings.names import HOOKS, RESERVED_KEYS, name_fault
from hermes_ext.settings.yaml_nodes import (
    Unreadable,
    described,
    is_null,
    items_of,
    kind_of,
    line_of,
    node_at,
    plain,
    read_document,
    repeated_keys,
    text_of,
    value_of,
)
from hermes_ext.turns.notices import Notify

OFF_SWITCH = "HERMES_EXT_OFF"

_NEAR = 0.85  # as `extension` and `extentions` are to `extensions`
_RESERVED = {canonical_name(key): key for key in RESERVED_KEYS}
_LENIENT = frozenset({"on", "required"})
_EFFECTS = {
    "on": "is on",
    "disabled": "is disabled",
    "required": "is required",
    "overridable": "may be replaced",
    "observe": "is only observed",
    "project_may_set": "may be set by projects",
}
_SETTING_HINT = 'Write it as in "workflow-guard.plan_path"'

AskWithoutHuman = Literal["block", "approve"]
ConfineMinimum = Literal["namespaces", "landlock"]
ConfineUnavailable = Literal["block", "ask"]
Log = Literal["decisions", "steps", "payloads", "off"]


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@frozen(kw_only=True)
class SettingsFile:
    """A file that has settings of extensions, each under the extension's name.

    settings: one extension's each, of any shape: `merged_settings` checks them.
    """

    settings: Mapping[str, Any] = _NOTHING
    _section: Node | None = field(default=None, repr=False, eq=False)
    _spelled: Mapping[str, str] = field(
        default=Factory(lambda self: {canonical_name(e): e for e in self.settings}, True),
        init=False,
        repr=False,
        eq=False,
    )

    def settings_of(self, name: str) -> Any:
        """The settings of this extension as written, None where there are none."""
        return self.settings.get(self.written(name) or "")

    def written(self, name: str) -> str | None:
        """How the file spells the name of this extension, or None."""
        return self._spelled.get(canonical_name(name))

    def line_of(self, *path: str | int) -> int | None:
        """The line of the value at this path below the names, or of what holds it."""
        return line_of(node_at(self._section, path))


@frozen
class ExtensionsConfig(SettingsFile):
    """What the section says, with defaults for what it leaves out or gets wrong.

    Names stand as they are written; compare them with the methods, which know that
    `Ping_Island` and `ping-island` are one. `disabled_hooks` and `priorities` have canonical names.

    global_dir_given: whether the file names a directory itself. disabled_hooks: hooks turned
    off, by extension. priorities: by `name` or `name:hook`. commands: what the user says of
    commands, and read_only_tools: of tools, for `hermes_ext.effects`. state_days: days that a
    conversation's state is kept. confine_minimum: the weakest confinement that counts as one.
    confine_unavailable: what becomes of a call that cannot be confined. readable: False where the
    file exists and could not be read or parsed.
    """

    file: Path
    global_dir: Path
    global_dir_given: bool = False
    enabled: bool = True
    project_local: bool = True
    on: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    disabled_hooks: Mapping[str, frozenset[str]] = _NOTHING
    required: tuple[str, ...] = ()
    overridable: tuple[str, ...] = ()
    project_may_set: tuple[str, ...] = ()
    observe: tuple[str, ...] = ()
    ask_without_human: AskWithoutHuman = "block"
    confine_minimum: ConfineMinimum = "namespaces"
    confine_unavailable: ConfineUnavailable = "block"
    log: Log = "decisions"
    notify: Notify = "blocks"
    reload: bool = True
    state_days: float = 30
    priorities: Mapping[str, int] = _NOTHING
    commands: Mapping[str, Any] = _NOTHING
    read_only_tools: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    readable: bool = True
    root: Node | None = field(default=None, repr=False, eq=False)

    @property
    def has_section(self) -> bool:
        """Whether the file has the section, and it is not empty."""
        return self._section is not None

    def is_on(self, name: str) -> bool:
        """Whether `on` names it."""
        return _names(self.on, name)

    def is_disabled(self, name: str) -> bool:
        """Whether `disabled` names it as a whole. Disabled wins over on."""
        return _names(self.disabled, name)

    def is_required(self, name: str) -> bool:
        """Whether `required` names it."""
        return _names(self.required, name)

    def is_overridable(self, name: str) -> bool:
        """Whether `overridable` names it."""
        return _names(self.overridable, name)

    def is_observed(self, name: str) -> bool:
        """Whether `observe` names it."""
        return _names(self.observe, name)

    def project_may_set_path(self, name: str, path: Sequence[str]) -> bool:
        """Whether `project_may_set` lets a project set this setting of the extension.

        An entry is a name, then keys behind dots: it opens what is at that place and below it. The
        name ends at the first dot: of an extension called `my.guard` it is written `my-guard`.
        """
        target = (canonical_name(name), *path)
        return any(_opens(entry, target) for entry in self.project_may_set)

    def hooks_off(self, name: str) -> frozenset[str]:
        """The hooks that `disabled: ["name:hook"]` turns off."""
        return self.disabled_hooks.get(canonical_name(name), frozenset())

    def priority_of(self, name: str, hook: str) -> int | None:
        """The priority that the user gave its handlers of this hook, or None."""
        canonical = canonical_name(name)
        return self.priorities.get(f"{canonical}:{hook}", self.priorities.get(canonical))

    def own_setting(self, key: str) -> Setting:
        """The value of one of the package's own keys, such as `required`, and where it is from."""
        value = getattr(self, key)
        node = node_at(self._section, (key,))
        line = None if node is self._section else line_of(node)
        if line is None:
            return Setting(f"{PREFIX}{key}", value, DEFAULT)
        return Setting(f"{PREFIX}{key}", value, f"{self.file.name}:{line}", f"{self.file}:{line}")

    def line_of_name(self, key: str, name: str) -> int | None:
        """The line where what stands under `key` names this extension, alone or with more."""
        node = node_at(self._section, (key,))
        items: list[Node] = []
        if isinstance(node, SequenceNode):
            items = node.value
        elif isinstance(node, MappingNode):
            items = [item for item, _ in node.value]
        behind = "." if key == "project_may_set" else ":"
        found: dict[bool, Node] = {}
        for item in items:
            first, more, _ = str(item.value).partition(behind)
            if canonical_name(first.strip()) == canonical_name(name):
                found.setdefault(bool(more), item)
        return line_of(found.get(False, found.get(True, node)))


def switched_off() -> bool:
    """Whether `$HERMES_EXT_OFF` is set (to anything but 0, false, no or nothing)."""
    return os.environ.get(OFF_SWITCH, "").strip().lower() not in {"", "0", "false", "no", "off"}


def read_config(home: Path, file: Path | None = None) -> ExtensionsConfig:
    """Read the host's configuration. Raises nothing about its content.

    file: read this one, as if it were the home's.
    """
    file = file or home / default_host().config_file
    document = read_document(file)
    config = ExtensionsConfig(file, home / "extensions")
    if document.fault is not None:
        return ExtensionsConfig(file, config.global_dir, problems=(document.fault,), readable=False)
    if is_null(document.root):
        return config
    return _Reading(file, home).config(document.root)


class _Reading:
    """One pass over the section that gathers values and problems."""

    def __init__(self, file: Path, home: Path) -> None:
        self.file = file
        self.home = home
        self.problems: list[Problem] = []
        self.values: dict[str, Any] = {"global_dir": home / "extensions"}
        self.settings = SettingsByName()

    def config(self, root: Node | None) -> ExtensionsConfig:
        section = self._section(root)
        if section is not None:
            self.problems += repeated_keys(self.file, section, "extensions")
            # A dict, because of a repeated key the last one counts, also where that one is null.
            for key, (key_node, value) in {k: (n, v) for k, n, v in items_of(section)}.items():
                self._key(key, key_node, value, section)
        return ExtensionsConfig(
            self.file,
            **self.values,
            settings=MappingProxyType(self.settings.written),
            problems=tuple(self.problems),
            root=root,
            section=section,
        )

    def problem(
        self, node: Node | int | None, key: str, message: str, hint: str | None = None
    ) -> None:
        path = f"extensions.{key}" if key else "extensions"
        line = node if isinstance(node, int) else line_of(node)
        self.problems.append(Problem(self.file, line, path, message, hint))

    def unexpected(self, node: Node, key: str, wanted: str, hint: str | None = None) -> None:
        self.problem(node, key, f"found {described(node)}, expected {wanted}", hint)

    def _section(self, root: Node | None) -> MappingNode | None:
        if not isinstance(root, MappingNode):
            assert root is not None
            told = f"found {described(root)}, expected a mapping of sections"
            self.problems.append(Problem(self.file, line_of(root), "", told))
            self.values["readable"] = False
            return None
        found = [(key, value) for name, key, value in items_of(root) if name == "extensions"]
        if not found:
            self._tell_misspelled(root)
            return None
        if len(found) > 1:
            told = f"given twice (first in line {line_of(found[0][0])}); the last one counts"
            self.problem(found[-1][0], "", told)
        node: Node = found[-1][1]
        if is_null(node):
            return None
        if isinstance(node, MappingNode):
            return node
        self.unexpected(node, "", "a mapping; the defaults are used", _section_hint(node))
        return None

    def _tell_misspelled(self, root: MappingNode) -> None:
        from difflib import SequenceMatcher  # late: most files have the section

        for name, key, value in items_of(root):
            if not isinstance(value, MappingNode):
                continue
            near = SequenceMatcher(None, canonical_name(name), "extensions")
            if near.real_quick_ratio() > _NEAR and near.ratio() > _NEAR:
                told = "is a section that nothing reads; the defaults are used"
                hint = 'Did you mean "extensions"?'
                self.problems.append(Problem(self.file, line_of(key), name, told, hint))

    def _key(self, key: str, key_node: Node, value: Node, section: MappingNode) -> None:
        name = _respelled(key, key_node)
        if name != key and any(other == name for other, _, _ in items_of(section)):
            told = "YAML reads a bare `on` as true: both keys are `on`; the one written so counts"
            self.problem(key_node, key, told, f"Move its names to `{name}` and take it away")
            return
        if name in RESERVED_KEYS:
            if not is_null(value):
                self._reserved(name, value)
            return
        self.settings.add(key, key_node, value, self.problem)

    def _reserved(self, key: str, node: Node) -> None:
        if key in _EFFECTS:
            self.values[key] = self._list(key, node)
        elif key in {"enabled", "project_local", "reload"}:
            self._bool(key, node)
        elif key == "global_dir":
            self._global_dir(node)
        elif key == "ask_without_human":
            self._choice(key, node, {"block": "block", "approve": "approve"})
        elif key == "confine_minimum":
            self._choice(key, node, {"namespaces": "namespaces", "landlock": "landlock"})
        elif key == "confine_unavailable":
            self._choice(key, node, {"block": "block", "ask": "ask"})
        elif key == "log":
            self._switch(key, node, "decisions", "steps", "payloads")
        elif key == "notify":
            self._switch(key, node, "blocks", "all")
        elif key == "state_days":
            self._state_days(node)
        elif key == "priorities":
            self._priorities(node)
        elif key == "effects":
            self.values |= read_effects(node, self.problem)

    def _bool(self, key: str, node: Node) -> None:
        value = value_of(node, "bool")
        if isinstance(value, bool):
            self.values[key] = value
            return
        hint = "Take the quotes away" if _reads_as_bool(node) else None
        self.unexpected(node, key, "true or false; taken as true", hint)

    def _choice(self, key: str, node: Node, words: Mapping[str, str]) -> None:
        word = str(node.value).lower() if isinstance(node, ScalarNode) else ""
        if word in words:
            self.values[key] = words[word]
            return
        known = list(dict.fromkeys(words.values()))
        wanted = f"{', '.join(known[:-1])} or {known[-1]}; taken as {known[0]}"
        self.unexpected(node, key, wanted, did_you_mean(word, known))

    def _switch(self, key: str, node: Node, *words: str) -> None:
        """One of some words, the first of which is the default, or `off`."""
        # YAML 1.1 reads a bare `off` as false, and a program that saves the file writes that.
        self._choice(key, node, {word: word for word in (*words, "off")} | {"false": "off"})

    def _state_days(self, node: Node) -> None:
        value = value_of(node, "int", "float")
        if isinstance(value, int | float) and math.isfinite(value) and value > 0:
            self.values["state_days"] = value
            return
        self.unexpected(node, "state_days", "a number of days above 0; taken as 30")

    def _global_dir(self, node: Node) -> None:
        text = text_of(node)
        if not text or "\0" in text:
            self.unexpected(node, "global_dir", "the path of a directory; not used")
            return
        self.values["global_dir"] = self.home / os.path.expanduser(text)
        self.values["global_dir_given"] = True

    def _priorities(self, node: Node) -> None:
        if not isinstance(node, MappingNode):
            self.unexpected(node, "priorities", "a mapping of names to numbers; not used")
            return
        found: dict[str, int] = {}
        spelled: dict[str, str] = {}
        for key, key_node, value in items_of(node):
            name = self._target("priorities", f"priorities.{key}", key_node, key)
            if name is None:
                continue
            if spelled.setdefault(name, key) != key:
                told = f"the same extension as `{spelled[name]}`; the last one counts"
                self.problem(key_node, f"priorities.{key}", told)
            number = value_of(value, "int")
            if number is not None:
                found[name] = number
            else:
                self.unexpected(value, f"priorities.{key}", "a whole number; not used")
        self.values["priorities"] = MappingProxyType(found)

    def _list(self, key: str, node: Node) -> tuple[str, ...]:
        if isinstance(node, SequenceNode):
            return self._items(key, node)
        what = "settings" if key == "project_may_set" else "names"
        names = _meant(node) if key in _LENIENT else ()
        told = f"taken as {', '.join(names)}" if names else f"so nothing {_EFFECTS[key]}"
        self.unexpected(node, key, f"a list of {what}; {told}", _list_hint(key, node, names))
        return names

    def _items(self, key: str, node: SequenceNode) -> tuple[str, ...]:
        names: dict[str, str] = {}
        hooks: dict[str, frozenset[str]] = {}
        for index, item in enumerate(node.value):
            path = f"{key}[{index}]"
            text = text_of(item)
            if text is None:
                what = "a setting" if key == "project_may_set" else "a name"
                self.unexpected(item, path, f"{what}; not used", _item_hint(key, item))
            elif key == "project_may_set":
                if self._is_setting(path, item, text):
                    names.setdefault(text, text)
            elif (name := self._target(key, path, item, text)) is not None:
                extension, _, hook = name.partition(":")
                if hook:
                    hooks[extension] = hooks.get(extension, frozenset()) | {hook}
                else:
                    names.setdefault(name, text.strip())
        if hooks:
            self.values["disabled_hooks"] = MappingProxyType(hooks)
        return tuple(names.values())

    def _is_setting(self, path: str, node: Node, text: str) -> bool:
        """Whether it is `name`, `name.key…` or such with `.*` at its end; tells where not."""
        name, *keys = text.split(".")
        fault = name_fault(name) if "*" not in name else "it has a `*`"
        if fault:
            told = f"{text!r} names no extension: {fault}; not used"
        elif any(not key.strip() for key in keys):
            told = f"{text!r} has an empty key; not used"
        elif any("*" in key for key in keys[:-1]) or ("*" in text and keys[-1] != "*"):
            told = f"{text!r} has a `*` that is not its last part; not used"
        elif any("[" in key for key in keys):
            told = f"{text!r} names an item of a list, which is set as a whole; not used"
        else:
            return True
        self.problem(node, path, told, _SETTING_HINT)
        return False

    def _target(self, key: str, path: str, node: Node, text: str) -> str | None:
        """The canonical `name` or `name:hook`, or None and a problem."""
        name, colon, hook = text.strip().partition(":")
        fault = name_fault(name)
        if fault:
            self.problem(node, path, f"{text!r} names no extension: {fault}; not used")
        elif colon and key not in {"disabled", "priorities"}:
            told = f"{text!r} names one hook, expected the name of an extension; not used"
            self.problem(node, path, told)
        elif colon and hook not in HOOKS:
            hint = did_you_mean(hook, HOOKS) or f"Hooks: {', '.join(HOOKS)}"
            self.problem(node, path, f"no hook is called {hook!r}; not used", hint)
        else:
            return canonical_name(name) + colon + hook
        return None


class SettingsByName:
    """The settings of extensions as they are read; of two spellings of a name the last counts."""

    def __init__(self) -> None:
        self.written: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        self._count = [0]

    def add(self, key: str, key_node: Node, value: Node, tell: Tell) -> None:
        """Take what stands under the name of an extension, or tell why not."""
        canonical = canonical_name(key)
        fault = name_fault(key) if isinstance(key_node, ScalarNode) else "it is not text"
        if canonical in _RESERVED:
            told = "is not how this key is written; not used"
            tell(key_node, key, told, f"Write `{_RESERVED[canonical]}`")
            return
        if fault:
            tell(key_node, key, f"is neither a key nor the name of an extension: {fault}", None)
            return
        old = self._spelled.get(canonical)
        if old is not None:
            if old != key:
                told = f"the same extension as `{old}`; the last one counts"
                tell(key_node, key, told, None)
            del self.written[old]
        self._spelled[canonical] = key
        try:
            self.written[key] = plain(value, self._count)
        except Unreadable as error:
            line = error.line or line_of(value)
            told = f"cannot be read: {error}"
            tell(line, key, told, None)
            # Of no shape that settings can have, so that the extension is refused, not run bare.
            self.written[key] = Unreadable(told, line)


def _names(written: tuple[str, ...], name: str) -> bool:
    return any(is_same_name(each, name) for each in written)


def _opens(entry: str, target: tuple[str, ...]) -> bool:
    name, *keys = entry.split(".")
    place = (canonical_name(name), *keys)
    if place[-1] == "*":
        return len(target) >= len(place) and target[: len(place) - 1] == place[:-1]
    return target[: len(place)] == place


def _respelled(key: str, node: Node) -> str:
    # A bare `on:` is the boolean true to YAML 1.1; saved anew by a program it is `true:`.
    return "on" if kind_of(node) == "bool" and key.lower() == "true" else key


def _reads_as_bool(node: Node) -> bool:
    text = text_of(node)
    return text is not None and text.strip().lower() in {"true", "false", "yes", "no", "on", "off"}


def _section_hint(node: Node) -> str | None:
    if kind_of(node) == "bool":
        return "Write `extensions: {enabled: false}` to turn everything off"
    if isinstance(node, SequenceNode):
        return "Write `extensions: {on: [...]}` to turn extensions on"
    return None


def _meant(node: Node) -> tuple[str, ...]:
    """The names that somebody means who writes no list: `a`, `"[a, b]"`, `a, b`, `{a: true}`."""
    text = text_of(node)
    found: list[str] = []
    if text is not None:
        found = [part.strip(" \t\n'\"") for part in text.strip(" \t\n[]").split(",")]
    elif isinstance(node, MappingNode):
        found = [name for name, _, value in items_of(node) if value_of(value, "bool") is not False]
    return tuple(name for name in dict.fromkeys(found) if not name_fault(name))


def _list_hint(key: str, node: Node, names: Sequence[str] = ()) -> str:
    if key == "project_may_set":
        return f'Write it as in `{key}: ["workflow-guard.plan_path"]`'
    text = text_of(node)
    if text is not None and text.lstrip().startswith("["):
        return "Take the quotes around the list away"
    names = names or _meant(node)
    return f"Write `{key}: [{', '.join(names) or 'name'}]`"


def _item_hint(key: str, node: Node) -> str | None:
    if key == "project_may_set":
        return _SETTING_HINT
    if isinstance(node, MappingNode) and (names := _meant(node)):
        # `- other: before_llm_call` is a mapping to YAML
        hook = next((text_of(value) for name, _, value in items_of(node) if name == names[0]), None)
        return f'If it is one hook of an extension, write "{names[0]}:{hook}"' if hook else None
    if not isinstance(node, ScalarNode) or is_null(node):
        return None
    return f'YAML reads {node.value} as a {kind_of(node)}; if it is a name, write "{node.value}"'
