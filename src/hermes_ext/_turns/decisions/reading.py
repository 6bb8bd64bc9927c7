"""Reading the decision log, across its rotated files."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from hermes_ext._turns.decisions.log import rotated

_LOOK_EVERY_SECONDS: Final = 0.2


def read_decisions(
    path: str | os.PathLike[str], last: int | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of a decision log, oldest first, across its rotated files.

    Lines that are torn or no JSON object are left out. A log that does not exist has none.

    Args:
        path: the current file.
        last: only the newest so many; None gives all.

    Raises:
        OSError: a file is there and cannot be read.
    """
    newest_first: list[list[dict[str, Any]]] = []
    missing = last
    for content in _newest_first(Path(path)):
        if missing is not None and missing <= 0:
            break
        lines = [line for raw in content.split(b"\n") if (line := _parsed(raw)) is not None]
        newest_first.append(lines if missing is None else lines[-missing:])
        missing = None if missing is None else missing - len(newest_first[-1])
    for lines in reversed(newest_first):
        yield from lines


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
            file, begun = waiting.pop(0), b""
            with file:
                while True:
                    ended = bool(waiting) or not _is_at(file, path)
                    *whole, begun = (begun + file.read()).split(b"\n")
                    yield from filter(None, map(_parsed, whole))
                    if ended:
                        break
                    if os.fstat(file.fileno()).st_size < file.tell():  # somebody emptied it
                        file.seek(0)
                        begun = b""
                    pause()
                waiting = waiting or _opened(path, os.fstat(file.fileno()))
    finally:
        for each in waiting:
            each.close()


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


def _newest_first(path: Path) -> Iterator[bytes]:
    """The content of each file once, also when they are rotated while this reads."""
    seen: set[tuple[int, int]] = set()
    numbers = _numbers(path)
    # One more than there are: the current file may become number 1 in between.
    for candidate in [path, *(rotated(path, n) for n in [*numbers, (numbers or [0])[-1] + 1])]:
        file = _open(candidate)
        if file is None:
            continue
        with file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield file.read()


def _open(path: Path) -> BinaryIO | None:
    """A file of the log; None where there is none.

    What is no file would not come to an end: a pipe that nobody writes to, a device.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - closed by who reads it
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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
    return line if isinstance(line, dict) else None
