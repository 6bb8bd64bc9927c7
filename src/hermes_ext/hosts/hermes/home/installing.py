"""Puts the package into a Hermes home, so that Hermes loads it, and takes it out again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaml.nodes import MappingNode, Node, SequenceNode

from hermes_ext._distributions import entry_points_fault, installed_points
from hermes_ext._text import printable
from hermes_ext._values import evolve, frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.hosts.hermes.facts.host_package import HostPackage, host_package
from hermes_ext.hosts.hermes.home.sentinel import NAME as SENTINEL
from hermes_ext.hosts.hermes.home.sentinel import (
    SentinelState,
    remove_sentinel,
    sentinel_folder,
    sentinel_state,
    write_sentinel,
)
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.yaml_nodes import items_of, node_at, read_document, text_of

if TYPE_CHECKING:
    from hermes_ext.settings.editing import Change, ListEdit

PLUGIN = "hermes-ext"
PLUGIN_GROUP = "hermes_agent.plugins"


@frozen
class PluginOff:
    """Why Hermes does not load the plugin. key: "" for the file as a whole. hint: None where
    `install` mends it.
    """

    file: Path
    line: int | None
    key: str
    told: str
    hint: str | None = None

    def __str__(self) -> str:
        if self.hint is None and self.key:
            return f"{self.key} in {printable(self.file)} {self.told}"
        place = printable(self.file) + ("" if self.line is None else f":{self.line}")
        told = ": ".join(part for part in (place, self.key, self.told) if part)
        return told if self.hint is None else f"{told}. {self.hint}"


@frozen
class Installation:
    """What `install` or `uninstall` did and found.

    file: the `config.yaml` behind links. changes: lists that were changed, () for none.
    folder: where extensions go; made: whether it was made now. sentinel: where the sentinel is,
    None where there is none; sentinel_changed: whether it was written or removed now.
    hermes: what brings Hermes to this Python, None if nothing does. notes: what the person should
    know, most urgent first.
    """

    home: Path
    file: Path
    changes: tuple[Change, ...]
    folder: Path
    made: bool
    hermes: HostPackage | None
    notes: tuple[str, ...] = ()
    sentinel: Path | None = None
    sentinel_changed: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.changes) or self.made or self.sentinel_changed

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values; paths as printable text."""
        return {
            "home": printable(self.home),
            "file": printable(self.file),
            "changed": self.changed,
            "changes": [change.to_json() for change in self.changes],
            "folder": printable(self.folder),
            "folder_made": self.made,
            "sentinel": None if self.sentinel is None else printable(self.sentinel),
            "sentinel_changed": self.sentinel_changed,
            "hermes_agent": self.hermes and self.hermes.version,
            "hermes_distribution": self.hermes and self.hermes.name,
            "notes": list(self.notes),
        }


def install(home: Path, *, sentinel: bool = False) -> Installation:
    """Names the plugin in `plugins.enabled` of `home/config.yaml` and makes the extensions folder.

    Done before, it changes nothing. A `plugins.disabled` that names the plugin, which would win,
    loses it. Raises ConfigError where the file cannot be changed safely, with nothing changed.

    sentinel: also write the sentinel, as is done where an extension is required.
    """
    from hermes_ext.settings.editing import ListEdit

    _check_folder(home)
    wanted = sentinel or bool(read_config(home).required)
    names = (PLUGIN, SENTINEL) if wanted else (PLUGIN,)
    edited = _edit(
        home,
        ListEdit("plugins", "enabled", add=names),
        ListEdit("plugins", "disabled", remove=names),
    )
    folder = edited.folder
    made = not folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the folder of extensions cannot be made: {error.strerror or error}",
            path=folder,
            hint="Make it yourself, or set extensions.global_dir to another one",
        ) from error
    old = sentinel_state(home) is SentinelState.OLD
    written, notes = _write_sentinel(home, asked=sentinel) if wanted or old else (False, [])
    done = evolve(_with_sentinel(edited), made=made, sentinel_changed=written)
    return evolve(done, notes=(*_host_notes(), *notes))


def uninstall(home: Path) -> Installation:
    """Takes the plugin out of `plugins.enabled`, and removes the sentinel if nobody changed it.

    Extensions and their settings stay as they are. Done before, it changes nothing. Raises
    ConfigError as `install` does.
    """
    from hermes_ext.settings.editing import ListEdit

    _check_folder(home)
    edited = _edit(home, ListEdit("plugins", "enabled", remove=(PLUGIN, SENTINEL)))
    was = sentinel_state(home)
    note = remove_sentinel(home)
    removed = sentinel_state(home) is not was
    notes = () if note is None else (note,)
    return evolve(_with_sentinel(edited), notes=notes, sentinel_changed=removed)


