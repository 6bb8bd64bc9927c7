"""Texts in quotes that look random. In time that grows with the text, whatever is in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final

from hermes_ext._redaction.pieces import found

_QUOTED: Final = re.compile(r"(?<=[\"'])[\w+/=-]{16,}+(?=\\{0,8}[\"'])")
_HEX: Final = re.compile(r"[0-9a-fA-F]++\Z")
_BITS_OF_HEX: Final = 3.0  # for each character; a random text has 4, and words have few letters
_BITS_OF_BASE64: Final = 4.5  # of 6
_LOOKED_AT: Final = 1_000  # characters of one text: more of them say no more


def random_texts(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the texts in quotes that look random begin and end, in a piece of a text."""
    for match in found(_QUOTED, text, begin, end):
        sample = match[0][:_LOOKED_AT]
        least = _BITS_OF_HEX if _HEX.match(sample) else _BITS_OF_BASE64
        if not sample.isdigit() and _bits(sample) >= least:
            yield match.span()


def _bits(text: str) -> float:
    """Shannon's entropy of a text's characters, in bits for each."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * log2(share) for share in shares)
