"""Canonical JSON, and digests of it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePath
from typing import Any, Final


def canonical_digest(value: Any) -> str:
    """SHA-256, in hex, of a value's canonical JSON.

    Equal JSON values have equal digests, in every process and whatever the order of their keys.
    A value that is not JSON counts by its content where that is plain (bytes, sets, paths), else
    by its type's name alone. Never raises for a value that does not change meanwhile.
    """
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def canonical_json(value: Any) -> str:
    """One line of strict ASCII JSON: keys sorted, no spaces, every control character escaped.

    Tuples are written as lists, keys that are not text as text. What is no JSON (NaN too) becomes
    an object with the single key `$type` or `$<type>`.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        # Keys of several types, NaN, a cycle, or deeper than the C encoder goes. What both can
        # write comes out the same, so a digest does not depend on the depth of the stack.
        text = _slow_json(value)
    # The one control character that JSON lets stand.
    return text.replace("\x7f", "\\u007f")


def _stand_in(value: Any) -> dict[str, Any]:
    """What is written for a value that JSON does not have."""
    if isinstance(value, bytes | bytearray):
        return {"$bytes": value.hex()}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if isinstance(value, set | frozenset):
        return {"$set": sorted(canonical_json(item) for item in value)}
    kind = type(value)
    return {"$type": f"{kind.__module__}.{kind.__qualname__}"}


_encoder: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, default=_stand_in
)


def _slow_json(value: Any) -> str:
    """As `_encoder`, without recursion: a stack of what is to be written next."""
    written: list[str] = []
    open_ids: set[int] = set()
    stack: list[tuple[str, Any]] = [("value", value)]
    while stack:
        kind, item = stack.pop()
        if kind == "text":
            written.append(item)
        elif kind == "end":
            open_ids.discard(item)
        elif isinstance(item, list | tuple | dict):
            if id(item) in open_ids:
                written.append('{"$type":"cycle"}')
                continue
            open_ids.add(id(item))
            stack.append(("end", id(item)))
            stack.extend(reversed(_parts(item)))
        elif isinstance(text := _scalar(item), str):
            written.append(text)
        else:
            stack.append(("value", text))
    return "".join(written)


def _parts(item: Any) -> list[tuple[str, Any]]:
    parts: list[tuple[str, Any]] = []
    if not isinstance(item, dict):
        for value in item:
            parts += [("text", "," if parts else ""), ("value", value)]
        return [("text", "["), *parts, ("text", "]")]
    for key, value in _sorted_pairs(item):
        name = json.dumps(key if isinstance(key, str) else canonical_json(key))
        parts += [("text", f"{',' if parts else ''}{name}:"), ("value", value)]
    return [("text", "{"), *parts, ("text", "}")]


def _sorted_pairs(item: dict[Any, Any]) -> list[tuple[Any, Any]]:
    try:
        return sorted(item.items(), key=lambda pair: pair[0])
    except TypeError:
        return sorted(item.items(), key=lambda pair: canonical_json(pair[0]))


def _scalar(item: Any) -> Any:
    """The JSON of a value without members, or a container that stands for it."""
    try:
        if item is None or isinstance(item, str | int | float):
            return _encoder.encode(item)
    except ValueError:
        # NaN and infinities; an integer of more digits than Python turns into decimal.
        if isinstance(item, float):
            return {"$float": float.__repr__(item)}
        return {"$int": hex(item)}
    return _stand_in(item)


# -- what can be read back ------------------------------------------------------------------------


def readable(value: Any) -> Any:
    """The value; where it is nested deeper than readers of JSON go, its JSON as a text."""
    text = canonical_json(value)
    if text.count("[") + text.count("{") <= _DEEP:
        return value
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return value if deepest <= _DEEP else {"$deep": text}


_DEEP: Final = 500
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETS: Final = re.compile(r"[][{}]")
