"""The plan: whether it counts, and in words why not."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 1_000_000
"""Bytes. A larger plan does not count."""

MISSING = "is missing"
"""The fault of a plan that is not there."""

_FENCE = re.compile(r"\s{0,3}```")
# Of Markdown, AsciiDoc and Org; and the line below one in Markdown and reStructuredText.
_HEADING = re.compile(r"(?:#{1,6}|={1,6}|\*{1,6})\s+(\S.*)")
_UNDERLINE = re.compile(r"(?:=+|-+|~+|\^+)\s*")
_HOUR = 3600


class _Fault(Exception):  # noqa: N818 - an answer, which becomes part of a message
    """Why the plan does not count."""


@dataclass(frozen=True)
class Plan:
    """The file that has to be there.

    place: absolute; None where the host does not know the project. rules: the setting `plan`.
    """

    place: Path | None
    rules: Mapping[str, Any]

    def fault(self) -> str | None:
        """Why it does not count, as in "plan.md is missing"; None if it does."""
        try:
            faults = list(self._faults_of(*self._read()))
        except _Fault as fault:
            return str(fault)
        except (OSError, ValueError) as error:
            return f"cannot be read ({getattr(error, 'strerror', None) or error})"
        return in_words(faults) or None

    def needs(self) -> str:
        """What it has to have, in a sentence; empty if text in it is enough."""
        needs = [f"the heading {_quoted(each)}" for each in self.rules["headings"]]
        if self.rules["status"]:
            needs.append(f"the line {_quoted(': '.join(self._status()))}")
        return f"It needs {in_words(needs)}." if needs else ""

    def _read(self) -> tuple[str, float]:
        """Its text, and when it was changed."""
        if self.place is None:
            raise _Fault("is in no project that is known")
        _check_place(self.place)
        with open(self.place, encoding="utf-8-sig", errors="replace", opener=_opened) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _Fault("is not a regular file")
            if found.st_size > LARGEST:
                raise _Fault(f"is larger than {LARGEST // 1_000_000} MB")
            return file.read(LARGEST), found.st_mtime

    def _faults_of(self, text: str, changed: float) -> Iterator[str]:
        if not text.strip():
            yield "is empty"
            return
        lines = list(_outside_of_code(text))
        headings = set(_headings(lines))
        for wanted in self.rules["headings"]:
            if _bare(wanted.lstrip("#=* ")) not in headings:
                yield f"has no heading {_quoted(wanted)}"
        hours = self.rules["max_age_hours"]
        # Of a time that is yet to come nobody knows how old it is.
        if hours is not None and abs(time.time() - changed) > hours * _HOUR:
            yield f"was not changed in the last {hours:g} hours"
        if self.rules["status"] and not self._has_status(lines):
            yield f"has no line {_quoted(': '.join(self._status()))}"

    def _status(self) -> tuple[str, str]:
        """What stands before the colon of the line, and behind it."""
        before, _, behind = self.rules["status"].rpartition(":")
        return before.strip() or "Status", behind.strip()

    def _has_status(self, lines: list[str]) -> bool:
        """Whether the first line of that name says what it should."""
        before, wanted = self._status()
        line = re.compile(rf"[\W_]*{re.escape(before)}[\W_]*?:(.*)", re.IGNORECASE)
        found = next((match[1] for each in lines if (match := line.match(each))), None)
        return found is not None and _without_marks(found) == _without_marks(wanted)


def in_words(names: list[str] | tuple[str, ...]) -> str:
    """`a`, `a and b`, `a, b and c`; empty for none."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _check_place(place: Path) -> None:
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise _Fault(MISSING) from None
    # Else a link would make any file the plan, and the plan's place a way to write that file.
    if os.path.realpath(place) != str(place):
        raise _Fault("is a link, or lies behind one; plan_path has to name the file itself")
    if stat.S_ISDIR(mode):
        raise _Fault("is a directory")
    if not stat.S_ISREG(mode):
        raise _Fault("is not a regular file")


def _opened(path: str, flags: int) -> int:
    """The file, were it exchanged meanwhile: never through a link, never waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _outside_of_code(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def _headings(lines: list[str]) -> Iterator[str]:
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        found = _HEADING.match(line)
        if found:
            yield _bare(found[1])
        elif line.strip() and _UNDERLINE.fullmatch(below):
            yield _bare(line)


def _bare(heading: str) -> str:
    """A heading without its number and the marks around it."""
    return _without_marks(re.sub(r"^[\W\d_]+", "", heading))


def _without_marks(text: str) -> str:
    found = re.search(r"[^\W_](?:.*[^\W_])?", text)
    return found[0].casefold() if found else ""


def _quoted(text: str) -> str:
    return f'"{text}"'
