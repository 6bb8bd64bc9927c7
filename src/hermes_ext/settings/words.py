"""The words for what stands in settings and what was expected there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext._problems import did_you_mean
from hermes_ext._redaction import redacted
from hermes_ext._redaction.names import is_secret as is_secret_name
from hermes_ext.settings.yaml_nodes import kind_of, parse_document

_LONGEST = 200

# Of Python, of JSON Schema.
_TYPE_NAMES = {
    name: word
    for word, names in {
        "text": "str string",
        "a whole number": "int integer",
        "a number": "float number",
        "true or false": "bool boolean",
        "nothing": "NoneType null",
        "a list": "list tuple frozenset set array",
        "a mapping": "dict object",
    }.items()
    for name in names.split()
}


def type_word(name: str) -> str:
    """The words for a type of Python or of JSON Schema; those of others are their own names."""
    return _TYPE_NAMES.get(name, name)


def is_secret(path: Iterable[str | int]) -> bool:
    """Whether a key on the way to a value says that the value is nobody's to read."""
    return any(is_secret_name(step) for step in path if isinstance(step, str))


def holds_secret(value: Any) -> bool:
    """Whether there is a value in it that is nobody's to read."""
    return any(True for _ in _secrets(value, hidden=False))


def without_secrets(text: str, value: Any) -> str:
    """The text with what it quotes of a value's secrets left out."""
    for secret in _secrets(value, hidden=False):
        for written in (str(secret), repr(secret)[1:-1]):
            text = text.replace(written, "[redacted]") if written else text
    return text


def _secrets(value: Any, *, hidden: bool) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _secrets(below, hidden=hidden or is_secret([str(key)]))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _secrets(below, hidden=hidden)
    elif hidden and value is not None and not isinstance(value, bool):
        yield value


def shown(value: Any, path: Iterable[str | int] = ()) -> str:
    """What stands there, for `found …`; at the path of a secret only of what kind it is."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):  # of a secret as well: it says nothing
        return f"the boolean {str(value).lower()}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = type(value).__name__
    if isinstance(value, str | int | float):
        kind = "string" if isinstance(value, str) else "number"
    return f"a {kind}" if is_secret(path) else f"the {kind} {cut(redacted(repr(value)), 60)}"


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
