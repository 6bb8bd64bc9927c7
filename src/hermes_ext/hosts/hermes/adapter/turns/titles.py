"""Session titles are made of the first input, by a model: of what it became, not of what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hermes_ext._text import text_of
from hermes_ext.hosts.hermes.adapter.state import state

_KEPT: Final = 256  # the surfaces that make no titles never come to fetch theirs
_LONGEST: Final = 500  # characters; Hermes reads no more of it


def replace(session_id: str, stored: Any) -> None:
    """Remember what the input of a session's running turn was turned into."""
    with state.lock:
        state.titles.pop(session_id, None)
        state.titles[session_id] = text_of(stored)[:_LONGEST]
        while len(state.titles) > _KEPT:
            state.titles.popitem(last=False)


def forget(session_id: str) -> None:
    """Drop what an earlier turn left, whose title nobody made."""
    with state.lock:
        state.titles.pop(session_id, None)


def maybe_auto_title(
    original: Callable[..., Any],
    session_db: Any,
    session_id: str,
    user_message: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Wraps `agent.title_generator.maybe_auto_title`."""
    with state.lock:
        stored = state.titles.pop(session_id, None)
    if stored is None:
        return original(session_db, session_id, user_message, *args, **kwargs)
    if stored.startswith("[withheld by "):
        return None
    return original(session_db, session_id, stored, *args, **kwargs)
