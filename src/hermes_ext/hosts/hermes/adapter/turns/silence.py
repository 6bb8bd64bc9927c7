"""Answers without text, which Hermes by itself takes for a model or a turn that failed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from hermes_ext.hosts.hermes.adapter.host import current_agent_turn, origin_of
from hermes_ext.hosts.hermes.adapter.person.notices import is_chat
from hermes_ext.hosts.hermes.adapter.turns.batches import is_called_by


def mark(result: dict[str, Any], agent: Any) -> None:
    """Make the result of a turn that was answered without text say so to the agent's surface."""
    result["final_response"] = _silence_on(agent)
    # The API server has words of its own for a turn without text that names no error.
    result["error"] = ""


def _silence_on(agent: Any) -> str:
    """What a surface takes for silence; nothing at all where that will do."""
    origin = origin_of(agent)
    if origin == "user" and is_called_by(_is_one_shot):
        return _NotEvenALine()
    if origin == "cron":
        with contextlib.suppress(ImportError):
            from cron.scheduler import SILENT_MARKER

            return str(SILENT_MARKER)
    elif is_chat(agent) and origin == "user":
        try:
            from gateway.response_filters import SILENT_REPLY_TOKEN
        except ImportError:  # newer Hermes answers its own markers for silence with a complaint
            return _Nothing()
        return str(SILENT_REPLY_TOKEN)
    return ""


def has_content(original: Callable[..., Any], agent: Any, content: Any) -> Any:
    """Wraps `AIAgent._has_content_after_think_block`: Hermes asks the model again without any."""
    turn = None if content else current_agent_turn(agent)
    return True if turn is not None and turn.host.stopped == "" else original(agent, content)


def _is_one_shot(frame: FrameType) -> bool:
    """Whether `hermes -z` waits for this turn. It ends with 1 where it gets no text.

    Newer Hermes discovers plugins only after it has called what could be wrapped.
    """
    return frame.f_globals.get("__name__") == "hermes_cli.oneshot"


class _Nothing(str):
    """No text, but a response: Hermes does not replace it, and has nothing of it to send."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


class _NotEvenALine(_Nothing):
    """What is written of it is nothing, not even the end of a line."""

    __slots__ = ()

    def endswith(self, *_: Any) -> bool:
        return True

    def strip(self, *_: Any) -> str:
        return self
