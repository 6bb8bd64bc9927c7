"""Whether a document is what a tool's result shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_LINES = 20  # at the beginning of a document; who has these has read it from there
_WIDTH = 500  # characters of a line; tools cut long ones
_LONGEST = 100_000  # characters of a document that are looked at


def beginning(document: Path) -> tuple[str, ...]:
    """The first lines of a document; none if it is not there, is empty, or is no text."""
    try:
        if not document.is_file():
            return ()
        with document.open(encoding="utf-8-sig", errors="replace") as file:
            text = file.read(_LONGEST)
    except OSError:
        return ()
    lines = (line.strip()[:_WIDTH] for line in text.splitlines())
    # Tools show what is not UTF-8 in their own ways.
    return tuple(line for line in lines if line and not {"\ufffd", "\0"} & set(line))[:_LINES]


def stands_in(lines: Sequence[str], result: str) -> bool:
    """Whether a document that begins with these lines is shown from its beginning.

    Not each line has to be there: tools mask what looks like a password.
    """
    shown = "\n".join(_texts(result))
    found = sum(line in shown for line in lines)
    return bool(lines) and lines[0] in shown and found * 4 >= len(lines) * 3


def was_shown_before(result: str) -> bool:
    """Whether read_file says, in place of the text, that the conversation has it already."""
    try:
        told = json.loads(result)
    except ValueError:
        return False
    return isinstance(told, dict) and (told.get("dedup") is True or "already_read" in told)


def _texts(result: str) -> Iterator[str]:
    """A result's text; of JSON, the texts in it, with their escapes undone."""
    try:
        told = json.loads(result)
    except ValueError:
        yield result
        return
    yield from _strings(told)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if value.get("error"):
            return
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
