"""The API server's own store of responses: it keeps what inputs became, not what they were.

`POST /v1/responses` stores each turn for the next one (`previous_response_id`), and takes the
message from the HTTP request, around the agent. A finished turn's history is the agent's own. What
is stored before a turn is finished, or when it breaks off, names no message at all: nobody can tell
there what the input has become.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hermes_ext.hosts.hermes.adapter import host

# A key of the result of `run_conversation`: the input was changed or withheld.
CHANGED: Final = "input_changed_by_extension"

_NOT_STORED: Final = "[not stored: the turn did not end, and its input may have been withheld]"


def build_history(
    original: Callable[..., Any],
    conversation_history: Any,
    user_message: Any,
    result: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Wraps `APIServerAdapter._build_response_conversation_history`, a static method."""
    messages = result.get("messages") if isinstance(result, dict) and CHANGED in result else None
    if isinstance(messages, list) and messages:
        return list(messages)  # the whole transcript, with the message as it became
    return original(conversation_history, user_message, result, *args, **kwargs)


def put(
    original: Callable[..., Any], store: Any, response_id: str, data: Any, *args: Any, **kwargs: Any
) -> Any:
    """Wraps `ResponseStore.put`."""
    if _is_unfinished(data) and host.may_withhold_input():
        data = {**data, "conversation_history": _without_newest(data["conversation_history"])}
    return original(store, response_id, data, *args, **kwargs)


def _is_unfinished(data: Any) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("conversation_history"), list):
        return False
    response = data.get("response")
    return not isinstance(response, dict) or response.get("status") != "completed"


def _without_newest(history: list[Any]) -> list[Any]:
    for index in reversed(range(len(history))):
        if isinstance(history[index], dict) and history[index].get("role") == "user":
            said = {"role": "user", "content": _NOT_STORED}
            return [*history[:index], said, *history[index + 1 :]]
    return history
