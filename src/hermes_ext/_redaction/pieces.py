"""Searching long texts in pieces: between two of them other threads have their turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

PIECE: Final = 128_000  # characters; a pattern is through with them in a few milliseconds
_BEYOND: Final = 8_000  # what is looked at behind a piece, for a match that begins in it


@cache
def compiled(text: str) -> re.Pattern[str]:
    """The pattern, compiled once: most texts have no sign of most of the patterns."""
    return re.compile(text)


def pieces(length: int) -> Iterator[tuple[int, int]]:
    """Begins and ends of the pieces of a text of this length."""
    for begin in range(0, length, PIECE):
        yield begin, min(begin + PIECE, length)


def found(pattern: re.Pattern[str], text: str, begin: int, end: int) -> Iterator[re.Match[str]]:
    """The matches that begin in a piece of a text; each may be as long as it likes."""
    limit = min(end + _BEYOND, len(text))
    place = begin
    while place < end:
        match = pattern.search(text, place, limit)
        if match is None or match.start() >= end:
            return
        if match.end() == limit < len(text):
            match = pattern.match(text, match.start()) or match
        yield match
        place = max(match.end(), place + 1)


def lowered(text: str) -> str:
    """The text in lower case, in which each place is the same."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


_ESCAPE: Final = re.compile(r"\\++(?P<meant>[nrt\"'`/]?)")
# Colors of a terminal, and blanks that do not break; as JSON and Python write them, too.
_NOT_SHOWN: Final = re.compile(
    r"(?:\x1b|\\{1,8}(?:u00|x)1[bB])\[[\d;]{0,20}[A-Za-z]|\xa0|\\{1,8}(?:u00|x)[aA]0"
)
_MEANT: Final = {"n": "\n", "r": "\r", "t": "\t", "/": "/"}


def unescaped(text: str) -> str:
    r"""The text as JSON and programs mean it, in which each place is the same: no `n` of an `\n`
    is taken for the first letter of what follows. An escaped quotation mark becomes a row of them.
    """
    if any(sign in text for sign in ("\x1b", "\xa0", "\\u00", "\\x")):
        text = _NOT_SHOWN.sub(lambda match: " " * len(match[0]), text)
    return _ESCAPE.sub(_as_meant, text) if "\\" in text else text


def _as_meant(match: re.Match[str]) -> str:
    char = match["meant"]
    if not char:
        return match[0]
    length = match.end() - match.start()
    return _MEANT[char].rjust(length) if char in _MEANT else char * length