def sentinel_fault(home: Path, config: ExtensionsConfig) -> str | None:
    """Why nothing refuses tools once this package is gone; None if something does, or need not."""
    if not config.required or plugin_off(home, config) is not None:
        return None
    folder = printable(sentinel_folder(home))
    state = sentinel_state(home)
    if state is SentinelState.ABSENT:
        return f"there is no sentinel ({folder})"
    if state is SentinelState.CHANGED:
        return f"the sentinel {folder} is not as install left it"
    if SENTINEL in _listed(config.file, config.root, "disabled"):
        return f"the sentinel {folder} is off: plugins.disabled names {SENTINEL}"
    if SENTINEL not in _listed(config.file, config.root, "enabled"):
        return f"the sentinel {folder} is off: plugins.enabled does not name {SENTINEL}"
    return None


def _write_sentinel(home: Path, *, asked: bool) -> tuple[bool, list[str]]:
    """Whether it was written now; where nobody asked for it, why it was not is only a note."""
    try:
        return write_sentinel(home), []
    except ConfigError as error:
        if asked:
            raise
        return False, [str(error)]


def _with_sentinel(done: Installation) -> Installation:
    is_there = sentinel_state(done.home) is not SentinelState.ABSENT
    return evolve(done, sentinel=sentinel_folder(done.home) if is_there else None)


def _listed(file: Path, root: Node | None, key: str) -> tuple[str, ...]:
    """The names at `plugins.KEY`. Unlike where the file is to be changed, what Hermes can read
    is good enough: keys that stand twice, for one.
    """
    node = node_at(root, ("plugins",))
    if isinstance(node, MappingNode):
        by_key = {name: value for name, _, value in items_of(node)}
        listed = by_key.get(key)
        if by_key and "<<" not in by_key and isinstance(listed, SequenceNode | None):
            names = [text_of(each) for each in listed.value] if listed is not None else []
            if None not in names:
                return tuple(map(str, names))
    from hermes_ext.settings.editing import read_list

    return read_list(file, "plugins", key)


def plugin_off(home: Path, config: ExtensionsConfig | None = None) -> PluginOff | None:
    """Why Hermes would load no extension of this home; None if it would.

    A disabled entry wins in Hermes. config: the home's, where it was read before.
    """
    file = home / "config.yaml"
    root = read_document(file).root if config is None else config.root
    try:
        if PLUGIN in _listed(file, root, "disabled"):
            told = f"names {PLUGIN}, which wins over plugins.enabled"
            return PluginOff(file, None, "plugins.disabled", told)
        if PLUGIN in _listed(file, root, "enabled"):
            return None
    except ConfigError as error:
        _explain(error)
        where = (error.path or file, error.line, error.key or "")
        return PluginOff(*where, error.message, error.hint or "Fix it")
    return PluginOff(file, None, "plugins.enabled", f"does not name {PLUGIN}")


def plugins_unreadable() -> str | None:
    """Why Hermes finds no installed plugin at all in this Python; None if it does."""
    fault = entry_points_fault()
    if fault is None:
        return None
    return f"Hermes cannot read the entry points of this Python, so it loads no plugin: {fault}"


def _edit(home: Path, *edits: ListEdit) -> Installation:
    from hermes_ext.settings.editing import edit_lists

    try:
        edited = edit_lists(home / "config.yaml", edits)
    except ConfigError as error:
        _explain(error)
        raise
    folder = read_config(home).global_dir
    return Installation(home, edited.path, edited.changes, folder, False, host_package())


def _explain(error: ConfigError) -> None:
    if error.key in {"plugins", "plugins.enabled"}:
        error.hint = (
            "Hermes enables no plugin at all while this is no list of names;"
            f" write `plugins: {{enabled: [{PLUGIN}]}}`"
        )


def _check_folder(home: Path) -> None:
    if home.exists() and not home.is_dir():
        raise ConfigError("the Hermes home is not a folder", path=home, hint="Give --home a folder")


def _host_notes() -> list[str]:
    if host_package() is None:
        return [
            "hermes-agent is not in this Python, so nothing will load the extensions here."
            " Install both into one environment: pip install hermes-agent hermes-ext"
        ]
    unreadable = plugins_unreadable()
    if unreadable is not None:
        return [unreadable]
    if not any(each.point.name == PLUGIN for each in installed_points(PLUGIN_GROUP).points):
        return [
            f"this Python's metadata has no plugin {PLUGIN}: install the package with pip,"
            " instead of running it from its source"
        ]
    return []
