"""The settings that a handler names for what it decided, with the values that it decided by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, TypeAlias

import attrs

from hermes_ext._text import canonical_name, printable
from hermes_ext._values import frozen

PREFIX: Final = "extensions."
DEFAULT: Final = "default"
_PLACE: Final = r"\[\d+\]"  # of `rules[0]`
_MOST: Final = 4
_LONGEST: Final = 1_000  # characters of a value as JSON


@frozen
class Setting:
    """One setting.

    Attributes:
        key: with dots in nested mappings; within one extension without its name.
        value: None where the key names no value, or more than can be shown.
        origin: `default`, or a place such as `config.yaml:12`; None: not known.
        file: the file of that place, with its folder; None for a default.
    """

    key: str
    value: Any = None
    origin: str | None = None
    file: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data without secrets; a long value is its JSON, cut short."""
        return {
            "key": printable(self.key),
            "value": _shown(self.key.split("."), self.value),
            "from": self.origin,
            "file": None if self.file is None else printable(self.file),
        }


Leaves: TypeAlias = Callable[[], Iterable[Setting]]
"""Gives all settings of one extension."""


def named_in(metadata: Mapping[str, Any] | None) -> Any:
    """What a result's metadata names as the setting that made the handler decide so."""
    return None if metadata is None else metadata.get("setting")


def keys_named(named: Any) -> tuple[str, ...]:
    """The keys that a handler names as `setting`: one, or several."""
    keys = [named] if isinstance(named, str) else named
    if not isinstance(keys, list | tuple):
        return ()
    return tuple(str(key) for key in keys if isinstance(key, str) and key)


def settings_named(
    named: Any, extension: str, config: Any, leaves: Leaves | None
) -> tuple[Setting, ...]:
    """The settings that a handler names, one or several, with their values.

    Args:
        named: what it named: a key or a list of keys, in whatever form authors write them.
        extension: its own.
        config: that extension's settings, as handlers get them.
        leaves: the same with their places; None where these are not known.
    """
    found = (_named(key, extension, config, leaves) for key in keys_named(named))
    return tuple(setting for each in found for setting in each)


def _named(key: str, extension: str, config: Any, leaves: Leaves | None) -> Iterator[Setting]:
    """One key: a setting, the few below it, or nothing more than the key itself."""
    wanted = _within(key, extension)
    there = [*(leaves() if leaves is not None else _flat(config, ()))] if wanted else []
    found = [each for each in there if each.key == wanted]
    found = found or [each for each in there if each.key.startswith(f"{wanted}.")]
    if not 0 < len(found) <= _MOST:
        yield Setting(key)
        return
    for each in found:
        yield attrs.evolve(each, key=f"{PREFIX}{extension}.{each.key}")


def _within(key: str, extension: str) -> str:
    """The key without what stands before the extension's own part."""
    path = re.sub(_PLACE, "", key).removeprefix(PREFIX).split(".")
    if canonical_name(path[0]) == canonical_name(extension):
        path = path[1:]
    return ".".join(path)


def _flat(value: Any, path: tuple[str, ...]) -> Iterator[Setting]:
    if attrs.has(type(value)):
        value = {each.alias: getattr(value, each.name) for each in attrs.fields(type(value))}
    if isinstance(value, Mapping) and (value or not path):
        for key, below in value.items():
            yield from _flat(below, (*path, str(key)))
    elif path:
        yield Setting(".".join(path), value)


def _shown(path: list[str], value: Any) -> Any:
    """A value without secrets, and not longer than anybody reads."""
    from hermes_ext._redaction import redacted

    nested = _plain(value)
    for name in reversed(path):
        nested = {name: nested}
    told = redacted(nested)
    for _ in path:
        if not isinstance(told, Mapping):  # all below a name is hidden
            break
        (told,) = told.values()
    text = json.dumps(told, ensure_ascii=False, default=str)
    if len(text) <= _LONGEST:
        return told
    return f"{text[:_LONGEST]}… ({len(text)} characters)"


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [*map(_plain, value)]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value) if isinstance(value, PurePath) else type(value).__name__
