"""`redacted`: a value as it may be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from hermes_ext._redaction.finding import Finder
from hermes_ext._redaction.names import is_password, is_secret
from hermes_ext._redaction.values import is_open

LONGEST: Final = 200_000  # characters of one text that are shown; of more the rest is left out
_DEEPEST: Final = 40
_HIDDEN: Final = "[redacted]"
_LARGEST_COUNT: Final = 100_000  # behind the name of a secret: a port, a time, a number of them
_FINDER: Final = Finder()
_SHORT: Final = frozenset({"pass", "pw"})  # of a text; a number of these is a count
_OPTION: Final = re.compile(r"--?[A-Za-z][\w-]{0,60}")
_LONGEST_WORD: Final = 200


def in_value(value: Any, depth: int = 0) -> Any:
    """See `redacted`."""
    if isinstance(value, str):
        return _in_text(value)
    if depth > _DEEPEST and isinstance(value, Mapping | list | tuple):
        return _HIDDEN
    if isinstance(value, Mapping):
        value = _with_named_value(value)
        return {_in_key(str(key)): _named(str(key), each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [in_value(each, depth + 1) for each in _with_options(value)]
    return value


def _with_options(value: Sequence[Any]) -> Sequence[Any]:
    """A command line in words, `["mysql", "-p", …]`: what stands behind an option is its value."""
    words = list(value)
    for place in range(1, len(words)):
        option, word = words[place - 1 : place + 1]
        if isinstance(option, str) and isinstance(word, str) and _OPTION.fullmatch(option):
            program = f"{words[0]} " if place > 1 and isinstance(words[0], str) else ""
            before = f"{program[-_LONGEST_WORD:]}{option} "
            shown = _in_text(before + word)
            if shown.startswith(before):
                words[place] = shown[len(before) :]
    return words


def _with_named_value(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """`{"name": "DB_PASSWORD", "value": …}`: the value is named as a sibling says.

    AWS calls them `ParameterKey` and `ParameterValue`, too.
    """
    of = {str(key).lower().removeprefix("parameter"): key for key in value}
    name = value.get(of.get("name", of.get("key")))
    if "value" not in of or not isinstance(name, str) or not is_secret(name):
        return value
    return {**value, of["value"]: _named(name, value[of["value"]], 0)}


def _named(name: str, value: Any, depth: int) -> Any:
    is_named = is_secret(name) or (name.lower() in _SHORT and isinstance(value, str))
    if not is_named or isinstance(value, bool) or value is None:
        return in_value(value, depth)
    if isinstance(value, str):
        return value if is_open(value) else _HIDDEN
    if isinstance(value, Mapping) and depth <= _DEEPEST:
        return {_in_key(str(key)): _named(name, each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth <= _DEEPEST:
        return [_named(name, each, depth + 1) for each in value]
    is_count = isinstance(value, int | float) and abs(value) < _LARGEST_COUNT
    return value if is_count and not is_password(name) else _HIDDEN


@lru_cache(maxsize=512)
def _in_key(text: str) -> str:
    """The same few keys, in each of many records."""
    return _in_text(text)


def _in_text(text: str) -> str:
    left_out = ""
    if len(text) > LONGEST:
        left_out = f"… [{len(text)} characters]"
        # Not in the middle of a word, which could be one that is known when it is whole.
        kept = text[:LONGEST].rsplit(None, 1)[0]
        text = kept if len(kept) > LONGEST - 4_000 else text[: LONGEST - 4_000]
    return _FINDER.replaced(text) + left_out
