"""What a line of the log says of a call and of a change, where it has no payloads.

Nothing that an extension removed from a text is in it: removed text is counted. Whatever is in it
has been searched for secrets before it was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from hermes_ext._text import text_of
from hermes_ext.turns.decisions.canonical import canonical_json

_HEAD: Final = 140
_TAIL: Final = 50
_WITH_TAIL: Final = 20_000  # characters; of more the end may be the rest of a secret
_MOST: Final = 8  # changes of one value
_LONG: Final = 300  # characters of an argument that is taken for a text
_MOST_WORDS: Final = 400  # that are compared with each other
_MOST_LINES: Final = 2_000
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_COMMANDS: Final = ("command", "cmd", "code", "script")
_MAIN: Final = (
    *_COMMANDS, "path", "file_path", "filename", "file", "url", "urls", "query", "pattern", "goal",
    "prompt", "name",
)  # fmt: skip


def call_of(args: Any) -> str | None:
    """The command of a tool call, or its main argument; None for a call without arguments."""
    if not isinstance(args, Mapping) or not args:
        return None
    names = [name for name in _MAIN if _says_something(args.get(name))]
    names += [name for name, value in args.items() if isinstance(value, str) and value.strip()]
    if names:
        return _shown(names[0], args[names[0]])
    return _cut(_json(_redacted(dict(args))))


def changes_of(before: Any, after: Any) -> list[dict[str, Any]]:
    """From what to what a value was changed.

    Args:
        before, after: tool arguments; else a text, its parts, or messages.

    Returns:
        Of arguments `{"argument", "from", "to"}` each; of texts, and of long arguments that are no
        commands, `{"removed": characters, "added": text}`. At most a few, the last one then
        `{"more": how many}`.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changes = [*_of_arguments(before, after)]
    else:
        changes = [*_of_texts(_text(before), _text(after))]
    more = len(changes) - _MOST
    return changes if more <= 0 else [*changes[:_MOST], {"more": more}]


# -- arguments ------------------------------------------------------------------------------------


def _of_arguments(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        # By what is written of them: values may be of any class.
        if name in before and name in after and canonical_json(old) == canonical_json(new):
            continue
        told = {"argument": _redacted(str(name))}
        if name not in _COMMANDS and (_is_text(old) or _is_text(new)):
            for each in _of_texts(_text(old), _text(new)):
                yield told | each
            continue
        if name in before:
            told["from"] = _shown(name, old)
        if name in after:
            told["to"] = _shown(name, new)
        yield told


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > _LONG or "\n" in value)


def _says_something(value: Any) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _shown(name: str, value: Any) -> str:
    """An argument's value as one text, without secrets, its begin and its end."""
    told = next(iter(_redacted({str(name): value}).values()))
    return _cut(told if isinstance(told, str) else _json(told))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda other: type(other).__name__)


def _redacted(value: Any) -> Any:
    from hermes_ext._redaction import redacted

    return redacted(value)


def _cut(text: str, length: int = 0) -> str:
    length = max(length, len(text))
    if length <= _HEAD + _TAIL:
        return text
    tail = f" … {text[-_TAIL:]}" if length <= _WITH_TAIL else ""
    return f"{text[:_HEAD]} … ({length} characters){tail}"


# -- texts ----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """The text of a value: a text, the parts of one, or messages."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return text_of(value)
    told = (each.get("content", [each]) if isinstance(each, Mapping) else each for each in value)
    return "\n".join(map(text_of, told))


def _of_texts(before: str, after: str) -> Iterator[dict[str, Any]]:
    known = ""
    for removed, added in _hunks(before, after):
        told: dict[str, Any] = {"removed": len(removed)} if removed else {}
        known = known or _redacted(after)
        begin = added.strip()[:_WITH_TAIL]
        # Alone it may not look like the secret that it is in its place.
        told["added"] = _cut(_redacted(begin), len(added)) if begin in known else "[redacted]"
        if not begin and removed:
            del told["added"]
        yield told


def _hunks(before: str, after: str) -> Iterator[tuple[str, str]]:
    """What was removed at each place, and what stands there now."""
    same = _same_begin(before, after)
    end = _same_begin(before[same:][::-1], after[same:][::-1])
    old, new = before[same : len(before) - end], after[same : len(after) - end]
    olds, news = _WORDS.findall(old), _WORDS.findall(new)
    if len(olds) <= _MOST_WORDS and len(news) <= _MOST_WORDS:
        yield from _compared(olds, news)
        return
    olds, news = _lines(old), _lines(new)
    if min(len(olds), len(news)) < 2 or max(len(olds), len(news)) > _MOST_LINES:
        yield old, new
        return
    for removed, added in _compared(olds, news):
        smaller = len(removed) < len(before) and len(added) < len(after)
        yield from _hunks(removed, added) if smaller else [(removed, added)]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _compared(olds: list[str], news: list[str]) -> Iterator[tuple[str, str]]:
    begun: tuple[int, int] | None = None  # a change that goes on over blanks that stayed
    end = (0, 0)
    for kind, old, old_end, new, new_end in SequenceMatcher(None, olds, news).get_opcodes():
        if kind != "equal":
            begun, end = begun or (old, new), (old_end, new_end)
        elif begun is not None and _joined(olds, old, old_end).strip():
            yield _joined(olds, begun[0], end[0]), _joined(news, begun[1], end[1])
            begun = None
    if begun is not None:
        yield _joined(olds, begun[0], end[0]), _joined(news, begun[1], end[1])


def _joined(parts: list[str], begin: int, end: int) -> str:
    return "".join(parts[begin:end])


def _same_begin(one: str, other: str) -> int:
    """How many characters at the begin are the same, without half a word."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    while 0 < least < max(len(one), len(other)) and _is_word(one, least) | _is_word(other, least):
        least -= 1
    return least


def _is_word(text: str, place: int) -> bool:
    """Whether a word goes on at this place."""
    return text[place - 1].isalnum() and text[place : place + 1].isalnum()
