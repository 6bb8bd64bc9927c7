"""YAML files as nodes that know their lines. Nothing here raises because of what a file holds."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes_ext._install.records import Problem

# libyaml parses a long configuration about ten times as fast, and this runs at each start.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR: Any = yaml.constructor.SafeConstructor  # typed in some versions and not in others
_DEPTH = 100  # settings need a handful of levels, and Python's stack ends at some hundreds
_DEEP = 200
_DEEP_LINE = re.compile(rf"^[ \t?:-]{{{_DEEP}}}", re.MULTILINE)
_BRACKETS = re.compile(r"[][{}]")
_TAG = "tag:yaml.org,2002:"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-32 begins with the same bytes


class Unreadable(Exception):  # noqa: N818 - it names a condition; callers turn it into a Problem
    """A part of a file that cannot be made into plain values."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@frozen
class Document:
    """One YAML file. root: None for an empty or missing file, and where `fault` says why."""

    file: Path
    root: Node | None = None
    fault: Problem | None = None
    exists: bool = True


def read_document(file: Path) -> Document:
    """Read UTF-8 (with or without a byte order mark, any line ends) whatever the locale is."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return Document(file, exists=False)
    except OSError as error:
        return _faulty(file, None, f"cannot be read: {error.strerror or error}")
    return parse_document(file, raw)


def parse_document(file: Path, raw: bytes) -> Document:
    """The same of bytes that were read before; `file` is only what problems name."""
    if raw.startswith(_WIDE) or b"\0" in raw:
        return _faulty(file, None, "is UTF-16 or binary, expected UTF-8", "Save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x} is no UTF-8"
        return _faulty(file, line, byte, "Save the file as UTF-8")
    return _composed(file, text)


def _composed(file: Path, text: str) -> Document:
    try:
        loader = yaml.SafeLoader if _may_be_deep(text) else _LOADER
        return Document(file, yaml.compose(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        return _faulty(file, line, f"is no valid YAML: {_told(error)}", _tab_hint(text, line))
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        # libyaml counts bytes; before a character that it refuses there may be wider ones.
        before = None if position is None else text.encode()[:position].count(b"\n") + 1
        reason = getattr(error, "reason", None) or " ".join(str(error).split())
        return _faulty(file, before, f"is no valid YAML: {reason}")
    except RecursionError:
        return _faulty(file, None, "is nested too deeply")


def _may_be_deep(text: str) -> bool:
    """Whether things may be nested beyond what libyaml takes: some versions end the process there.

    Brackets in texts count too, which costs no more than the slower loader.
    """
    if _DEEP_LINE.search(text):
        return True
    if text.count("[") + text.count("{") < _DEEP:
        return False
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest >= _DEEP


def _faulty(file: Path, line: int | None, message: str, hint: str | None = None) -> Document:
    return Document(file, fault=Problem(file, line, "", message, hint))


def _told(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.problem, error.context) if part) or "syntax error"


def _tab_hint(text: str, line: int | None) -> str | None:
    lines = text.splitlines()
    near = lines[max(0, (line or 1) - 2) : line]
    indents = (each[: len(each) - len(each.lstrip())] for each in near)
    return (
        "YAML allows no tabs there: use spaces" if any("\t" in each for each in indents) else None
    )


def line_of(node: Node | None) -> int | None:
    """The line where a node begins, from 1."""
    return None if node is None else node.start_mark.line + 1


def kind_of(node: Node) -> str:
    """`str`, `bool`, `int`, `float`, `null`, `timestamp`, `seq`, `map`, or another tag."""
    return str(node.tag).removeprefix(_TAG)


def is_null(node: Node | None) -> bool:
    """Whether there is nothing, or an explicit null."""
    return node is None or (isinstance(node, ScalarNode) and kind_of(node) == "null")


def text_of(node: Node) -> str | None:
    """The text of a string, None for anything else."""
    return str(node.value) if isinstance(node, ScalarNode) and kind_of(node) == "str" else None


def described(node: Node) -> str:
    """What stands there, for `found …` in a message."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    kind = {"str": "the string", "bool": "the boolean", "int": "the number", "float": "the number"}
    if is_null(node):
        return "nothing"
    shown = str(node.value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"{kind.get(kind_of(node), 'the value')} {shown!r}"


def items_of(node: MappingNode) -> Iterator[tuple[str, Node, Node]]:
    """(key, key's node, value's node); keys as they are written, so `on` stays "on".

    YAML 1.1 reads a bare `on` as true, and a program that saves the file anew writes `true`.
    Keys that are no scalars come as "". Merge keys (`<<`) are resolved.
    """
    if any(kind_of(key) == "merge" for key, _ in node.value):
        with contextlib.suppress(yaml.YAMLError):  # a faulty merge is told where values are made
            _CONSTRUCTOR().flatten_mapping(node)
    for key, value in node.value:
        yield str(key.value) if isinstance(key, ScalarNode) else "", key, value


def plain(node: Node | None) -> Any:
    """Dicts (with keys as written), lists and scalars. Raises Unreadable."""
    try:
        return _plain(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(_told(error), None if mark is None else mark.line + 1) from error
    except (ValueError, OverflowError) as error:
        # A timestamp such as 2024-99-99 matches the pattern and is none.
        raise Unreadable(str(error), line_of(node)) from error


def _plain(node: Node | None, above: tuple[int, ...]) -> Any:
    if node is None or isinstance(node, ScalarNode):
        return None if node is None else _CONSTRUCTOR().construct_object(node)
    if id(node) in above or len(above) > _DEPTH:
        told = "contains itself" if id(node) in above else "is nested too deeply"
        raise Unreadable(told, line_of(node))
    if kind_of(node) not in {"map", "seq"}:
        raise Unreadable(f"the tag {kind_of(node)} is not supported", line_of(node))
    below = (*above, id(node))
    if isinstance(node, SequenceNode):
        return [_plain(item, below) for item in node.value]
    assert isinstance(node, MappingNode)
    return {key: _plain(value, below) for key, _, value in items_of(node)}


def node_at(node: Node | None, path: Sequence[str | int]) -> Node | None:
    """The node at a path of keys and indexes, or the deepest one on the way there."""
    for step in path:
        below = _child(node, step)
        if below is None:
            return node
        node = below
    return node


def _child(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, MappingNode):
        # A missing key is told at its mapping, a present one at the key, which has its own line.
        return next((value for key, _, value in reversed([*items_of(node)]) if key == step), None)
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: Node = node.value[step]
        return found
    return None


def repeated_keys(node: Node | None, path: str) -> Iterator[tuple[str, int | None, int | None]]:
    """(dotted key, line, line of the first one) for every key given twice, at any depth."""
    yield from _repeated(node, path, set(), _DEPTH)


def _repeated(
    node: Node | None, path: str, seen: set[int], depth: int
) -> Iterator[tuple[str, int | None, int | None]]:
    if node is None or id(node) in seen or not depth:
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield from _repeated(item, f"{path}[{index}]", seen, depth - 1)
    if isinstance(node, MappingNode):
        first: dict[str, Node] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            below = f"{path}.{name}" if path else name
            if name in first and kind_of(key) != "merge":
                yield below, line_of(key), line_of(first[name])
            first.setdefault(name, key)
            yield from _repeated(value, below, seen, depth - 1)
