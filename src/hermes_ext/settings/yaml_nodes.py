"""YAML files as nodes that know their lines. Nothing here raises because of what a file holds."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes_ext._problems import Problem
from hermes_ext._regular import read_regular
from hermes_ext._values import frozen

# libyaml parses a long configuration about ten times as fast, and this runs at each start.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR: Any = yaml.constructor.SafeConstructor  # typed in some versions and not in others
_DEPTH = 100  # settings need a handful of levels, and Python's stack ends at some hundreds
_DEEP = 200
_MOST = 1_000_000  # values that a whole file may stand for
_MANY = 100_000  # values that a file's settings may stand for; aliases make millions of a few
_DIGITS = 100
SETTINGS_BYTES = 250_000  # people write settings and manifests, and parsing takes time
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


def read_document(file: Path, largest: int = -1) -> Document:
    """Read UTF-8 (with or without a byte order mark, any line ends) whatever the locale is.

    largest: of what has more bytes only a fault is told.
    """
    try:
        raw = read_regular(file, largest + 1 if largest >= 0 else -1)
    except FileNotFoundError:
        return Document(file, exists=False)
    except OSError as error:
        return _faulty(file, None, f"cannot be read: {error.strerror or error}")
    return parse_document(file, raw, largest)


def parse_document(file: Path, raw: bytes, largest: int = -1) -> Document:
    """The same of bytes that were read before; `file` is only what problems name."""
    if 0 <= largest < len(raw):
        told, hint = f"is larger than {largest:,} bytes", "Take out of it what nothing reads"
        return _faulty(file, None, told, hint)
    if raw.startswith(_WIDE) or b"\0" in raw:
        return _faulty(file, None, "is UTF-16 or binary, expected UTF-8", "Save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        return _faulty(file, line, byte, "Save the file as UTF-8")
    return _composed(file, text)


class _Composing(yaml.SafeLoader):
    """The loader for what may be nested deeply, which libyaml and Python's stack do not bear."""

    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        loader: Any = self  # typed in some versions of PyYAML's stubs only
        self.depth += 1
        if self.depth > _DEEP:
            raise Unreadable("is nested too deeply", loader.peek_event().start_mark.line + 1)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def compose(text: str) -> Node | None:
    """The root of a text, whatever it holds.

    Raises Unreadable for what is nested too deeply or expands to too many values, yaml.YAMLError
    for what is not YAML, and RecursionError where an alias holds itself.
    """
    root: Node | None = yaml.compose(text, Loader=_Composing if _may_be_deep(text) else _LOADER)
    if "&" in text:
        _count(root, {})
    return root


def _count(node: Node | None, known: dict[int, int], depth: int = 0) -> int:
    """How many values a node stands for, each alias with all that it repeats. Raises Unreadable."""
    if node is None or isinstance(node, ScalarNode):
        return 1
    if depth > _DEEP:
        raise Unreadable("is nested too deeply", line_of(node))
    if id(node) not in known:
        known[id(node)] = 0  # of an alias that holds itself
        parts = node.value
        if isinstance(node, MappingNode):
            parts = [part for pair in node.value for part in pair]
        count = 1 + sum(_count(part, known, depth + 1) for part in parts)
        if count > _MOST:
            told = f"expands to more than {_MOST:,} values by its aliases"
            raise Unreadable(told, line_of(node))
        known[id(node)] = count
    return known[id(node)]


def _composed(file: Path, text: str) -> Document:
    try:
        root = compose(text)
        if "<<" in text:
            _merge_all(root)
        return Document(file, root)
    except Unreadable as error:
        return _faulty(file, error.line, str(error))
    except yaml.MarkedYAMLError as error:
        line = line_of_error(error)
        return _faulty(file, line, f"is not valid YAML: {_told(error)}", _tab_hint(text, line))
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        # libyaml counts bytes; before a character that it refuses there may be wider ones.
        before = None if position is None else text.encode()[:position].count(b"\n") + 1
        reason = getattr(error, "reason", None) or " ".join(str(error).split())
        return _faulty(file, before, f"is not valid YAML: {reason}")
    except RecursionError:
        return _faulty(file, None, "is nested too deeply")


def _may_be_deep(text: str) -> bool:
    """Whether things may be nested beyond what libyaml bears: some versions end the process there.

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
    problem = (error.problem or "").removeprefix("but ")
    return ", ".join(part for part in (problem, error.context) if part) or "syntax error"


def _tab_hint(text: str, line: int | None) -> str | None:
    lines = text.splitlines()
    near = lines[max(0, (line or 1) - 2) : line]
    indents = (each[: len(each) - len(each.lstrip())] for each in near)
    has_tab = any("\t" in each for each in indents)
    return "YAML allows no tabs there: use spaces" if has_tab else None


def line_of_error(error: yaml.MarkedYAMLError) -> int | None:
    """The line, from 1, where something is not YAML."""
    mark = error.problem_mark or error.context_mark
    return None if mark is None else mark.line + 1


def line_of(node: Node | None) -> int | None:
    """The line where a node begins, from 1."""
    return None if node is None else node.start_mark.line + 1


def kind_of(node: Node) -> str:
    """`str`, `bool`, `int`, `float`, `null`, `timestamp`, `seq`, `map`, or another tag."""
    kind = str(node.tag).removeprefix(_TAG)
    return "str" if kind == "value" else kind  # a plain `=`


def is_null(node: Node | None) -> bool:
    """Whether there is nothing, or an explicit null."""
    return node is None or (isinstance(node, ScalarNode) and kind_of(node) == "null")


def value_of(node: Node, *kinds: str) -> Any:
    """The value of a scalar of one of these kinds, None for anything else."""
    try:
        return _scalar(node) if isinstance(node, ScalarNode) and kind_of(node) in kinds else None
    except Unreadable:
        return None


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
    Keys that are no scalars come as "".
    """
    for key, value in node.value:
        yield str(key.value) if isinstance(key, ScalarNode) else "", key, value


