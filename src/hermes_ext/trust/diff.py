"""What changed in a project's extensions since they were trusted, for a person to read."""

from __future__ import annotations

import difflib
import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from hermes_ext._text import printable
from hermes_ext._values import frozen
from hermes_ext.trust.tree import Tree
from hermes_ext.trust.walk import TreeError

# Beyond it what differs is shown as removed and added: finding the best match can take minutes.
_MATCHED_LINES: Final = 2_000
_CONTEXT: Final = 3

_Kind: TypeAlias = Literal["added", "removed", "changed"]
_Opcode: TypeAlias = tuple[Any, int, int, int, int]


@frozen
class FileChange:
    """One file that differs.

    path: below `.hermes`, with `/`, as it is named on the disk. diff: a unified diff, printable
    but for its line ends and tabs; None where the content is binary or was not kept. matched:
    whether there was time to find the lines that stayed.
    """

    path: str
    kind: _Kind
    diff: str | None
    matched: bool = True


def changes(
    old: Mapping[str, bytes] | None, new: Tree, *, seconds: float = math.inf
) -> tuple[FileChange, ...]:
    """What differs between a kept copy and a tree, by path.

    old: None where there is no copy: every file then counts as added, without a diff; `{}` has each
    shown in full. seconds: after them, a file that differs is shown as removed and added.
    """
    deadline = time.monotonic() + seconds
    if old is None:
        return tuple(FileChange(path, "added", None) for path in sorted(new.files))
    return tuple(
        FileChange(
            path,
            kind,
            _diff(path, old.get(path, b""), _now(new, path), matched=matched),
            matched=matched or kind != "changed",
        )
        for path, kind in _kinds(old, new)
        for matched in (time.monotonic() < deadline,)
    )


def changed_paths(old: Mapping[str, bytes], new: Tree) -> tuple[str, ...]:
    """The paths of what differs between a kept copy and a tree."""
    return tuple(path for path, _ in _kinds(old, new))


def _kinds(old: Mapping[str, bytes], new: Tree) -> Iterator[tuple[str, _Kind]]:
    for path in sorted({*old, *new.files}):
        if path not in new.files:
            yield path, "removed"
        elif path not in old:
            yield path, "added"
        elif sha256(old[path]).hexdigest() != new.files[path].sha256:
            yield path, "changed"


def _now(tree: Tree, path: str) -> bytes | None:
    if path not in tree.files:
        return b""
    try:
        return tree.read(path)
    except TreeError:  # a big data file that changed once more
        return None


def _diff(path: str, old: bytes, new: bytes | None, *, matched: bool) -> str | None:
    # By NUL bytes git tells binaries too, and Python runs nothing that has them.
    if new is None or b"\0" in old or b"\0" in new:
        return None
    before, after = _lines(old), _lines(new)
    lines = [f"--- trusted/{printable(path)}", f"+++ now/{printable(path)}"]
    for group in _Matcher(before, after, matched).get_grouped_opcodes(_CONTEXT):
        lines += _hunk(before, after, group)
    return "".join(f"{line}\n" for line in lines)


def _lines(raw: bytes) -> list[bytes]:
    """The lines with their ends; a lone carriage return ends none, so that it is seen."""
    parts = [part + b"\n" for part in raw.split(b"\n")]
    return [*parts[:-1], *filter(None, [parts[-1][:-1]])]


class _Matcher(difflib.SequenceMatcher[bytes]):
    """Takes equal lines at both ends for granted, and does not search long texts for matches."""

    def __init__(self, old: list[bytes], new: list[bytes], searches: bool) -> None:
        super().__init__(None, [], [])
        self._old, self._new, self._searches = old, new, searches

    def get_opcodes(self) -> list[_Opcode]:
        one, two = self._old, self._new
        most = min(len(one), len(two))
        head = _equal(zip(one, two, strict=False))
        tail = min(_equal(zip(reversed(one), reversed(two), strict=False)), most - head)
        end_one, end_two = len(one) - tail, len(two) - tail
        middle: list[_Opcode] = [("replace", head, end_one, head, end_two)]
        if self._searches and end_one + end_two - 2 * head <= _MATCHED_LINES:
            matcher = difflib.SequenceMatcher(None, one[head:end_one], two[head:end_two])
            middle = [
                (tag, i + head, j + head, k + head, m + head)
                for tag, i, j, k, m in matcher.get_opcodes()
            ]
        first: _Opcode = ("equal", 0, head, 0, head)
        last: _Opcode = ("equal", end_one, len(one), end_two, len(two))
        return [each for each in (first, *middle, last) if each[1] < each[2] or each[3] < each[4]]


def _equal(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _hunk(old: Sequence[bytes], new: Sequence[bytes], group: Sequence[_Opcode]) -> Iterator[str]:
    spans = _span(group[0][1], group[-1][2]), _span(group[0][3], group[-1][4])
    yield f"@@ -{spans[0]} +{spans[1]} @@"
    for tag, i, j, k, m in group:
        if tag == "equal":
            yield from _marked(" ", old[i:j])
            continue
        yield from _marked("-", old[i:j])
        yield from _marked("+", new[k:m])


def _span(start: int, end: int) -> str:
    """Lines of a file as diff names them: from 1, and an empty span by the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _marked(sign: str, lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        yield sign + "\t".join(map(printable, text.split("\t")))
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"
