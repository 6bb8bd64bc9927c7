"""Text out of a shell command, in which what nobody quoted is told apart from what was.

Characters that mean something because they stand in no quotes are replaced by private code points,
so that a word stays a plain string on its way through the shell's expansions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# What a variable or a substitution gives, that nobody can know.
HOLE: Final = "\ue000"
# The same in no quotes: it may be several words, or none.
MANY: Final = "\ue001"
STAR: Final = "\ue002"
QUESTION: Final = "\ue003"
BRACKET: Final = "\ue004"
OPEN: Final = "\ue005"
COMMA: Final = "\ue006"
CLOSE: Final = "\ue007"
TILDE: Final = "\ue008"
SPLIT: Final = "\ue009"
"""Where the text of an expansion that stands in no quotes is split into words."""
FIELD: Final = "\ue00a"
"""Where the next word begins, in quotes too: between the words of `"$@"`."""
EMPTY: Final = "\ue00b"
"""Quotes: a word that has them is one, even if there is nothing in them."""
RANGE: Final = "\ue00c"
"""The dots of `{1..3}`, where nothing in it is the value of a variable."""

SEQUENCE: Final = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
OURS: Final = re.compile("[\ue000-\ue00c\ue100-\ue13f]")
TAGS: Final = re.compile("[\ue100-\ue13f]")
"""Before a hole: what printed it, see `Recorder.tag`."""
HOLES: Final = re.compile(f"[{HOLE}{MANY}]")
GLOBS: Final = re.compile(f"[{STAR}{QUESTION}{BRACKET}]")

_ACTIVE: Final = str.maketrans(
    {"*": STAR, "?": QUESTION, "[": BRACKET, "{": OPEN, ",": COMMA, "}": CLOSE}
)
_OF_AN_EXPANSION: Final = str.maketrans(
    {"*": STAR, "?": QUESTION, "[": BRACKET, " ": SPLIT, "\t": SPLIT, "\n": SPLIT, HOLE: MANY}
)
_PLAIN: Final = str.maketrans(
    {
        STAR: "*", QUESTION: "?", BRACKET: "[", OPEN: "{", COMMA: ",", CLOSE: "}", TILDE: "~",
        RANGE: "..", SPLIT: " ", FIELD: " ", EMPTY: None, MANY: HOLE,
    }
)  # fmt: skip


def hole(values: Iterable[str]) -> str:
    """A hole that may come from whatever these may come from."""
    return "".join(dict.fromkeys(TAGS.findall("".join(values)))) + HOLE


def active(text: str) -> str:
    """Literal text in no quotes."""
    return text.translate(_ACTIVE)


def expanded(value: str) -> str:
    """The value of an expansion that stands in no quotes."""
    return value.translate(_OF_AN_EXPANSION)


def plain(text: str) -> str:
    """The text itself, with holes left in it."""
    return text.translate(_PLAIN)
