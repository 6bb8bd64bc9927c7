"""The decision log: who decided what and why, one JSON line per chain.

A line holds digests of what went in and came out, not the values, unless the level is `payloads`.
Nothing here costs the turn more than putting one event in a queue: a thread builds and writes the
lines. Nothing here raises to a turn: a full or read-only disk costs lines, which the next line that
can be written counts.
"""

from __future__ import annotations

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
