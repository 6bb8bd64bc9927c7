"""Settings by an attrs class: the one that the extension's module calls `Config`.

Its fields are the keys, checked against their annotations.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import os
import types
import typing
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import attrs

from hermes_ext._redaction import redacted
from hermes_ext.settings.words import (
    cut,
    holds_secret,
    is_secret,
    near,
    quotes_hint,
    shown,
    type_word,
    without_secrets,
)

Place = tuple[str | int, ...]


class Wrong(Exception):  # noqa: N818 - it names a condition; callers turn it into a Problem
    """The value at a path is none that the class takes."""

    def __init__(self, path: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint


def settings_class(module: object, package: str) -> type | None:
    """The attrs class that a module calls `Config`, or None.

    package: the class counts if it is defined there or below; a library's `Config` does not.
    """
    found = getattr(module, "Config", None)
    if not inspect.isclass(found) or not attrs.has(found):
        return None
    return found if f"{found.__module__}.".startswith(f"{package}.") else None


def class_defaults(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given`, with the class's defaults as plain values; those that need an instance are out."""
    hints = _hints(cls)
    filled = dict(given)
    for each in attrs.fields(cls):
        key, default = each.alias, each.default
        if key in given:
            below = hints.get(each.name)
            if isinstance(given[key], dict) and inspect.isclass(below) and attrs.has(below):
                filled[key] = class_defaults(below, given[key])
        elif each.init and default is not attrs.NOTHING:
            # What a factory raises, it raises again where an instance is made, and that is told.
            with contextlib.suppress(Exception):
                if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a function to mypy
                    filled[key] = _plain(default)
                elif not default.takes_self:
                    filled[key] = _plain(default.factory())
    return filled


def _plain(value: Any) -> Any:
    """The value as a settings file would hold it, as far as there is a way."""
    if attrs.has(type(value)):
        fields = (each for each in attrs.fields(type(value)) if each.init)
        return {each.alias: _plain(getattr(value, each.name)) for each in fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def instance(cls: type, raw: Any, path: Place = ()) -> Any:
    """An instance made of plain values. Raises Wrong."""
    if not isinstance(raw, Mapping):
        raise Wrong(path, f"found {shown(raw, path)}, expected a mapping")
    fields = {each.alias: each for each in attrs.fields(cls) if each.init}
    for key in raw:
        if key not in fields:
            raise Wrong((*path, str(key)), "is not a setting", near(str(key), fields))
    for key, each in fields.items():
        if each.default is attrs.NOTHING and key not in raw:
            raise Wrong(path, f"the setting {key!r} is missing")
    hints = _hints(cls)
    values = {
        key: _checked(value, hints.get(fields[key].name, Any), (*path, key))
        for key, value in raw.items()
    }
    try:
        return cls(**values)
    except Exception as error:  # whatever the author's validators raise
        told = without_secrets(_first_argument(error), raw)
        raise Wrong(path, f"{type(error).__name__}: {cut(redacted(told))}") from error


def _hints(cls: type) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # noqa: BLE001 - the author's annotations; unchecked is better than unusable
        return {}


def _first_argument(error: Exception) -> str:
    # attrs' validators put the attribute, the options and the value behind the message.
    return str(error.args[0]) if error.args else str(error)


def _checked(value: Any, hint: Any, path: Place) -> Any:
    try:
        return _typed(value, hint, path)
    except Wrong:
        raise
    except Exception as error:  # a number that is too large, an annotation that checks nothing
        told = type(error).__name__
        if not is_secret(path) and not holds_secret(value):
            told = f"{told}: {cut(redacted(_first_argument(error)))}"
        raise Wrong(path, f"cannot be checked: {told}") from error


def _typed(value: Any, hint: Any, path: Place) -> Any:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin is typing.Union or origin is types.UnionType:
        return _one_of(value, arguments, path)
    if origin is typing.Literal:
        if not any(value == each and type(value) is type(each) for each in arguments):
            raise Wrong(path, f"found {shown(value, path)}, expected {_alternatives(arguments)}")
        return value
    kind = origin or hint
    return _of_class(value, kind, arguments, path) if inspect.isclass(kind) else value


def _of_class(value: Any, kind: type, arguments: Sequence[Any], path: Place) -> Any:
    if issubclass(kind, Mapping):
        return _mapping(value, arguments, path)
    if issubclass(kind, Sequence | Set) and not issubclass(kind, str | bytes):
        return _collection(value, kind, arguments, path)
    return _scalar(value, kind, path)


def _one_of(value: Any, hints: Sequence[Any], path: Place) -> Any:
    wrong: list[Wrong] = []
    for hint in hints:
        try:
            return _typed(value, hint, path)
        except Wrong as error:
            wrong.append(error)
    deepest = max(wrong, key=lambda error: len(error.path))
    if len(deepest.path) > len(path):
        raise deepest
    expected = " or ".join(_type_name(hint) for hint in hints)
    raise Wrong(path, f"found {shown(value, path)}, expected {expected}")


def _mapping(value: Any, arguments: Sequence[Any], path: Place) -> Any:
    if not isinstance(value, Mapping):
        raise Wrong(path, f"found {shown(value, path)}, expected a mapping")
    key_hint, below = (*arguments, Any, Any)[:2]
    return {
        _typed(key, key_hint, path): _typed(each, below, (*path, key))
        for key, each in value.items()
    }


def _collection(value: Any, kind: type, arguments: Sequence[Any], path: Place) -> Any:
    if not isinstance(value, list):
        raise Wrong(path, f"found {shown(value, path)}, expected a list", quotes_hint(value))
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(arguments) != len(value):
            raise Wrong(path, f"found a list of {len(value)}, expected {len(arguments)} items")
        hints: Sequence[Any] = arguments
    else:
        hints = [arguments[0] if arguments else Any] * len(value)
    items = [
        _typed(each, hint, (*path, index))
        for index, (each, hint) in enumerate(zip(value, hints, strict=True))
    ]
    if inspect.isabstract(kind):
        return frozenset(items) if issubclass(kind, Set) else tuple(items)
    try:
        return kind(items)
    except TypeError as error:  # a set of mappings
        raise Wrong(path, f"found {shown(value, path)} that makes no {kind.__name__}") from error


def _scalar(value: Any, kind: type, path: Place) -> Any:
    if attrs.has(kind):
        return instance(kind, value, path)
    if issubclass(kind, enum.Enum):
        return _member(value, kind, path)
    if issubclass(kind, Path) and isinstance(value, str):
        return kind(os.path.expanduser(value))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # To Python true is a number; to the person who wrote the file it is not.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        told = f"found {shown(value, path)}, expected {_type_name(kind)}"
        raise Wrong(path, told, quotes_hint(value))
    return value


def _member(value: Any, kind: type[enum.Enum], path: Place) -> enum.Enum:
    for member in kind:
        if member.value == value:
            return member
    known = _alternatives([member.value for member in kind])
    raise Wrong(path, f"found {shown(value, path)}, expected {known}")


def _alternatives(values: Sequence[Any]) -> str:
    return " or ".join(repr(value) for value in values)


def _type_name(hint: Any) -> str:
    return type_word(getattr(typing.get_origin(hint) or hint, "__name__", str(hint)))
