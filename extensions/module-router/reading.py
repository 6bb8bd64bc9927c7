"""Whether a document is what a tool's result shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LINES = 20  # at the beginning of a document; who has these has read it from there
_LONGEST = 1_000_000  # characters of a document that are looked at


def stands_in(document: Path, result: str) -> bool:
    """Whether the first lines of a document, all of them if it is short, stand in a result."""
    try:
        with document.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST)
    except OSError:
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_LINES]
    shown = "\n".join(_texts(result))
    return bool(lines) and all(line in shown for line in lines)


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
