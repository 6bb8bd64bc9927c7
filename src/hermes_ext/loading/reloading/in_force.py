"""What is in force for a Hermes home, and when what changed on the disk takes its place.

    a turn begins, none at work    look: did anything change since what is in force was loaded?
    changed, and no turn was open  load it beside the old one; taken if nothing is lost by it
    changed while one was at work  the agent may have done it: not taken until the process ends
    the last one at work ends      look: what changed in it is known by that

A turn is at work from its beginning to its end. One that its host never ends is at work no more
when the host has dropped it, or when nothing has happened in it for an hour (a day, if a tool call
was let through and its result has not come). What changes after the last that happened in it is a
person's; if it goes on all the same, it has the rules with which it began.

Who changed a file cannot be told, only when. So a change counts as a person's exactly if no turn of
this process was open, and none of the agent's own processes was running, from the look that did
not show it to the look that did. There is no command to take the others: whatever a command can
do, the agent can do.
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
from hermes_ext.loading.imports.importing import forget, hold
from hermes_ext.loading.loader import Base, load_base
from hermes_ext.loading.reloading.look import Look, TooMuchError, is_code, look
from hermes_ext.loading.reloading.not_taken import NotTakenFile
from hermes_ext.rules import Rulebook, Rules
from hermes_ext.settings.config import ExtensionsConfig, read_config, switched_off
from hermes_ext.turns import state

logger = logging.getLogger("hermes_ext")

# A file system's clock stands still for up to 10 ms: what is younger may change unseen.
SETTLED_SECONDS: Final = 0.02
_LOOKS: Final = 10  # at files that keep changing, before a turn goes on without them
_LOADS: Final = 3
_SHOWN: Final = 5


class InForce(Rulebook):
    """The rules of one Hermes home, exchanged as a whole. Thread-safe.

    Args:
        home: the Hermes home.
        prog: how the user calls our commands.
        taken: called with the configuration that has come into force.
        tell: called with the line that says why what changed is not in force.
        agent_at_work: whether a process that the agent started is running.
    """

    _seen: Look
    _passed: Look
    _passed_at: float

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
        self._for_others = NotTakenFile(home)
        self.renew_locks()
        has_locks(self)
        first = self._first_look()
        base = load_base(home)
        taken(base.config)
        self._hold(base, first)
        self._projects: Projects = Projects(base, prog)
        self._reloads = first is not None and base.config.reload
        self._spoilt: set[str] = set()
        self._gap_is_theirs = False
        self._old_packages: set[str] = set()
        if first is not None and self._reloads:
            self._taken = first
            self._saw(first, time.monotonic())
            self._decided: Look | None = first
            self._is_first = True
            state.watch_quiet(self)

    def renew_locks(self) -> None:
        """After a fork; no thread of the child is loading or choosing."""
        self._loading = threading.Lock()
        self._lock = threading.RLock()
        self._choosing = 0

    # -- what is in force ---------------------------------------------------------------------

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
        self._reloads = False
        state.stop_watching(self)
        self._for_others.remove()

    # -- turns ----------------------------------------------------------------------------------

    def turn_begins(self) -> None:
        """One turn does this; another that begins meanwhile goes on with what is in force."""
        if not self._reloads or not self._loading.acquire(blocking=False):
            return
        try:
            if state.any_at_work():
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
            now = self._to_be_loaded()
            if now is None:
                return
            if self._is_young(now):
                time.sleep(SETTLED_SECONDS)
                continue
            if self._is_taken(now):
                return
            loads += 1
            if loads == _LOADS:
                break
        self._decided = self._seen
        self._say(_keeps_changing(self._seen.changed(self._taken)))

    def _look_beside(self) -> None:
        """Look at what has changed while turns are at work, and say it.

        What a turn may have done is decided by this. All else is decided when the last turn ends,
        or when those that are open turn out to be left open.
        """
        with self._lock:
            at = time.monotonic()
            if not self._passed.is_now():
                now = look(self._home, self._passed)
                if self._is_a_turns(now):
                    self._spoil(now)
                self._passed = now
                changed = now.changed(self._taken)
                self._say(_changed_by_the_agent(changed) if changed else None)
            self._passed_at = at

    def last_turn_ends(self, turn: state.TurnCore) -> None:
        """Note what has changed while turns were at work."""
        try:
            with self._lock:
                at = time.monotonic()
                if not self._seen.is_now():
                    self._spoil(look(self._home, self._seen))
                self._saw(self._seen, at)
                self._is_first = False
                self._gap_is_theirs = self._agent_at_work()
                self._unload_old(choosing=0, ending=turn)
        except Exception:  # noqa: BLE001 - told, and no turn ends by it
            # What this turn may have changed is unknown, so nothing is taken any more.
            self._give_up("the extensions' files could not be looked at")

    def _to_be_loaded(self) -> Look | None:
        """How things look, if that is to be loaded; None: all stays as it is."""
        with self._lock:
            begun, at = state.turns_begun(), time.monotonic()
            if self._seen.is_now():
                now = self._seen
                if now is self._decided:
                    return None
            else:
                now = look(self._home, self._seen)
            if state.any_at_work() or state.turns_begun() != begun:
                return None  # another turn has begun meanwhile: it may have changed what was seen
            new = now is not self._seen
            if self._gap_is_theirs or (new and (self._agent_at_work() or self._is_a_turns(now))):
                self._spoil(now)
            changed = now.changed(self._taken)
            if self._is_first and not any(map(is_code, changed)):
                # What the extensions have written themselves, while they were loaded.
                self._taken, changed = now, set()
            self._is_first = False
            self._spoilt &= changed
            self._saw(now, at)
            # What is young is looked at again before it is loaded.
            self._decided = None if self._is_young(now) else now
            if not changed:
                self._say(None)
            elif self._spoilt:
                self._say(_changed_by_the_agent(self._spoilt))
            else:
                return now
            return None

    def _is_young(self, now: Look) -> bool:
        """Whether it may change again without looking different."""
        # By a clock that was set back everything is young.
        return -1 < now.age(now.changed(self._taken)) < SETTLED_SECONDS

    # -- loading --------------------------------------------------------------------------------

    def _is_taken(self, now: Look) -> bool:
        """Load it; False where it has changed meanwhile, and is to be looked at again."""
        old = self._projects
        new, lost = self._loaded(now, old)
        with self._lock:
            after = look(self._home, now)
            written = after.changed(now)
            if any(map(is_code, written)) or (written and state.any_at_work()):
                self._drop(new)
                self._decided = None
                return state.any_at_work()  # whose change it is shows when that turn ends
            if lost:
                self._drop(new)
                self._say(_not_taken(lost))
            elif new is None or old.loads().keys() != new.loads().keys():
                # A project came into force meanwhile, and is not in the new.
                self._drop(new)
                self._decided = None
                return new is None
            else:
                self._exchange(new, after)
        return True

    def _loaded(self, now: Look, old: Projects) -> tuple[Projects | None, list[str]]:
        """What is on the disk, loaded beside the old, and what would be lost by it."""
        from hermes_ext.loading.reloading.losses import config_losses, losses

        place = now.irregular()
        if place is not None:
            return None, [f"{printable(place)} is not a regular file"]
        lost = config_losses(old.base.config, read_config(self._home))
        if lost:
            return None, lost
        new: Projects | None = None
        packages = old.packages()
        base: Base | None = None
        try:
            base = load_base(
                self._home,
                before=old.base,
                same=lambda found: found.path is not None and now.same_code(found, self._taken),
            )
            new = old.on(base)
            loads = new.loads()
            for roots, before in old.loads().items():
                if roots in loads:
                    lost += losses(before, loads[roots])
        except Exception as error:
            logger.exception("the extensions could not be loaded anew")
            lost = [f"{type(error).__name__}: {printable(str(error))}"]
            made = set() if base is None else base.own_packages()
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
        self._taken = self._decided = now
        self._saw(now, self._passed_at)
        self._spoilt.clear()
        self._old_packages |= old.packages()
        self._say(None)
        self._unload_old(choosing=1)
        idle = state.idle_turns()
        if idle:
            self._tell_all(_left_open(idle))
        logger.info("the extensions were loaded anew: their files or the configuration changed")

    def _hold(self, base: Base, seen: Look | None) -> None:
        """Have what is in force import no file later on that is another by then."""
        packages = base.packages_of_files() if seen is not None else {}
        if seen is None or not packages:
            return
        if not hasattr(self, "_taken"):  # at the start: they may have written files of their own
            try:
                seen = seen if seen.is_now() else look(self._home, seen)
            except TooMuchError:
                return
        for package, file in packages.items():
            if file in seen.files:
                hold(package, seen.files)

    def _drop(self, new: Projects | None) -> None:
        if new is not None:
            for package in new.packages() - self._projects.packages() - self._old_packages:
                forget(package)

    def _saw(self, seen: Look, at: float) -> None:
        """What differs from this look is to be decided; at: when it was made, or before."""
        self._seen = self._passed = seen
        self._passed_at = at

    def _is_a_turns(self, now: Look) -> bool:
        """Whether a turn may have done what has changed since the last look at all.

        What it may have done is older than the last that happened in it.
        """
        until = state.worked_until()
        if until <= self._passed_at:
            return False
        moment = time.time() - (time.monotonic() - until)
        return not now.all_after(now.changed(self._passed), moment)

    def _unload_old(self, choosing: int, ending: state.TurnCore | None = None) -> None:
        """Let go of modules that no turn uses any more; choosing: how many may be choosing."""
        if not self._old_packages or self._choosing > choosing:
            return
        used = self._projects.packages().union(
            *(turn.packages for turn in state.open_turns() if turn is not ending)
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

    # -- what is told ---------------------------------------------------------------------------

    def _first_look(self) -> Look | None:
        if switched_off():
            return None
        try:
            return look(self._home)
        except TooMuchError as error:
            logger.warning(
                "extensions are not reloaded: %s has more files than are looked at in every turn",
                error,
            )
            return None

    def _spoil(self, now: Look) -> None:
        self._spoilt |= now.changed(self._seen)
        self._saw(now, self._passed_at)
        self._decided = None

    def _give_up(self, why: str) -> None:
        self.close()
        logger.warning("extensions are not reloaded any more: %s", why, exc_info=True)
        self._say(f"{why}. What is loaded stays in force until Hermes is started anew")

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


def _not_taken(lost: list[str]) -> str:
    return (
        f"what changed in the extensions is not in force, the old stays: {'; '.join(lost)}. "
        "It is tried again when something changes"
    )


def _changed_by_the_agent(paths: set[str]) -> str:
    return (
        f"changed while the agent was at work, and not taken: {_listed(paths)}. What is loaded "
        "stays in force; look at it, and start Hermes anew to take it"
    )


def _left_open(turns: set[state.TurnCore]) -> str:
    sessions = ", ".join(sorted({repr(printable(turn.session_id)) for turn in turns})[:_SHOWN])
    return (
        f"the extensions were loaded anew for new turns. Turns that the host has not ended keep "
        f"what they began with: {len(turns)} (session {sessions})"
    )


def _keeps_changing(paths: set[str]) -> str:
    return f"what changed in the extensions is not in force: {_listed(paths)} keeps changing"


def _listed(paths: set[str]) -> str:
    shown = [printable(path) for path in sorted(paths)[:_SHOWN]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
