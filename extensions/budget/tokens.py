"""How many tokens a request is, roughly: a quarter of its characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_CHARACTERS = 4
_IMAGE = 1_500 * _CHARACTERS  # whatever its size


def tokens_of(messages: Sequence[Mapping[str, Any]], system_prompt: str, state: Any) -> int:
    """The tokens of a request; only the messages that are new since the last one are read."""
    with state.lock:
        seen, known, last = state.get("budget.messages", (0, 0, 0))
        # A history that was compressed is another one, even if it is as long.
        if seen and (len(messages) < seen or _of_message(messages[seen - 1]) != last):
            seen = known = last = 0
        for message in messages[seen:]:
            last = _of_message(message)
            known += last
        state["budget.messages"] = (len(messages), known, last)
    return int((known + len(system_prompt)) // _CHARACTERS)


def _of_message(message: Mapping[str, Any]) -> int:
    """The characters of a message."""
    calls = message.get("tool_calls")
    told = len(json.dumps(calls, default=str)) if calls else 0
    return told + _of_content(message.get("content"))


def _of_content(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    if not isinstance(content, list):
        return 0
    texts = (part.get("text") if isinstance(part, Mapping) else None for part in content)
    return sum(_IMAGE if text is None else len(str(text)) for text in texts)
