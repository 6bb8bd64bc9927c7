"""Extensions on trial: loaded as Hermes would, with state in memory, and nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hermes_ext._prog import Prog
from hermes_ext._text import is_same_name
from hermes_ext._values import Factory, evolve, frozen
from hermes_ext.chain.fold import Watch, run
from hermes_ext.chain.outcome import ChainOutcome
from hermes_ext.effects import Machine
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import Event, ToolCall, ToolResult
from hermes_ext.hooks.source import OWN
from hermes_ext.loading.directories import Projects, rules_of
from hermes_ext.loading.ended import Loaded
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.projects import projects_at
from hermes_ext.loading.loader import load_base, load_projects
from hermes_ext.replay.events import Recorded
from hermes_ext.replay.touching import Touched
from hermes_ext.replay.touching import Watch as DiskWatch
from hermes_ext.rules import Rulebook
from hermes_ext.runtime import Runtime, machine_of
from hermes_ext.settings.config import ExtensionsConfig
from hermes_ext.trust.place import project_of
from hermes_ext.turns import state
from hermes_ext.turns.services import Services
from hermes_ext.turns.store import MemoryStore
from hermes_ext.turns.turn import Turn


class TrialTurn(Turn):
    """A turn that takes events as they were recorded. Asks nobody, and writes no log."""

    __slots__ = ()

    def judge(self, recorded: Recorded, watch: Watch | None = None) -> ChainOutcome:
        """What the chain makes of an event."""
        context = recorded.context
        scope = self._scope.replace(
            **{name: context[name] for name in ("origin", "model") if name in context},
            **({} if recorded.cwd is None else {"cwd": recorded.cwd}),
        )
        event = self._placed(recorded.event, scope.cwd)
        if isinstance(event, ToolCall) and self.rules.refusal is not None:
            return ChainOutcome.refused(self.rules.refusal, OWN, event, self.rules.cause)
        tool = getattr(event, "tool_name", None)
        chain = self.rules.manager.chain(event.hook, tool, scope.origin)
        with state.entered(self):
            return run(chain, event, scope, timed=True, watch=watch)

    @property
    def root(self) -> Path | None:
        """Where relative paths of a confinement start: as in Hermes, at the repository's root."""
        found = self._root()
        if found is None or self._scope.project_root is not None:
            return found
        return project_of(found) or found

    def _placed(self, event: Event, cwd: Path | None) -> Event:
        """The event, with a call's id and the machine that its paths are on."""
        if not isinstance(event, ToolCall | ToolResult):
            return event
        machine = self.services.machine_for(event.tool_name, cwd)
        call_id = event.tool_call_id or self.new_call_id()
        if isinstance(event, ToolCall):
            return ToolCall(event.tool_name, event.tool_args, call_id, machine, event.read_only)
        return ToolResult(
            event.tool_name,
            event.tool_args,
            call_id,
            event.result,
            event.status,
            event.duration_ms,
            machine,
        )


class TrialRuntime(Runtime):
    """A runtime whose turns are `TrialTurn`s."""

    _turn_class = TrialTurn


class WatchedStore(MemoryStore):
    """Session state in memory, which tells of which conversations something was read."""

    def __init__(self) -> None:
        super().__init__()
        self.was_read: set[str] = set()

    def get(self, conversation_id: str, extension: str, key: str) -> str | None:
        self.was_read.add(conversation_id)
        return super().get(conversation_id, extension, key)

    def items(self, conversation_id: str, extension: str) -> dict[str, str]:
        self.was_read.add(conversation_id)
        return super().items(conversation_id, extension)


@frozen
class Trial:
    """Loaded extensions, and what is known of loading them.

    store: the session state. told: what a host would have been told while they ran.
    """

    runtime: TrialRuntime
    store: WatchedStore
    told: set[str] = Factory(set)


def everything(
    home: Path, cwd: Path | None, config: ExtensionsConfig, import_seconds: float, prog: str
) -> Trial:
    """All that is on, in the directory of each turn its own project's too."""
    base = load_base(home, import_seconds=import_seconds, config=config, on_trial=True)
    return _trial(config, Projects(base, Prog(prog)), cwd)


def one(
    home: Path,
    cwd: Path | None,
    config: ExtensionsConfig,
    name: str,
    found: Sequence[Candidate],
    import_seconds: float,
    *,
    alone: bool,
) -> tuple[Trial, Loaded]:
    """One extension, on whatever the configuration says of it.

    found: all that there is, beside the project's. alone: without what else is on, and without the
    package's own guard.
    """
    on = turned_on(config, name)
    base = load_base(home, import_seconds=import_seconds, config=on, on_trial=True, found=found)
    loaded = load_projects(base, projects_at(config, home, cwd))
    tried = loaded
    if alone:
        own = tuple(each for each in loaded.handlers if is_same_name(each.extension, name))
        # Without a base there is no guard of the package's own.
        tried = evolve(loaded, handlers=own, refusal=None, base=None)
    return _trial(config, Rulebook(rules_of(tried))), loaded


