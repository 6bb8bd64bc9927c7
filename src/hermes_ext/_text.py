"""Text: out of the contents of messages, and made fit to be shown."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

# What Python calls printable though nothing is seen of it: joiners, fillers, variation selectors.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f"
    "\U000e0100-\U000e01ef]"
)

_WORD: Final = re.compile(r"[\w./-]+")


def text_of(content: Any) -> str:
    """The text of a message's content: itself, or its text parts, one per line."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_text, content)))
    return ""


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def printable(text: str | Path) -> str:
    r"""The text with what no terminal or UTF-8 file can take written out: `\xff`, `\x1b`, `\n`.

    So it can neither redraw a prompt nor break a line: a right-to-left override is `\u202e`. What
    has no shape of its own is written out too, also behind an emoji: `\ufe0f`.
    """
    raw = str(text)
    if raw.isprintable() and (raw.isascii() or not _INVISIBLE.search(raw)):
        return raw
    return "".join(_escaped(char) if _is_unseen(char) else char for char in raw)


def printable_lines(text: str) -> str:
    """The same line by line: line ends stay."""
    return "\n".join(map(printable, text.split("\n")))


@functools.lru_cache(maxsize=4096)
def canonical_name(name: str) -> str:
    """The one form in which names of extensions are compared.

    Case, and runs of `-`, `_`, `.` and blanks make no difference: `Ping_Island` is `ping-island`.
    """
    return re.sub(r"[-_.\s]+", "-", unicodedata.normalize("NFKC", name).casefold())


def is_same_name(one: str, other: str) -> bool:
    """Whether two names mean the same extension."""
    return canonical_name(one) == canonical_name(other)


def near_names(name: str, known: Iterable[str], most: int, cutoff: float) -> list[str]:
    """The known names that are most like a name, in the form in which they are compared."""
    from difflib import get_close_matches

    written = {canonical_name(each): each for each in known}
    return [
        written[near] for near in get_close_matches(canonical_name(name), written, most, cutoff)
    ]


def as_name(text: str | Path, longest: int) -> str:
    """A name for a sentence: printable, cut, and in quotes unless it is one plain word.

    So it can neither go on as a sentence of its own nor drown what is said.
    """
    shown = printable(text)
    if len(shown) > longest:
        shown = f"{shown[: longest - 3]}..."
    return shown if _WORD.fullmatch(shown) else "'{}'".format(shown.replace("'", r"\'"))


def _is_unseen(char: str) -> bool:
    return not char.isprintable() or _INVISIBLE.fullmatch(char) is not None


def _escaped(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8, as Python holds it in a file name
        return os.fsencode(char).hex().join((r"\x", ""))
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")
