"""Reading the decision log, across its rotated files."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeAlias, overload

from hermes_ext._regular import open_regular
from hermes_ext.turns.decisions.older import as_written_now
from hermes_ext.turns.decisions.rotation import rotated

LONGEST_LINE: Final = 4_000_000  # bytes; a longer one is not read whole
_BLOCK: Final = 1 << 18
_LOOK_EVERY_SECONDS: Final = 0.2

Span: TypeAlias = tuple[int, int, int]
"""The number of a file, and where a line begins and ends in it."""


class LogFiles:
    """The files of a decision log as they are now, for reading line by line. Close them.

    Memory is needed for one line at a time. Of a line that is longer than `longest` only the
    entries that stand before the first long one are read, and `too_long`, its length in bytes.
    Lines that are torn or no JSON object are left out. A log that does not exist has none. Lines
    of earlier versions have today's form.

    Args:
        path: the current file.
        longest: bytes of a line.

    Raises:
        OSError: a file is there and cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._files = _opened(Path(path), None)
        self._sizes = [os.fstat(file.fileno()).st_size for file in self._files]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def oldest_first(self) -> Iterator[dict[str, Any]]:
        """The lines, from the oldest to the newest."""
        return (line for _, line in self.numbered())

    def numbered(self) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Each line with its place, for `line_at`; the oldest first."""
        for number, (file, size) in enumerate(zip(self._files, self._sizes, strict=True)):
            yield from self._lines(number, _spans(file, size))

    def newest_first(self) -> Iterator[dict[str, Any]]:
        """The lines, from the newest to the oldest: read from the end."""
        for number in reversed(range(len(self._files))):
            spans = _spans_from_end(self._files[number], self._sizes[number])
            yield from (line for _, line in self._lines(number, spans))

    def line_at(self, span: Span) -> dict[str, Any]:
        """The line at a place that `numbered` gave.

        Raises:
            OSError: it is not there any more.
        """
        number, begin, end = span
        line = self._line(number, begin, end, None)
        if line is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return line

    def _lines(
        self, number: int, spans: Iterable[tuple[int, int, bytes | None]]
    ) -> Iterator[tuple[Span, dict[str, Any]]]:
        for begin, end, raw in spans:
            line = self._line(number, begin, end, raw) if begin < end else None
            if line is not None:
                yield (number, begin, end), line

    def _line(self, number: int, begin: int, end: int, raw: bytes | None) -> dict[str, Any] | None:
        length = end - begin
        if length > self._longest:
            return _begin_of(_read(self._files[number], begin, self._longest), length)
        return _parsed(_read(self._files[number], begin, length) if raw is None else raw)


class LogLines(Sequence[dict[str, Any]]):
    """The lines of a log by their number, the oldest first, each read when it is looked at.

    Args:
        files: the log's; open as long as this is used.
    """

    def __init__(self, files: LogFiles) -> None:
        self._files = files
        self._spans = [span for span, _ in files.numbered()]

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [*map(self._files.line_at, self._spans[place])]
        return self._files.line_at(self._spans[place])


def read_decisions(
    path: str | os.PathLike[str], last: int | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of a decision log, oldest first, across its rotated files, as `LogFiles` has them.

    Args:
        path: the current file.
        last: only the newest so many, which are kept in memory; None gives all.

    Raises:
        OSError: a file is there and cannot be read.
    """
    with LogFiles(path) as files:
        if last is None:
            yield from files.oldest_first()
        else:
            yield from reversed([*islice(files.newest_first(), max(last, 0))])


def follow_decisions(
    path: str | os.PathLike[str], *, wait: Callable[[], object] | None = None
) -> Iterator[dict[str, Any]]:
    """The lines that are in the log, oldest first, and then each one as it is written. Never ends.

    A file that is rotated meanwhile is read to its end first, then those that came after it. A log
    that does not exist yet is waited for.

    Args:
        path: the current file.
        wait: called when there is nothing new; the default waits for a fifth of a second.

    Raises:
        OSError: a file is there and cannot be read.
    """
    path = Path(path)
    pause = wait or partial(time.sleep, _LOOK_EVERY_SECONDS)
    waiting = _opened(path, None)
    try:
        while True:
            while not waiting:
                pause()
                waiting = _opened(path, None)
            file, begun = waiting.pop(0), _Begun()
            with file:
                while True:
                    ended = bool(waiting) or not _is_at(file, path)
                    while block := file.read(_BLOCK):
                        yield from begun.ended_by(block)
                    if ended:
                        break
                    if os.fstat(file.fileno()).st_size < file.tell():  # somebody emptied it
                        file.seek(0)
                        begun = _Begun()
                    pause()
                waiting = waiting or _opened(path, os.fstat(file.fileno()))
    finally:
        for each in waiting:
            each.close()


