"""The decision log: who decided what and why, one JSON line per chain.

A line holds digests of what went in and came out, not the values, unless the level is `payloads`.
Nothing here costs the turn more than putting one event in a queue: a thread builds and writes the
lines. Nothing here raises to a turn: a full or read-only disk costs lines, which the next line that
can be written counts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hermes_ext.turns.decisions.canonical import canonical_digest, canonical_json
    from hermes_ext.turns.decisions.line import DecisionEvent, LogLevel, Outcome, build_line
    from hermes_ext.turns.decisions.log import DecisionLog
    from hermes_ext.turns.decisions.reading import (
        LogFiles,
        LogLines,
        follow_decisions,
        read_decisions,
    )
    from hermes_ext.turns.decisions.recorded import recorded_context, recorded_event

# Who reads the log needs nothing of what writes it.
_MODULES: Final = {
    "DecisionEvent": "line",
    "DecisionLog": "log",
    "LogFiles": "reading",
    "LogLevel": "line",
    "LogLines": "reading",
    "Outcome": "line",
    "build_line": "line",
    "canonical_digest": "canonical",
    "canonical_json": "canonical",
    "follow_decisions": "reading",
    "read_decisions": "reading",
    "recorded_context": "recorded",
    "recorded_event": "recorded",
}

__all__ = [
    "DecisionEvent",
    "DecisionLog",
    "LogFiles",
    "LogLevel",
    "LogLines",
    "Outcome",
    "build_line",
    "canonical_digest",
    "canonical_json",
    "follow_decisions",
    "read_decisions",
    "recorded_context",
    "recorded_event",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
