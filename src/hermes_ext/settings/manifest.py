"""`extension.yaml`: what an extension says about itself. Optional, and read without its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes_ext.__about__ import __version__
from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import field, frozen
from hermes_ext.hosts.default import default_host
from hermes_ext.settings.yaml_nodes import (
    SETTINGS_BYTES,
    Document,
    Unreadable,
    described,
    is_null,
    items_of,
    kind_of,
    line_of,
    node_at,
    parse_document,
    plain,
    read_document,
    repeated_keys,
    text_of,
)

MANIFEST_FILE = "extension.yaml"

KEYS = (
    "name",
    "version",
    "description",
    "requires_hermes_ext",
    "requires_hermes",
    "requires",
    "config",
)


@frozen
class Manifest:
    """One `extension.yaml`.

    requires_hermes_ext, requires_hermes: PEP 440 specifiers such as ">=0.17,<0.20"; the second
    counts only where Hermes Agent is. requires: pip requirements. config: JSON Schema
    (Draft 2020-12 unless `$schema` says otherwise) of the extension's settings.
    problems: why it cannot be used. warnings: what is odd but stops nothing.
    """

    file: Path
    name: str | None = None
    version: str | None = None
    description: str | None = None
    requires_hermes_ext: str | None = None
    requires_hermes: str | None = None
    requires: tuple[str, ...] = ()
    config: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    _root: Node | None = field(default=None, repr=False, eq=False)
    _raw: bytes | None = field(default=None, repr=False, eq=False)

    def line_of(self, *path: str | int) -> int | None:
        """The line of the value at this path, or of what holds it."""
        root = self._root
        if root is None and self._raw is not None:
            root = parse_document(self.file, self._raw, SETTINGS_BYTES).root
        return line_of(node_at(root, path))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of an extension's folder, None without one. Raises nothing about its content."""
    file = folder / MANIFEST_FILE
    document = read_document(file, SETTINGS_BYTES)
    return _manifest(document) if document.exists else None


def parse_manifest(file: Path, raw: bytes) -> Manifest:
    """The same of bytes that were read before; `file` is only what problems name."""
    return _manifest(parse_document(file, raw, SETTINGS_BYTES))


