"""What is in force for a Hermes home, and when what changed on the disk takes its place.

    a turn begins, none at work    look: did anything change since what is in force was loaded?
    changed, and no turn was open  load it beside the old one; taken if nothing is lost by it
    changed while one was at work  the agent may have done it: not taken until the process ends
    the last one at work ends      look: what changed in it is known by that

`machine` has the states and the table of what each event does; here is what looks, loads and says.

A turn is at work from its beginning to its end. One that its host never ends is at work no more
when the host has dropped it, or when nothing has happened in it for an hour (a day, if a tool call
was let through and its result has not come). What changes after the last that happened in it is a
person's; if it goes on all the same, it has the rules with which it began.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hermes_ext._forks import has_locks
from hermes_ext._prog import Prog
from hermes_ext._text import printable
from hermes_ext.loading.directories import Projects
from hermes_ext.loading.ended import Base, own_packages
from hermes_ext.loading.imports.importing import forget, hold
from hermes_ext.loading.loader import load_base
from hermes_ext.loading.reloading import not_taken
from hermes_ext.loading.reloading.look import Look, TooMuchError, is_code, look
from hermes_ext.loading.reloading.machine import Action, Event, Ledger, State, moved
from hermes_ext.rules import Rulebook, Rules
from hermes_ext.settings.config import ExtensionsConfig, switched_off
from hermes_ext.turns import state

logger = logging.getLogger("hermes_ext")

# A file system's clock stands still for up to 10 ms: what is younger may change unseen.
SETTLED_SECONDS: Final = 0.02
_LOOKS: Final = 10  # at files that keep changing, before a turn goes on without them
_LOADS: Final = 3


class InForce(Rulebook):
    """The rules of one Hermes home, exchanged as a whole. Thread-safe.

    taken: called with the configuration that has come into force. tell: called with the line that
    says why what changed is not. agent_at_work: whether a process that the agent started is
    running.
    """

    _ledger: Ledger[Look]

    def __init__(
        self,
        home: Path,
        prog: Prog,
        *,
        taken: Callable[[ExtensionsConfig], None],
        tell: Callable[[str], None],
        agent_at_work: Callable[[], bool],
    ) -> None:
        self._home = home
        self._tell = tell
        self._took = taken
        self._ask_for_processes = agent_at_work
        self._for_others = not_taken.NotTakenFile(home)
        self.renew_locks()
        has_locks(self)
        first = self._first_look()
        base = load_base(home, config=None if first is None else first.read)
        taken(base.config)
        self._hold_first(base, first)
        self._projects = Projects(base, prog)
        self._old_packages: set[str] = set()
        self._state = State.OFF
        if first is not None and base.config.reload:
            self._state = State.FRESH
            self._ledger = Ledger(first, time.monotonic())
            state.open_turns.watchers.add(self)

    def renew_locks(self) -> None:
        """After a fork; no thread of the child is loading or choosing."""
        self._loading = threading.Lock()
        self._lock = threading.RLock()
        self._choosing = 0

    @property
    def config(self) -> ExtensionsConfig:
        """The configuration that is in force."""
        return self._projects.base.config

    @property
    def everywhere(self) -> Rules:
        return self._projects.everywhere

    def at(self, directory: Path | None) -> Rules:
        return self._projects.at(directory)

    def all(self) -> list[Rules]:
        return self._projects.all()

    @contextmanager
    def choosing(self) -> Iterator[None]:
        with self._lock:
            self._choosing += 1
        try:
            yield
        finally:
            with self._lock:
                self._choosing -= 1

    def close(self) -> None:
        self._on(Event.CLOSED)
        state.open_turns.watchers.discard(self)
        self._for_others.remove()

    def _on(self, event: Event) -> Action:
        """Go to the next state; what is to be done."""
        self._state, action = moved(self._state, event)
        return action

    def turn_begins(self) -> None:
        """One turn does this; another that begins meanwhile goes on with what is in force."""
        if self._state is State.OFF or not self._loading.acquire(blocking=False):
            return
        try:
            if state.open_turns.any_at_work():
                self._look_beside()
            else:
                self._take_what_changed()
        except TooMuchError as error:
            self._give_up(f"{error} has more files than are looked at in every turn")
        except Exception:
            # A fault of ours takes nothing out of force, and ends no turn.
            logger.exception("the extensions could not be looked at")
        finally:
            self._loading.release()

    def _take_what_changed(self) -> None:
        loads = 0
        for _ in range(_LOOKS):
            action = self._looked()
            if action is Action.WAIT:
                time.sleep(SETTLED_SECONDS)
            elif action is not Action.LOAD or self._load() is not Action.AGAIN:
                return
            else:
                loads += 1
                if loads == _LOADS:
                    break
        self._on(Event.RESTLESS)
        self._ledger.decided = self._ledger.seen
        self._say(not_taken.keeps_changing(self._ledger.seen.changed(self._ledger.taken)))

    def _look_beside(self) -> None:
        """Look at what has changed while turns are at work, and say it.

        What a turn may have done is decided by this. All else is decided when the last turn ends,
        or when those that are open turn out to be left open.
        """
        with self._lock:
            ledger, at = self._ledger, time.monotonic()
            if self._on(Event.BESIDE) is Action.WATCH and not ledger.passed.is_now():
                now = look(self._home, ledger.passed)
                if self._is_a_turns(now):
                    ledger.suspect(now)
                ledger.passed = now
                changed = now.changed(ledger.taken)
                self._say(not_taken.changed_by_the_agent(changed) if changed else None)
            ledger.passed_at = at

    def last_turn_ends(self, turn: state.TurnCore) -> None:
        """Note what has changed while turns were at work."""
        try:
            with self._lock:
                ledger, at = self._ledger, time.monotonic()
                if not ledger.seen.is_now():
                    ledger.suspect(look(self._home, ledger.seen))
                ledger.saw(ledger.seen, at)
                self._on(Event.LEFT_RUNNING if self._agent_at_work() else Event.ENDED)
                self._unload_old(choosing=0, ending=turn)
        except Exception:  # noqa: BLE001 - told, and no turn ends by it
            # What this turn may have changed is unknown, so nothing is taken any more.
            self._give_up("the extensions' files could not be looked at")

    def _looked(self) -> Action:
        """Look at the disk when a turn begins; what is to be done."""
        with self._lock:
            ledger, begun, at = self._ledger, state.open_turns.begun, time.monotonic()
            now = ledger.seen if ledger.seen.is_now() else look(self._home, ledger.seen)
            if now is ledger.decided:
                return Action.NOTHING
            if state.open_turns.any_at_work() or state.open_turns.begun != begun:
                # Another turn has begun meanwhile: it may have changed what was seen.
                return Action.NOTHING
            fresh = self._state is State.FRESH
            event = ledger.judge(
                now,
                at,
                agents=self._state is State.RUNNING
                or (now is not ledger.seen and (self._agent_at_work() or self._is_a_turns(now))),
                is_data=lambda changed: fresh and not any(map(is_code, changed)),
                # By a clock that was set back everything is young.
                is_young=lambda changed: -1 < now.age(changed) < SETTLED_SECONDS,
            )
            action = self._on(event)
            if action is Action.ALL_TAKEN:
                self._say(None)
            elif action is Action.REFUSE:
                self._say(not_taken.changed_by_the_agent(ledger.suspects))
            return action

    def _load(self) -> Action:
        """Load what was seen; what was done."""
        old, now = self._projects, self._ledger.seen
        new, lost = self._loaded(now, old)
        with self._lock:
            after = look(self._home, now)
            event = self._outcome(old, new, lost, after.changed(now))
            action = self._on(event)
            if action is Action.EXCHANGE and new is not None:
                self._exchange(new, after)
                return action
            if new is not None:
                for package in new.packages() - self._projects.packages() - self._old_packages:
                    forget(package)
            if event is Event.LOST:
                self._say(not_taken.would_lose(lost))
            else:
                self._ledger.decided = None
                if state.open_turns.any_at_work():
                    return Action.NOTHING  # whose change it is shows when that turn ends
            return action

    def _outcome(
        self, old: Projects, new: Projects | None, lost: list[str], written: set[str]
    ) -> Event:
        """What came of a load; written: what has changed on the disk meanwhile."""
        if any(map(is_code, written)) or (written and state.open_turns.any_at_work()):
            return Event.MOVED
        if lost or new is None:
            return Event.LOST
        # A project that came into force meanwhile is not in the new.
        return Event.LOADED if old.loads().keys() == new.loads().keys() else Event.MOVED

    def _loaded(self, now: Look, old: Projects) -> tuple[Projects | None, list[str]]:
        """What is on the disk, loaded beside the old, and what would be lost by it."""
        from hermes_ext.loading.reloading.losses import config_losses, losses

        place = now.irregular()
        if place is not None:
            return None, [f"{printable(place)} is not a regular file"]
        assert now.read is not None
        lost = config_losses(old.base.config, now.read)
        if lost:
            return None, lost
        new: Projects | None = None
        packages = old.packages()
        base: Base | None = None
        try:
            base = load_base(
                self._home,
                config=now.read,
                before=old.base,
                same=lambda found: now.same_code(found, self._ledger.taken),
            )
            new = old.on(base)
            loads = new.loads()
            for roots, before in old.loads().items():
                if roots in loads:
                    lost += losses(before, loads[roots])
        except Exception as error:
            logger.exception("the extensions could not be loaded anew")
            lost = [f"{type(error).__name__}: {printable(str(error))}"]
            made = set() if base is None else own_packages(base.ended)
            for package in made - packages:
                forget(package)
        return new, list(dict.fromkeys(lost))

    def _exchange(self, new: Projects, now: Look) -> None:
        old = self._projects
        self._took(new.base.config)
        self._hold(new.base, now)
        self._projects = new
        if not new.base.config.reload:
            self.close()
        self._ledger.exchanged(now)
        self._old_packages |= old.packages()
        self._say(None)
        self._unload_old(choosing=1)
        idle = state.open_turns.idle()
        if idle:
            self._tell_all(not_taken.left_open((turn.session_id for turn in idle), len(idle)))
        logger.info("the extensions were loaded anew: their files or the configuration changed")

    def _hold_first(self, base: Base, seen: Look | None) -> None:
        """At the start: while they were loaded, extensions may have written files of their own."""
        if seen is None or not base.packages_of_files():
            return
        try:
            self._hold(base, seen if seen.is_now() else look(self._home, seen))
        except TooMuchError:
            return

    def _hold(self, base: Base, seen: Look) -> None:
        """Have what is in force import no file later on that is another by then."""
        for package, file in base.packages_of_files().items():
            if file in seen.files:
                hold(package, seen.files)

    def _is_a_turns(self, now: Look) -> bool:
        """Whether a turn may have done what has changed since the last look at all.

        What it may have done is older than the last that happened in it.
        """
        until = state.open_turns.worked_until()
        if until <= self._ledger.passed_at:
            return False
        moment = time.time() - (time.monotonic() - until)
        return not now.all_after(now.changed(self._ledger.passed), moment)

    def _unload_old(self, choosing: int, ending: state.TurnCore | None = None) -> None:
        """Let go of modules that no turn uses any more; choosing: how many may be choosing."""
        if not self._old_packages or self._choosing > choosing:
            return
        used = self._projects.packages().union(
            *(turn.packages for turn in state.open_turns.all() if turn is not ending)
        )
        for package in self._old_packages - used:
            forget(package)
        self._old_packages &= used - self._projects.packages()

    def _agent_at_work(self) -> bool:
        try:
            return self._ask_for_processes()
        except Exception:  # the host's own; what is not known may be
            logger.warning("cannot tell whether the agent's processes are running", exc_info=True)
            return True

    def _first_look(self) -> Look | None:
        if switched_off():
            return None
        try:
            return look(self._home)
        except TooMuchError as error:
            told = "extensions are not reloaded: %s has more files than are looked at in every turn"
            logger.warning(told, error)
            return None

    def _give_up(self, why: str) -> None:
        self._on(Event.FAILED)
        self.close()
        logger.warning("extensions are not reloaded any more: %s", why, exc_info=True)
        self._say(not_taken.given_up(why))

    def _say(self, text: str | None) -> None:
        if text == self.not_taken:
            return
        self.not_taken = text
        if text is None:
            self._for_others.remove()
            return
        self._for_others.report(text)
        self._tell_all(text)

    def _tell_all(self, text: str) -> None:
        logger.warning("%s", text)
        self._tell(text)