def _merge_all(root: Node | None) -> None:
    """Put the pairs that merge keys (`<<`) stand for in their places. Raises Unreadable.

    PyYAML's own way repeats what is merged more than once, and knows no end to it.
    """
    left = [root]
    seen: set[int] = set()
    count = [0]
    while left:
        node = left.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            _merge(node, 0, count)
            left += (part for pair in node.value for part in pair)
        elif isinstance(node, SequenceNode):
            left += node.value


def _merge(node: MappingNode, depth: int, count: list[int]) -> None:
    merging = [(key, value) for key, value in node.value if kind_of(key) == "merge"]
    if not merging:
        return
    if depth > _DEPTH:
        raise Unreadable("is not valid YAML: too many merge keys in a row", line_of(node))
    own = [pair for pair in node.value if kind_of(pair[0]) != "merge"]
    node.value = own  # before what is merged is looked at, which may be this mapping itself
    taken = {_identity(key) for key, _ in own}
    merged: dict[Any, tuple[Node, Node]] = {}
    for key, value in reversed(merging):
        for part in value.value if isinstance(value, SequenceNode) else [value]:
            if not isinstance(part, MappingNode):
                told = f"is not valid YAML: `<<` takes mappings, found {described(part)}"
                raise Unreadable(told, line_of(key))
            _merge(part, depth + 1, count)
            count[0] += 1 + len(part.value)
            if count[0] > _MANY:
                told = f"is not valid YAML: `<<` expands to more than {_MANY:,} values"
                raise Unreadable(told, line_of(key))
            for pair in part.value:
                merged.setdefault(_identity(pair[0]), pair)
    node.value = [*(pair for key, pair in merged.items() if key not in taken), *own]


def _identity(key: Node) -> Any:
    return str(key.value) if isinstance(key, ScalarNode) else id(key)


def plain(node: Node | None, count: list[int] | None = None) -> Any:
    """Dicts (with keys as written), lists and scalars. Raises Unreadable.

    count: one number, of the values that parts of the same file stood for so far.
    """
    return _plain(node, (), [0] if count is None else count)


def _plain(node: Node | None, above: tuple[int, ...], count: list[int]) -> Any:
    count[0] += 1
    if count[0] > _MANY:
        raise Unreadable(f"stands for more than {_MANY:,} values")
    if node is None or isinstance(node, ScalarNode):
        return None if node is None else _scalar(node)
    if id(node) in above or len(above) > _DEPTH:
        told = "contains itself" if id(node) in above else "is nested too deeply"
        raise Unreadable(told, line_of(node))
    if kind_of(node) not in {"map", "seq"}:
        raise Unreadable(f"the tag {kind_of(node)} is not supported", line_of(node))
    below = (*above, id(node))
    if isinstance(node, SequenceNode):
        return [_plain(item, below, count) for item in node.value]
    assert isinstance(node, MappingNode)
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise Unreadable(f"a key is {described(key)}, expected text", line_of(key))
    return {key: _plain(value, below, count) for key, _, value in items_of(node)}


def _scalar(node: ScalarNode) -> Any:
    kind = kind_of(node)
    if kind == "str":
        return str(node.value)
    if kind in {"int", "float"} and len(node.value) > _DIGITS:
        raise Unreadable("the number is too long", line_of(node))
    try:
        return _CONSTRUCTOR().construct_object(node)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_told(error), line_of_error(error)) from error
    except (ArithmeticError, ValueError) as error:
        # A timestamp such as 2024-99-99 matches the pattern and is none.
        raise Unreadable(str(error), line_of(node)) from error
    except (AttributeError, LookupError, TypeError) as error:
        # PyYAML takes what has an explicit tag, such as `!!bool perhaps`, for what the tag says.
        raise Unreadable(f"{node.value!r} is not a valid {kind}", line_of(node)) from error


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
        return _by_key(node).get(step)
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: Node = node.value[step]
        return found
    return None


def _by_key(node: Any) -> dict[str | int, Node]:
    # Kept with the node: each of thousands of keys is looked up on its own.
    found: dict[str | int, Node] | None = getattr(node, "_by_key", None)
    if found is None:
        found = node._by_key = {key: value for key, _, value in items_of(node)}
    return found


def repeated_keys(file: Path, node: Node | None, path: str) -> Iterator[Problem]:
    """A problem for every key given twice, at any depth. path: the dotted key of the node."""
    for key, line, first in _repeated(node, path, set(), _DEPTH):
        told = f"given twice (first in line {first}); the last one counts"
        yield Problem(file, line, key, told)


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
            if name in first:
                yield below, line_of(key), line_of(first[name])
            first.setdefault(name, key)
            yield from _repeated(value, below, seen, depth - 1)
