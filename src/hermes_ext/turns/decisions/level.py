"""How much is logged."""

from __future__ import annotations

from enum import StrEnum


class LogLevel(StrEnum):
    """How much of a chain is written; each level has all of those before it."""

    OFF = "off"
    DECISIONS = "decisions"
    STEPS = "steps"
    PAYLOADS = "payloads"
