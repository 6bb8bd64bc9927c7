"""Private keys: from their first line to their last, or as much of them as a text holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits

_MARK = re.compile(
    r"(?P<begin>-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|PuTTY-User-Key-File-\d:[^\r\n]{0,80})"
    r"|-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-MAC: [0-9a-f]+"
)
_LARGEST = 64_000  # characters between the marks of a key

# A line of a key: base64, maybe with a line's number before it, and the marks of a list, a
# quotation or a string around it. Possessive: a line that is none is seen to be none at once.
_LINE = re.compile(r"""\s*+(?:\d++\|)?[\s"'>#*,]*+(?P<core>[A-Za-z0-9+/=]*+)[\s"',;+\\]*+""")
_HEADER = re.compile(r"\s*+(?:\d++\|)?\s*+[A-Za-z-]{3,30}: .*")
_LINES = re.compile(r"(?<=\n)(?=.)", re.DOTALL)
_BASE64 = f"{ascii_letters}{digits}+/="
_LONG = 16  # characters of base64 that are no word
_SOME = re.compile("[A-Za-z0-9+/]{4}")


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys are. A mark with nothing of a key beside it is none."""
    if "PRIVATE KEY" not in text and "PuTTY-User-Key-File" not in text:
        return
    marks = [*_MARK.finditer(text)]
    place = 0
    for number, mark in enumerate(marks):
        if mark.start() < place:
            continue
        later = marks[number + 1] if number + 1 < len(marks) else None
        limit = later.start() if later else len(text)
        if not mark["begin"]:
            begin, end = mark.start() - _before(text[place : mark.start()]), mark.end()
            inner = text[begin : mark.start()]
        elif later and not later["begin"] and limit - mark.end() <= _LARGEST:
            begin, end = mark.start(), later.end()
            inner = text[mark.end() : limit]
        else:
            begin, end = mark.start(), mark.end() + _after(text[mark.end() : limit])
            inner = text[mark.end() : end]
        place = mark.end()
        if _SOME.search(inner):
            yield begin, end
            place = end


def _after(text: str) -> int:
    """How many characters at the begin of a text belong to a key that has no end."""
    length = 0
    for line in _LINES.split(text[:_LARGEST]):
        if not (_LINE.fullmatch(line) or _HEADER.match(line)):
            # The text of JSON ends in the middle of a line.
            found = _LINE.match(line)
            return length + (found.end() if found and len(found["core"]) >= _LONG else 0)
        length += len(line)
    return length


def _before(text: str) -> int:
    """How many characters at the end of a text belong to a key whose begin is not there."""
    length = 0
    for line in reversed(_LINES.split(text[-_LARGEST:])):
        found = _LINE.fullmatch(line)
        # Nothing but a number or a quotation mark may stand before the mark itself.
        if not found or (length and not found["core"]):
            core = line.rstrip("\"',;+\\ \t\r\n")
            more = len(core) - len(core.rstrip(_BASE64))
            return length + (len(line) - len(core) + more if more >= _LONG else 0)
        length += len(line)
    return length
