"""When what changed on the disk is loaded: the states of reloading, and what moves it between them.

Who changed a file cannot be told, only when. So a change counts as a person's exactly if no turn of
this process was open, and none of the agent's own processes was running, from the look that did
not show it to the look that did. There is no command to take the others: whatever a command can
do, the agent can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, Generic, Protocol, Self, TypeVar


class State(StrEnum):
    """What is known of the time since the last look.

    FRESH: loaded, and nothing was decided since. The extensions may have written files themselves.
    QUIET: no process of the agent ran when the last turn ended.
    RUNNING: one did, so whatever changes until the next turn ends may be its doing.
    OFF: nothing is taken any more.
    """

    FRESH = "fresh"
    QUIET = "quiet"
    RUNNING = "running"
    OFF = "off"


class Event(StrEnum):
    """What happens.

    A turn begins while none is at work, and what is on the disk…
    SAME: is what is in force. WRITTEN: differs in data that the extensions wrote while they were
    loaded. PERSONS: was changed by a person. YOUNG: the same, so lately that it may change again
    without looking different. AGENTS: was changed in part while the agent could do it.

    BESIDE: a turn begins while others are at work. ENDED: the last turn ends. LEFT_RUNNING: the
    same, and a process of the agent goes on.

    LOADED: what changed was loaded, and nothing is lost by it. LOST: something would be lost.
    MOVED: it changed again meanwhile. RESTLESS: it does so again and again.

    FAILED: the files cannot be looked at. CLOSED: the host, or the configuration, ends reloading.
    """

    SAME = "same"
    WRITTEN = "written"
    PERSONS = "a person's"
    YOUNG = "young"
    AGENTS = "the agent's"
    BESIDE = "beside"
    ENDED = "ended"
    LEFT_RUNNING = "left running"
    LOADED = "loaded"
    LOST = "lost"
    MOVED = "moved"
    RESTLESS = "restless"
    FAILED = "failed"
    CLOSED = "closed"


class Action(StrEnum):
    """What is done.

    NOTHING: all stays as it is. ALL_TAKEN: say that what is on the disk is in force. LOAD: load it
    beside the old. WAIT: look again in a moment. REFUSE: say which changes are not taken, as the
    agent may have made them. WATCH: say what changes while turns are at work. NOTE: remember that
    what has changed until now may be the agent's. EXCHANGE: put the new in force. KEEP: say why the
    old stays. AGAIN: look and load again. GIVE_UP: say that nothing is taken any more, and why.
    """

    NOTHING = "nothing"
    ALL_TAKEN = "all taken"
    LOAD = "load"
    WAIT = "wait"
    REFUSE = "refuse"
    WATCH = "watch"
    NOTE = "note"
    EXCHANGE = "exchange"
    KEEP = "keep"
    AGAIN = "again"
    GIVE_UP = "give up"


# fmt: off
_F, _Q, _R, _OFF = State.FRESH, State.QUIET, State.RUNNING, State.OFF
_ROWS: Final = (
    # event            after fresh, quiet, running: the next state; and what is done
    (Event.SAME,         _Q,   _Q,   _R,   Action.ALL_TAKEN),
    (Event.WRITTEN,      _Q,   None, None, Action.ALL_TAKEN),
    (Event.PERSONS,      _Q,   _Q,   _R,   Action.LOAD),
    (Event.YOUNG,        _Q,   _Q,   _R,   Action.WAIT),
    (Event.AGENTS,       _Q,   _Q,   _R,   Action.REFUSE),
    (Event.BESIDE,       _F,   _Q,   _R,   Action.WATCH),
    (Event.ENDED,        _Q,   _Q,   _Q,   Action.NOTE),
    (Event.LEFT_RUNNING, _R,   _R,   _R,   Action.NOTE),
    (Event.LOADED,       None, _Q,   _R,   Action.EXCHANGE),
    (Event.LOST,         None, _Q,   _R,   Action.KEEP),
    (Event.MOVED,        None, _Q,   _R,   Action.AGAIN),
    (Event.RESTLESS,     None, _Q,   _R,   Action.KEEP),
    (Event.FAILED,       _OFF, _OFF, _OFF, Action.GIVE_UP),
    (Event.CLOSED,       _OFF, _OFF, _OFF, Action.NOTHING),
)
# fmt: on

TABLE: Final[Mapping[tuple[State, Event], tuple[State, Action]]] = {
    (state, event): (after, action)
    for event, *row, action in _ROWS
    for state, after in zip((_F, _Q, _R), row, strict=True)
    if after is not None
}
"""The state after an event, and what is to be done; None above: it does not happen there."""


def moved(state: State, event: Event) -> tuple[State, Action]:
    """As `TABLE` has it; in OFF no event does anything."""
    return (state, Action.NOTHING) if state is State.OFF else TABLE[state, event]


class Seen(Protocol):
    def changed(self, other: Self, /) -> set[str]:
        """The paths that look different in the two."""


L = TypeVar("L", bound=Seen)


class Ledger(Generic[L]):
    """The looks that decide what is taken, and the changes that may be the agent's.

    Attributes:
        taken: how what is in force looked.
        seen: the last look that settled whose the changes before it were.
        passed: the last look at all; `passed_at` is when it was made, or before.
        decided: the look after which nothing is left to decide; None: look closer.
        suspects: the paths, of those that differ from `taken`, that the agent may have changed.
    """

    def __init__(self, taken: L, at: float) -> None:
        self.taken = taken
        self.decided: L | None = taken
        self.suspects: set[str] = set()
        self.saw(taken, at)

    def saw(self, seen: L, at: float) -> None:
        """What differs from this look is to be decided; at: when it was made, or before."""
        self.seen = self.passed = seen
        self.passed_at = at

    def suspect(self, now: L) -> None:
        """What has changed up to this look may be the agent's."""
        self.suspects |= now.changed(self.seen)
        self.saw(now, self.passed_at)
        self.decided = None

    def judge(
        self,
        now: L,
        at: float,
        *,
        agents: bool,
        is_data: Callable[[set[str]], bool],
        is_young: Callable[[set[str]], bool],
    ) -> Event:
        """What a look shows that is made when a turn begins. at: when it was made, or before.

        agents: whether what changed since `seen` may be the agent's. is_data: whether an extension
        may have written these paths in passing. is_young: whether they may change again unseen.
        """
        if agents:
            self.suspect(now)
        changed = now.changed(self.taken)
        written = bool(changed) and is_data(changed)
        if written:
            self.taken, changed = now, set()
        self.suspects &= changed
        self.saw(now, at)
        young = is_young(changed)
        self.decided = None if young else now
        if not changed:
            return Event.WRITTEN if written else Event.SAME
        if self.suspects:
            return Event.AGENTS
        return Event.YOUNG if young else Event.PERSONS

    def exchanged(self, now: L) -> None:
        """This look is in force."""
        self.taken = self.decided = now
        self.saw(now, self.passed_at)
        self.suspects.clear()