def turned_on(config: ExtensionsConfig, name: str) -> ExtensionsConfig:
    """The configuration with an extension on, and its verdicts in force."""
    others = {
        each: hooks for each, hooks in config.disabled_hooks.items() if not is_same_name(each, name)
    }
    return evolve(
        config,
        enabled=True,
        on=(*config.on, name),
        disabled=tuple(each for each in config.disabled if not is_same_name(each, name)),
        disabled_hooks=others,
        observe=tuple(each for each in config.observe if not is_same_name(each, name)),
    )


def _trial(config: ExtensionsConfig, book: Rulebook, cwd: Path | None = None) -> Trial:
    store = WatchedStore()
    services = Services(store=store, machine=machine_of(config, Machine()))
    return Trial(TrialRuntime.of(services, book, cwd), store, services.warned)


@frozen
class Handled:
    """What went into a handler and what it left. place: its own. touched: what it looked at."""

    place: int
    handler: Handler
    shown: Event
    left: Event
    touched: Touched


@frozen
class Judged:
    """An event and what came of it.

    handled: of each handler that was called, where that was asked for. touched: what was looked
    at. needs_past: session state was read of a conversation that began before these events. root:
    where relative paths of a confinement start.
    """

    recorded: Recorded
    outcome: ChainOutcome
    handled: tuple[Handled, ...]
    touched: Touched
    needs_past: bool
    root: Path | None


def judged(
    trial: Trial,
    events: Iterable[Recorded],
    *,
    each: bool = False,
    progress: Callable[[int, int, str], object] | None = None,
) -> Iterator[Judged]:
    """Run events through the extensions, in their order; those of one turn in one turn.

    events: gone through twice. each: also find out about each handler. progress: called before
    each event with its number, from 0, how many there are, and what it is.
    """
    turns = _Turns(trial, events)
    watch = DiskWatch(_code_of(trial))
    with watch.installed():
        for number, recorded in enumerate(events):
            if progress is not None:
                progress(number, turns.events, recorded.label)
            turn = turns.of(number, recorded)
            handled: list[Handled] = []
            note = _noting(turn, recorded, watch, handled) if each else None
            trial.store.was_read.clear()
            watch_again = state.judging_again() if turns.is_second(number) else nullcontext()
            watch.begin()
            try:
                with watch_again:
                    outcome = turn.judge(recorded, note)
            finally:
                touched = watch.end()
            for one_handled in handled:
                touched.add(one_handled.touched)
            needs_past = bool(trial.store.was_read) and turns.began_before(recorded)
            turns.left(number)
            yield Judged(recorded, outcome, tuple(handled), touched, needs_past, turn.root)


def _noting(turn: TrialTurn, recorded: Recorded, watch: DiskWatch, handled: list[Handled]) -> Watch:
    origin = str(recorded.context.get("origin", "user"))
    tool = getattr(recorded.event, "tool_name", None)
    chain = turn.rules.manager.chain(recorded.event.hook, tool, origin)

    def note(place: int, shown: Event, left: Event) -> None:
        handled.append(Handled(place, chain.handlers[place], shown, left, watch.end()))
        watch.begin()

    return note


def _code_of(trial: Trial) -> Iterator[str]:
    for record in trial.runtime.records:
        if record.path is not None:
            yield os.path.abspath(record.path)
            yield os.path.realpath(record.path)


class _Turns:
    """The turns of some events: each is open from its first event to its last."""

    def __init__(self, trial: Trial, events: Iterable[Recorded]) -> None:
        self._runtime = trial.runtime
        self._keys: list[Any] = []
        self._last: dict[Any, int] = {}
        self._open: dict[Any, TrialTurn] = {}
        self._second: set[int] = set()
        self._begun: dict[Any, bool] = {}  # of a conversation, whether it began before these events
        calls: set[tuple[Any, str, str]] = set()
        for number, recorded in enumerate(events):
            context = recorded.context
            turn = context.get("turn_id")
            key = number if turn is None else (context.get("session_id"), turn)
            self._keys.append(key)
            self._last[key] = number
            self._begun.setdefault(_conversation(context), context.get("turn_number", 1) != 1)
            event = recorded.event
            if isinstance(event, ToolCall) and event.tool_call_id:
                call = (key, event.tool_name, event.tool_call_id)
                if call in calls:
                    self._second.add(number)
                calls.add(call)

    @property
    def events(self) -> int:
        """How many there are."""
        return len(self._keys)

    def is_second(self, number: int) -> bool:
        """Whether a call was judged before, with other arguments: other plugins changed them."""
        return number in self._second

    def began_before(self, recorded: Recorded) -> bool:
        return self._begun[_conversation(recorded.context)]

    def of(self, number: int, recorded: Recorded) -> TrialTurn:
        key = self._keys[number]
        if key not in self._open:
            context = {"session_id": "events", **recorded.context}
            turn = self._runtime.turn(**context)
            assert isinstance(turn, TrialTurn)
            self._open[key] = turn
        return self._open[key]

    def left(self, number: int) -> None:
        key = self._keys[number]
        if self._last[key] == number:
            self._open.pop(key).close()


def _conversation(context: Mapping[str, Any]) -> Any:
    return context.get("conversation_id") or context.get("session_id")
