"""Whose slash command it is: Hermes gives a plugin's command nothing but its arguments.

The gateway runs it before it binds the session to the context, and what stands in the environment
then is the session of whoever was served last. So the caller's own frame is asked.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

logger = logging.getLogger("hermes_ext")

_FAR: Final = 12  # frames between Hermes and us


def session_of_caller() -> str | None:
    """The id of the session in which a slash command was typed; None where nobody can tell."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FAR):
        if frame is None:
            return None
        ask = _CALLERS.get(str(frame.f_globals.get("__name__")))
        if ask is not None:
            try:
                found = ask(frame.f_locals)
            except Exception:
                logger.warning("cannot tell whose slash command this is", exc_info=True)
                return None
            if isinstance(found, str) and found:
                return found
        frame = frame.f_back
    return None


def _of_the_cli(names: Mapping[str, Any]) -> Any:
    return getattr(names.get("self"), "session_id", None)


def _of_the_gateway(names: Mapping[str, Any]) -> Any:
    runner, source = names.get("self"), names.get("source")
    if runner is None or source is None:
        return None
    key = runner._session_key_for_source(source)
    return runner.session_store.peek_session_id(key)


def _of_the_tui(names: Mapping[str, Any]) -> Any:
    session = names.get("session")
    if not isinstance(session, Mapping):
        return None
    return getattr(session.get("agent"), "session_id", None)


_CALLERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "cli": _of_the_cli,
    "gateway.run": _of_the_gateway,
    "tui_gateway.server": _of_the_tui,
}
