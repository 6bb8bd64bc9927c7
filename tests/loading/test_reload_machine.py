"""The machine of reloading: its table, and what it makes of any sequence of changes and turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext.loading.reloading.machine import TABLE, Action, Event, Ledger, State, moved

_FROM_A_LOAD = {Event.LOADED, Event.LOST, Event.MOVED, Event.RESTLESS}
PATHS = ("a.py", "b.py", "data.json")


def test_each_state_has_a_row_for_each_event_that_it_can_meet() -> None:
    """Only what was loaded once is fresh, and only while it is can data be taken for its own."""
    for state in (State.FRESH, State.QUIET, State.RUNNING):
        events = {event for of, event in TABLE if of is state}
        never = _FROM_A_LOAD if state is State.FRESH else {Event.WRITTEN}
        assert events == set(Event) - never


def test_nothing_leaves_off() -> None:
    """Reloading that has ended stays so, and does nothing."""
    assert {moved(State.OFF, event) for event in Event} == {(State.OFF, Action.NOTHING)}


def test_only_what_is_no_suspect_is_loaded() -> None:
    """A change that may be the agent's leads to no load, in whatever state."""
    loads = {event for (_, event), (_, action) in TABLE.items() if action is Action.LOAD}
    assert loads == {Event.PERSONS}


@dataclass(frozen=True)
class Disk:
    """Files by path, with the number of their last change."""

    files: tuple[tuple[str, int], ...] = tuple((path, 0) for path in PATHS)

    def changed(self, other: Disk, /) -> set[str]:
        return {path for path, _ in set(self.files) ^ set(other.files)}

    def written(self, path: str, number: int) -> Disk:
        return Disk(tuple((name, number if name == path else old) for name, old in self.files))


@dataclass
class Real:
    """The machine, driven as `InForce` drives it."""

    disk: Disk = field(default_factory=Disk)
    state: State = State.FRESH

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.disk, 0.0)

    def begins(self) -> Action:
        ledger, fresh = self.ledger, self.state is State.FRESH
        if self.disk == ledger.decided:
            return Action.NOTHING
        event = ledger.judge(
            self.disk,
            0.0,
            agents=self.state is State.RUNNING,
            is_data=lambda changed: fresh and changed <= {"data.json"},
            is_young=lambda changed: False,
        )
        self.state, action = moved(self.state, event)
        if action is Action.LOAD:
            self.state, action = moved(self.state, Event.LOADED)
            ledger.exchanged(self.disk)
        return action

    def ends(self, running: bool) -> None:
        self.ledger.suspect(self.disk)
        self.state, _ = moved(self.state, Event.LEFT_RUNNING if running else Event.ENDED)


@dataclass
class Model:
    """What is to be in force, told from whose each stretch of time was."""

    in_force: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PATHS, 0))
    last: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PATHS, 0))
    agents: set[str] = field(default_factory=set)
    fresh: bool = True

    def looks(self, files: dict[str, int], *, agents_time: bool) -> None:
        if agents_time:
            self.agents |= {path for path in PATHS if files[path] != self.last[path]}
        self.last = files

    def begins(self) -> None:
        differ = {path for path in PATHS if self.last[path] != self.in_force[path]}
        self.agents &= differ
        if (self.fresh and differ <= {"data.json"}) or not self.agents:
            self.in_force = self.last
            self.agents = set()
        self.fresh = False


FILE = st.tuples(st.sampled_from(PATHS), st.integers(0, 2))
FILES = st.lists(FILE, max_size=2)
STEP = st.tuples(st.sampled_from(["between turns", "turn", "turn that leaves a process"]), FILES)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(STEP, max_size=12))
def test_any_sequence(steps: list[tuple[str, list[tuple[str, int]]]]) -> None:
    """What changes between turns is taken; what changes in one, or beside a process that it left
    running, is not, nor anything with it, until it is put back.
    """
    real, model = Real(), Model()
    running = False
    for what, files in steps:
        if what != "between turns":
            real.begins()
            model.looks(dict(real.disk.files), agents_time=running)
            model.begins()
            assert dict(real.ledger.taken.files) == model.in_force
        for path, version in files:
            real.disk = real.disk.written(path, version)
        if what != "between turns":
            running = what != "turn"
            real.ends(running)
            model.looks(dict(real.disk.files), agents_time=True)
