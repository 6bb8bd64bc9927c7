"""How many tokens a request is, roughly: a quarter of its characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_CHARACTERS = 4
_IMAGE = 1_500  # tokens, whatever its size


def tokens_of(messages: Sequence[Mapping[str, Any]], system_prompt: str, state: Any) -> int:
    """The tokens of a request; only the messages that are new since the last one are read."""
    with state.lock:
        seen, known = state.get("budget.messages", (0, 0))
        if len(messages) < seen:  # the history was compressed
            seen = known = 0
        known += sum(map(_of_message, messages[seen:]))
        state["budget.messages"] = (len(messages), known)
    return int(known + len(system_prompt) // _CHARACTERS)


def _of_message(message: Mapping[str, Any]) -> int:
    total = _of_content(message.get("content"))
    calls = message.get("tool_calls")
    if calls:
        total += len(json.dumps(calls, default=str)) // _CHARACTERS
    return total


def _of_content(content: Any) -> int:
    if isinstance(content, str):
        return len(content) // _CHARACTERS
    if not isinstance(content, list):
        return 0
    texts = (part.get("text") if isinstance(part, Mapping) else None for part in content)
    return sum(_IMAGE if text is None else len(str(text)) // _CHARACTERS for text in texts)
