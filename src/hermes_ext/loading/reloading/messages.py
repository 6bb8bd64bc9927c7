"""What is said of changes that are not in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hermes_ext._text import printable

_SHOWN: Final = 5


def not_taken(lost: list[str]) -> str:
    """Something would be lost by what changed."""
    return (
        f"what changed in the extensions is not in force, the old stays: {'; '.join(lost)}. "
        "It is tried again when something changes"
    )


def changed_by_the_agent(paths: set[str]) -> str:
    """The agent may have changed these."""
    return (
        f"changed while the agent was at work, and not taken: {_listed(paths)}. What is loaded "
        "stays in force; look at it, and start Hermes anew to take it"
    )


def left_open(sessions: Iterable[str], turns: int) -> str:
    """What changed is in force, but not for turns that the host has left open."""
    names = ", ".join(sorted({repr(printable(each)) for each in sessions})[:_SHOWN])
    return (
        f"the extensions were loaded anew for new turns. Turns that the host has not ended keep "
        f"what they began with: {turns} (session {names})"
    )


def keeps_changing(paths: set[str]) -> str:
    """What changed cannot be loaded, because it changes again each time."""
    return f"what changed in the extensions is not in force: {_listed(paths)} keeps changing"


def given_up(why: str) -> str:
    """Nothing is taken any more."""
    return f"{why}. What is loaded stays in force until Hermes is started anew"


def _listed(paths: set[str]) -> str:
    shown = [printable(path) for path in sorted(paths)[:_SHOWN]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