def _manifest(document: Document) -> Manifest:
    if document.fault is not None:
        return Manifest(document.file, problems=(document.fault,))
    return _Reading(document.file).manifest(document.root)


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None if there is none.

    Of this package and of the host it is what their code says of itself: of a checkout that
    was updated in place the installed metadata may be old, or missing. A fork of the host is
    what it is a fork of.
    """
    from packaging.utils import canonicalize_name

    from hermes_ext._distributions import version_of

    host = default_host()
    own = {"hermes-ext": lambda: __version__, host.distribution: host.version}
    name = canonicalize_name(distribution)
    return own[name]() if name in own else version_of(distribution)


def incompatibility(
    manifest: Manifest, version_of: Callable[[str], str | None] = installed_version
) -> str | None:
    """What the extension needs and is not here, with file, line and key; None if nothing lacks."""
    for key, distribution, specifier in (
        ("requires_hermes_ext", "hermes-ext", manifest.requires_hermes_ext),
        ("requires_hermes", default_host().distribution, manifest.requires_hermes),
    ):
        if specifier is None:
            continue
        installed = version_of(distribution)
        # Another host than Hermes Agent has no version to be compared.
        if installed is not None and not _within(installed, specifier):
            told = f"needs {distribution} {specifier}, found {installed}"
            return str(Problem(manifest.file, manifest.line_of(key), key, told))
    for index, requirement in enumerate(manifest.requires):
        lacking = _lacking(requirement, version_of)
        if lacking:
            key, line = f"requires[{index}]", manifest.line_of("requires", index)
            hint = "Install it where the agent is installed"
            return str(Problem(manifest.file, line, key, lacking, hint))
    return None


def _within(version: str, specifier: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    try:
        # A development build of the host is a version of it.
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidVersion:  # what cannot be compared is not known to be in the range
        return False


def _lacking(text: str, version_of: Callable[[str], str | None]) -> str | None:
    from packaging.requirements import Requirement

    requirement = Requirement(text)
    try:
        if requirement.marker is not None and not requirement.marker.evaluate():
            return None
    except ValueError as error:  # `os_name ~= "a"` can be written, and means nothing
        return f"needs {text}, whose condition cannot be judged: {str(error).rstrip('.')}"
    installed = version_of(requirement.name)
    if installed is None:
        return f"needs {text}, which is not installed"
    if not _within(installed, str(requirement.specifier)):
        return f"needs {text}, found {installed}"
    return None


class _Reading:
    """One pass over the file that gathers values, problems and warnings."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.values: dict[str, Any] = {}

    def manifest(self, root: Node | None) -> Manifest:
        if isinstance(root, MappingNode):
            self.warnings += repeated_keys(self.file, root, "")
            for key, key_node, value in items_of(root):
                self._key(key, key_node, value)
        elif root is not None and not is_null(root):
            self._unexpected(root, "", "a mapping")
        return Manifest(
            self.file,
            **self.values,
            problems=tuple(self.problems),
            warnings=tuple(self.warnings),
            root=root,
        )

    def _problem(self, node: Node, key: str, message: str, hint: str | None = None) -> None:
        self.problems.append(Problem(self.file, line_of(node), key, message, hint))

    def _unexpected(self, node: Node, key: str, wanted: str, hint: str | None = None) -> None:
        self._problem(node, key, f"found {described(node)}, expected {wanted}", hint)

    def _key(self, key: str, key_node: Node, value: Node) -> None:
        if key not in KEYS:
            # Only a warning: a manifest written for a later version still loads.
            told, hint = "is not a key of a manifest", did_you_mean(key, KEYS)
            self.warnings.append(Problem(self.file, line_of(key_node), key, told, hint))
        elif is_null(value):
            return
        elif key == "config":
            self._schema(value)
        elif key == "requires":
            self._requires(value)
        else:
            self._text(key, value)

    def _text(self, key: str, node: Node) -> None:
        # `version: 1.10` is the number 1.1 to YAML; what is meant is what is written.
        number = key == "version" and kind_of(node) in {"int", "float"}
        text = str(node.value) if number else text_of(node)
        if text is None:
            hint = f'Write "{node.value}"' if isinstance(node, ScalarNode) else None
            self._unexpected(node, key, "text", hint)
            return
        if key.startswith("requires_") and not _is_specifier(text):
            told = f"{text!r} is not a version specifier"
            self._problem(node, key, told, 'Write it as in ">=0.17,<0.20"')
            return
        self.values[key] = text

    def _requires(self, node: Node) -> None:
        if not isinstance(node, SequenceNode):
            self._unexpected(node, "requires", "a list of pip requirements")
            return
        found: list[str] = []
        for index, item in enumerate(node.value):
            text = text_of(item)
            if text is None or not _is_requirement(text):
                hint = 'Write it as in "tree-sitter>=0.21"'
                self._unexpected(item, f"requires[{index}]", "a pip requirement", hint)
            else:
                found.append(text)
        self.values["requires"] = tuple(found)

    def _schema(self, node: Node) -> None:
        if not isinstance(node, MappingNode):
            self._unexpected(node, "config", "a JSON Schema")
            return
        try:
            self.values["config"] = plain(node)
        except Unreadable as error:
            told = f"cannot be read: {error}"
            self.problems.append(Problem(self.file, error.line or line_of(node), "config", told))


def _is_specifier(text: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return _parses(SpecifierSet, text)


def _is_requirement(text: str) -> bool:
    from packaging.requirements import Requirement

    return _parses(Requirement, text)


def _parses(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except ValueError:  # as all of packaging's own errors are
        return False
    return True


def name_differs(manifest: Manifest, name: str) -> str | None:
    """A warning where the manifest has another name than the folder, whose name counts."""
    if manifest.name is None or canonical_name(manifest.name) == canonical_name(name):
        return None
    told = f"says {printable(manifest.name)!r}; the folder's name counts: {name!r}"
    return str(Problem(manifest.file, manifest.line_of("name"), "name", told))
