"""The words for what stands in settings and what was expected there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext._install.records import did_you_mean
from hermes_ext._install.yaml_nodes import kind_of, parse_document

_LONGEST = 200

# Of Python, of JSON Schema.
_TYPE_NAMES = {
    "str": "text",
    "string": "text",
    "int": "a whole number",
    "integer": "a whole number",
    "float": "a number",
    "number": "a number",
    "bool": "true or false",
    "boolean": "true or false",
    "NoneType": "nothing",
    "null": "nothing",
    "list": "a list",
    "tuple": "a list",
    "frozenset": "a list",
    "set": "a list",
    "array": "a list",
    "dict": "a mapping",
    "object": "a mapping",
}


def type_word(name: str) -> str:
    """The words for a type of Python or of JSON Schema; those of others are their own names."""
    return _TYPE_NAMES.get(name, name)


def shown(value: Any) -> str:
    """What stands there, for `found …`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = (
        "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else ""
    )
    return f"the {kind or type(value).__name__} {cut(repr(value), 60)}"


def quotes_hint(value: Any) -> str | None:
    """What to do about a text that was meant to be something else."""
    if not isinstance(value, str):
        return None
    meant = parse_document(Path(), value.encode("utf-8", "replace")).root
    is_text = meant is None or kind_of(meant) in {"str", "null"}
    return None if is_text else "Take the quotes away"


def near(name: str, known: Mapping[str, Any]) -> str | None:
    """What may have been meant by the name of a setting that there is not."""
    return did_you_mean(name, known) or (f"Settings: {', '.join(known)}" if known else None)


def steps(path: Sequence[str | int]) -> Iterator[str]:
    """The parts of a path behind its name: `.key`, `[0]`."""
    return (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def cut(text: str, length: int = _LONGEST) -> str:
    """The text, shortened where it is long."""
    return text if len(text) <= length else f"{text[: length - 3]}..."