class _Begun:
    """What there is of a line whose end has not been read."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._length = 0

    def ended_by(self, block: bytes) -> Iterator[dict[str, Any]]:
        """The lines that end in what was read next."""
        *whole, rest = block.split(b"\n")
        for part in whole:
            self._add(part)
            kept, length = bytes(self._kept), self._length
            self._kept, self._length = bytearray(), 0
            line = _parsed(kept) if length == len(kept) else _begin_of(kept, length)
            if line is not None:
                yield line
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._kept += part[: LONGEST_LINE - len(self._kept)]
        self._length += len(part)


def _opened(path: Path, than: os.stat_result | None) -> list[BinaryIO]:
    """The files that were begun after one, oldest first; all where None is given.

    Newest first, and each once: so none is missed when they are rotated meanwhile.
    """
    opened: list[BinaryIO] = []
    seen = [] if than is None else [than]
    numbers = _numbers(path)
    for candidate in [path, *(rotated(path, n) for n in [*numbers, (numbers or [0])[-1] + 1])]:
        file = _open(candidate)
        if file is None:
            continue
        status = os.fstat(file.fileno())
        if than is not None and os.path.samestat(than, status):
            file.close()
            break
        if any(os.path.samestat(status, each) for each in seen):
            file.close()
            continue
        seen.append(status)
        opened.insert(0, file)
    return opened


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return True  # between two system calls of a rotation, or removed: there is no other


def _spans(file: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Where each line begins and ends, and the line itself where it has been read already."""
    begin = position = 0
    while position < size and (block := _read(file, position, min(_BLOCK, size - position))):
        at = 0
        while (found := block.find(b"\n", at)) >= 0:
            raw = block[begin - position : found] if begin >= position else None
            yield begin, position + found, raw
            begin, at = position + found + 1, found + 1
        position += len(block)
    yield begin, position, None


def _spans_from_end(file: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes | None]]:
    """The same from the last line to the first."""
    end = position = size
    while position > 0:
        begin = max(0, position - _BLOCK)
        block = _read(file, begin, position - begin)
        at = position = begin + len(block)
        while (found := block.rfind(b"\n", 0, at - begin)) >= 0:
            raw = block[found + 1 : end - begin] if end <= position else None
            yield begin + found + 1, end, raw
            at = end = begin + found
        position = begin
    yield 0, end, None


def _read(file: BinaryIO, begin: int, length: int) -> bytes:
    file.seek(begin)
    return file.read(length)


def _open(path: Path) -> BinaryIO | None:
    """A file of the log; None where there is none, or something that is not a file."""
    try:
        return os.fdopen(open_regular(path), "rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _numbers(path: Path) -> list[int]:
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)")
    found = [pattern.fullmatch(name) for name in _names_in(path.parent)]
    return sorted(int(match[1]) for match in found if match)


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return as_written_now(line) if isinstance(line, dict) else None


def _begin_of(raw: bytes, length: int) -> dict[str, Any] | None:
    """The first entries of a line of which not more than this was read; None where it has none."""
    text = raw.decode("utf-8", "ignore")
    line: dict[str, Any] = {}
    place = _ENTRY.match(text)
    while place is not None:
        try:
            value, end = _decoder.raw_decode(text, place.end())
            name = json.loads(place["name"])
        except (ValueError, RecursionError):
            break
        place = _ENTRY.match(text, end)
        if place is None:  # the rest of it may be missing
            break
        line[name] = value
    return as_written_now({**line, "too_long": length}) if line else None


_decoder: Final = json.JSONDecoder()
_ENTRY: Final = re.compile(r'\s*[{,]\s*(?P<name>"[^"\\]{1,100}")\s*:\s*')
