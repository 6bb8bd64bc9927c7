"""What a host can send: text that has a UTF-8 form, values that have a JSON form.

A file name that is not UTF-8 comes from `os.listdir` with lone surrogates, and one of them in a
request makes the whole request fail, far from the handler that put it there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from math import isfinite
from typing import Any, Final

DEEPEST: Final = 100
"""How many dicts and lists may be inside of each other. JSON encoders stop at a few hundred."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ATOMS: Final = frozenset({bool, type(None)})
_LARGEST: Final = 10**4_300  # Python writes no number out that has more digits, unless told to


class Unsendable(ValueError):  # noqa: N818 - not an error to callers: it becomes a handler's failure
    """A value that no JSON can carry; the text says where in it, and what."""


def has_surrogates(text: str) -> bool:
    """Whether a text has lone surrogates, so that it cannot be encoded."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def sendable_text(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate; the same object if it has none."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def sendable(value: Any, known: Iterable[Any] = (), *, replace: bool = True) -> Any:
    """The value with each text in it as `sendable_text` has it; the same object if none changes.

    Args:
        value: what is to be sent, of plain types. Nobody else may be able to change it.
        known: objects that are the host's own, which are left as they are.
        replace: False to raise for a lone surrogate, where another text would mean another thing.

    Raises:
        Unsendable: it holds something that JSON does not have, contains itself, or is nested more
            than `DEEPEST` levels deep.
    """
    if type(value) is dict and _is_plain(value):
        return value
    return _Walk(frozenset(map(id, known)), replace).clean(value, ())


def is_sendable(value: Any, *, replace: bool = True) -> bool:
    """Whether `sendable` takes a value."""
    try:
        sendable(value, replace=replace)
    except Unsendable:
        return False
    return True


class _Walk:
    def __init__(self, known: Collection[int], replace: bool) -> None:
        self.known = known
        self.replace = replace
        self.around: set[int] = set()

    def clean(self, value: Any, path: tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value, path)
        if kind in _ATOMS or id(value) in self.known:
            return value
        if kind is float:
            if isfinite(value):
                return value
            raise Unsendable(f"{value} at {_shown(path)}, which JSON does not have")
        if isinstance(value, (dict, list, tuple)):
            return self._container(value, path)
        if isinstance(value, (int, float)):
            if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
                raise Unsendable(f"a number of more than 4,300 digits at {_shown(path)}")
            return value
        raise Unsendable(f"a {kind.__name__} at {_shown(path)}, which JSON does not have")

    def _text(self, text: str, path: tuple[Any, ...]) -> str:
        if not self.replace and has_surrogates(text):
            raise Unsendable(f"a lone surrogate at {_shown(path)}, which is not valid Unicode text")
        return sendable_text(text)

    def _container(self, value: Any, path: tuple[Any, ...]) -> Any:
        if id(value) in self.around:
            raise Unsendable(f"a value that contains itself, at {_shown(path)}")
        if len(path) >= DEEPEST:
            raise Unsendable(f"a value that is nested more than {DEEPEST} levels deep")
        if isinstance(value, dict) and _is_plain(value):
            return value
        self.around.add(id(value))
        made = self._dict(value, path) if isinstance(value, dict) else self._list(value, path)
        self.around.discard(id(value))
        return made

    def _dict(self, value: dict[Any, Any], path: tuple[Any, ...]) -> Any:
        made = {self._key(key, path): self.clean(each, (*path, key)) for key, each in value.items()}
        same = all(map(_is_same, made, value)) and all(map(_is_same, made.values(), value.values()))
        return value if same else made

    def _key(self, key: Any, path: tuple[Any, ...]) -> str:
        if not isinstance(key, str):
            raise Unsendable(f"a key of type {type(key).__name__} in {_shown(path)}")
        return self._text(key, path)

    def _list(self, value: Any, path: tuple[Any, ...]) -> Any:
        items = list.__iter__(value) if isinstance(value, list) else value
        made = [self.clean(each, (*path, place)) for place, each in enumerate(items)]
        items = list.__iter__(value) if isinstance(value, list) else value
        return value if all(map(_is_same, made, items)) else made


def _is_plain(value: dict[Any, Any]) -> bool:
    """Whether a dict holds only what can be sent as it is; most do, and this is quick."""
    for key, each in value.items():
        if type(key) is not str or not key.isascii():
            return False
        kind = type(each)
        if kind is int:
            if not -_LARGEST < each < _LARGEST:
                return False
        elif not (each.isascii() if kind is str else kind in _ATOMS):
            return False
    return True


def _is_same(one: Any, other: Any) -> bool:
    return one is other


def _shown(path: tuple[Any, ...]) -> str:
    steps = (f"[{step!r}]" if isinstance(step, int) else f".{step}" for step in path)
    return "$" + sendable_text("".join(steps))
