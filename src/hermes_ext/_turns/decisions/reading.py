"""Reading the decision log, across its rotated files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_ext._turns.decisions.log import rotated


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


def _newest_first(path: Path) -> Iterator[bytes]:
    """The content of each file once, also when they are rotated while this reads."""
    seen: set[tuple[int, int]] = set()
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)")
    found = [pattern.fullmatch(name) for name in _names_in(path.parent)]
    numbers = sorted(int(match[1]) for match in found if match)
    # One more than there are: the current file may become number 1 in between.
    for candidate in [path, *(rotated(path, n) for n in [*numbers, (numbers or [0])[-1] + 1])]:
        try:
            with open(candidate, "rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                yield file.read()
        except (FileNotFoundError, IsADirectoryError):
            continue


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None
