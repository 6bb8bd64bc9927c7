"""`.hermes/extensions.yaml`: the settings that a project brings along.

Its top level is a mapping of names of extensions to their settings, and nothing else: what decides
which extensions are on, or who may do what, is the user's. Nothing that stands in the file raises:
what is wrong becomes a `Problem` and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType

from yaml.nodes import MappingNode, Node

from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._text import canonical_name
from hermes_ext._values import frozen
from hermes_ext.settings.config import SettingsByName, SettingsFile
from hermes_ext.settings.names import RESERVED_KEYS
from hermes_ext.settings.yaml_nodes import (
    SETTINGS_BYTES,
    described,
    is_null,
    items_of,
    line_of,
    parse_document,
    repeated_keys,
)

_HINTED = 20  # looking for what was meant takes time; nobody reads more


@frozen
class ProjectSettings(SettingsFile):
    """What one project's file says.

    file: as problems name it. problems: what is left out. readable: False where nothing of the file
    can be used, and then `problems` says why.
    """

    file: Path
    problems: tuple[Problem, ...] = ()
    readable: bool = True

    def unknown(self, names: Iterable[str]) -> tuple[Problem, ...]:
        """A problem for each name in the file that is none of these extensions'."""
        names = tuple(names)
        known = {canonical_name(name) for name in names}
        told = "is the name of no extension that is installed or in this project; ignored"
        strange = [name for name in self.settings if canonical_name(name) not in known]
        hints = {name: did_you_mean(name, names) for name in strange[:_HINTED]}
        return tuple(
            Problem(self.file, self.line_of(name), name, told, hints.get(name)) for name in strange
        )


def read_project_settings(file: Path, raw: bytes | None) -> ProjectSettings:
    """Read what the verified tree holds of the file; `raw` is None where it has none."""
    if raw is None:
        return ProjectSettings(file)
    if len(raw) > SETTINGS_BYTES:
        told = f"is larger than {SETTINGS_BYTES:,} bytes, which no settings are; ignored"
        return _unreadable(Problem(file, None, "", told))
    document = parse_document(file, raw)
    root = document.root
    if document.fault is not None:
        return _unreadable(document.fault)
    if root is None or is_null(root):
        return ProjectSettings(file)
    if not isinstance(root, MappingNode):
        told = f"found {described(root)}, expected a mapping of extensions to their settings"
        return _unreadable(Problem(file, line_of(root), "", told))
    return _read(file, root)


def _unreadable(problem: Problem) -> ProjectSettings:
    return ProjectSettings(problem.file, problems=(problem,), readable=False)


def _read(file: Path, root: MappingNode) -> ProjectSettings:
    settings = SettingsByName()
    problems = [*repeated_keys(file, root, "")]

    def tell(node: Node | int | None, key: str, message: str, hint: str | None) -> None:
        line = node if isinstance(node, int) else line_of(node)
        problems.append(Problem(file, line, key, message, hint))

    for key, (key_node, value) in {k: (n, v) for k, n, v in items_of(root)}.items():
        reserved = _reserved(key)
        if reserved:
            tell(key_node, key, *reserved)
        else:
            settings.add(key, key_node, value, tell)
    written = MappingProxyType(settings.written)
    return ProjectSettings(file, tuple(problems), settings=written, section=root)


def _reserved(key: str) -> tuple[str, str] | None:
    """Why a key is none of an extension, and what to do; None where it may be one."""
    if key == "extensions":
        return "is not a key of this file; ignored", "Write its content without it"
    # YAML 1.1 reads a bare `on` as true, and a program that saves the file writes that.
    if canonical_name(key) in {*map(canonical_name, RESERVED_KEYS), "true"}:
        told = "is a key of the user's own configuration, which a project cannot set; ignored"
        return told, "Take it away: this file holds settings of extensions only"
    return None
