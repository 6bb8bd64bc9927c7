"""Whether the patterns of a schema get done with the texts of a value.

A regular expression with repeats in repeats may take years, and until it is done Python runs no
other thread: nothing in this process can end it. Patterns that may be slow are therefore tried in
a child process first, which can be ended.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

PATTERN_SECONDS = 3.0

_QUICK = 1e7  # steps, which take far less than a second
_MANY = 12  # repeats, and characters: they share them in more ways than that
_REPEATS = re.compile(r"(?<!\()[*+?{]")
# A group that is repeated; in verbose mode there may be a space between it and its repeat.
_NESTED = re.compile(r"\)[*+{]|\(\?[a-zA-Z]*x")
_TRY = """
import json, re, sys
patterns, texts = json.load(sys.stdin.buffer)
for pattern in patterns:
    try:
        search = re.compile(pattern).search
    except Exception:
        continue
    for text in texts:
        search(text)
"""


def patterns_end(schema: Any, value: Any) -> bool:
    """Whether each pattern of the schema gets done with all texts of the value in time."""
    patterns = {*_patterns(schema)}
    texts = {*_texts(value)} if patterns else set()
    slow = sorted(pattern for pattern in patterns if _may_be_slow(pattern, texts))
    return not slow or _tried(tuple(slow), tuple(sorted(texts)))


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), Mapping):
            yield from schema["patternProperties"]
        for below in schema.values():
            yield from _patterns(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from _patterns(below)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield str(key)
            yield from _texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below)


def _may_be_slow(pattern: str, texts: set[str]) -> bool:
    """By the number of its repeats and choices; of some that are quick it says so too."""
    repeats = len(_REPEATS.findall(pattern))
    if repeats and _NESTED.search(pattern):
        return True
    # A choice behind a choice doubles the ways, one beside the other adds to them.
    choices = math.prod(part.count("|") + 1 for part in pattern.split(")"))
    return choices * sum(_ways(repeats, len(text)) for text in texts) > _QUICK


def _ways(repeats: int, length: int) -> int:
    """In how many ways the repeats can share the text, times the places where they may begin."""
    fewer = min(repeats, length)
    if fewer > _MANY:
        return int(_QUICK) + 1
    return math.comb(repeats + length, fewer) * (length + 1)


@functools.lru_cache(maxsize=64)
def _tried(patterns: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    import subprocess  # late: few settings have patterns

    try:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRY],
            input=json.dumps([patterns, texts]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATTERN_SECONDS,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return True
