"""Handlers that take long, or call without end: one line each, for the log and the person."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, NoReturn

from hermes_ext._forks import has_locks
from hermes_ext._log import logger
from hermes_ext._text import printable
from hermes_ext.chain.at_work import AtWork, awaiting, culprits, everyone
from hermes_ext.chain.calls import DEEPEST, Call, inside
from hermes_ext.chain.threads import threads
from hermes_ext.hooks.handler import Handler
from hermes_ext.turns import state

AFTER: Final = 10.0
EVERY: Final = 1.0


class Watchdog:
    """Looks, while turns are open, for handlers without a limit that are waited for.

    Attributes:
        after: seconds after which a call is reported, once.
        every: seconds between two looks.
    """

    def __init__(self, after: float = AFTER, every: float = EVERY) -> None:
        self.after = after
        self.every = every
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """Start anew: after a fork, the child does not have the thread."""
        self._awake = threading.Event()
        self._lock = threading.Lock()
        self._runs = False
        self._since: dict[tuple[Any, ...], float] = {}
        self._reported: set[tuple[Any, ...]] = set()

    def watch(self) -> None:
        """A turn has begun."""
        if self._awake.is_set():
            return
        self._awake.set()
        with self._lock:
            if not self._runs:
                try:
                    threads.make("hermes-ext-watchdog", self._run)
                except RuntimeError:  # no thread can be started now; the turn goes on without it
                    self._awake.clear()
                else:
                    self._runs = True

    def _run(self) -> NoReturn:
        while True:
            self._awake.wait()
            if not state.open_turns.any_at_work():
                self._awake.clear()
                if not state.open_turns.any_at_work():  # else one has begun in between
                    continue
                self._awake.set()
            time.sleep(self.every)
            try:
                self.look(time.monotonic())
            except Exception:  # a fault of ours: nothing is reported, and nothing stops
                logger.debug("the handlers at work could not be looked at", exc_info=True)

    def look(self, now: float) -> None:
        """Report the calls that have taken too long; now: seconds of any clock."""
        found = {each.key: each for each in everyone()}
        self._since = {key: self._since.get(key, now) for key in found}
        self._reported &= found.keys()
        for key, each in found.items():
            took = now - self._since[key]
            if took >= self.after and key not in self._reported:
                self._reported.add(key)
                _report(each, took)


def _report(found: AtWork, took: float) -> None:
    text = (
        f"{_named(found.handler)} has been running for {took:.0f} s, and the turn waits for it. "
        "Give it a limit with timeout= in register_hook"
    )
    logger.warning("%s", text)
    turn = state.open_turns.find(lambda one: one.uid == found.scope.turn_id)
    if turn is not None:
        turn.report_slow(text)


def too_deep(call: Call | None) -> str | None:
    """Why a call is refused that was made inside handlers, and what to do; None if it is not.

    Args:
        call: the call that it was made inside of; None where this context knows of none.
    """
    if call is not None and call.depth < DEEPEST:
        return None
    found = awaiting() if call is None else culprits(call)
    depth = len(found) if call is None else call.depth + 1
    if depth <= DEEPEST:
        return None
    who = "; ".join(map(_named, dict.fromkeys(found)))
    return (
        f"Refused, because handlers call each other without end: this call was made inside a "
        f"handler, {depth} calls deep, and at most {DEEPEST} are allowed. The handlers: "
        f"{who}. Let such a handler return at once for the calls that it makes itself, or "
        "name the tools that it is for with tools="
    )


def begun_too_deep() -> bool:
    """Whether handlers call each other without end up to this thread, which knows nothing of it.

    The chains that they are in run then: with few, nobody need look.
    """
    several = state.open_turns.chains() > DEEPEST
    return several and inside.get() is None and len(awaiting()) > DEEPEST


def _named(handler: Handler) -> str:
    where = f" ({handler.file}:{handler.line})" if handler.file else ""
    return printable(f"{handler}{where} on {handler.hook.value}")


watchdog: Final = Watchdog()
