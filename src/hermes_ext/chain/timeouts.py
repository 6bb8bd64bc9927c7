"""Running handlers that have a time limit: in threads that are left behind if stuck.

A thread cannot be stopped. One that runs into its limit is left behind; its late result is dropped,
and it serves again once its handler returns. How many may be left behind is bounded: for each
session, so that what one does costs the others nothing, and for the process.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextvars import Context, copy_context
from time import monotonic
from typing import Any, Final, Protocol

from hermes_ext._forks import has_locks
from hermes_ext.chain.raised import read
from hermes_ext.chain.threads import threads

LEFT_PER_HANDLER: Final = 4
LEFT_PER_SESSION: Final = 8
LEFT_IN_ALL: Final = 64
_LOOK_AGAIN: Final = 1.0

Ended = tuple[Any, BaseException | None]


class TimedOut(Exception):  # noqa: N818 - becomes a HandlerError of kind "timeout"
    """A handler took longer than its limit, or was not started because too many still run.

    Attributes:
        held: the locks that were taken away from it, as its author calls them.
    """

    def __init__(self, still_running: int = 0, where: str = "") -> None:
        super().__init__(still_running)
        self.still_running = still_running
        self.where = where
        self.held: tuple[str, ...] = ()

    def text(self, timeout: float | None) -> str:
        """What happened, as the end of a sentence that begins with the handler's name."""
        if self.still_running:
            return (
                f"was not called: {self.still_running} calls that ran out of time are still "
                f"running{self.where}"
            )
        late = f"took longer than {timeout or 0:g} s"
        if not self.held:
            return late
        return (
            f"{late} and still held {' and '.join(self.held)}: the turn goes on with a new lock, "
            "and what this call still writes is dropped"
        )


class Limited(Protocol):
    """What is known here of a handler."""

    @property
    def timeout(self) -> float | None: ...
    @property
    def is_async(self) -> bool: ...


class Session(Protocol):
    """What is known here of the session that a handler is called in, and of its turn's state."""

    @property
    def session_id(self) -> str | None: ...
    @property
    def conversation_id(self) -> str | None: ...
    @property
    def state(self) -> Any: ...


def name_of(session: Session | None) -> str | None:
    """The id of a session; None where there is none."""
    return None if session is None else session.session_id


class LeftBehind:
    """The calls that ran out of time and still run.

    Beyond so many of one handler in a session, in a session, or in all, the next fail at once.
    """

    def __init__(
        self,
        per_handler: int = LEFT_PER_HANDLER,
        per_session: int = LEFT_PER_SESSION,
        in_all: int = LEFT_IN_ALL,
    ) -> None:
        self._per_handler, self._per_session, self._in_all = per_handler, per_session, in_all
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """Start anew: after a fork, the child has none of the threads."""
        self.lock = threading.Lock()
        self._calls: Counter[tuple[str | None, Limited | None]] = Counter()
        self.total = 0

    def refusal(self, session: Session | None, handler: Limited) -> TimedOut | None:
        """Why the handler must not be called now; None where it may be."""
        if not self.total:
            return None
        name = name_of(session)
        with self.lock:
            mine, ours = self._calls[name, handler], self._calls[name, None]
            if self.total >= self._in_all:
                return TimedOut(self.total, " in this process")
            if mine >= self._per_handler or ours >= self._per_session:
                return TimedOut(mine if mine >= self._per_handler else ours, " in this session")
        return None

    def change(self, session: str | None, handler: Limited, by: int) -> None:
        """Count a call that was left (1) or has ended (-1); the caller holds `lock`."""
        self.total += by
        for key in ((session, handler), (session, None)):
            self._calls[key] += by
            if not self._calls[key]:
                del self._calls[key]


class Job:
    """A call that another thread makes, while its caller waits for a while.

    If its caller gives up, `left_behind` counts it; if not, `when_done` is called at its end.
    """

    __slots__ = ("_done", "_left_behind", "_session", "ended", "finished", "left", "owner", "tell")

    def __init__(
        self,
        owner: Limited,
        session: str | None,
        left_behind: LeftBehind,
        when_done: Callable[[], None] | None,
    ) -> None:
        self.owner = owner
        self.tell = when_done
        self.ended: Ended = (None, None)
        self.finished = False
        self.left = False
        self._session = session
        self._left_behind = left_behind
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self) -> None:
        """The call is over, and `ended` is set."""
        with self._left_behind.lock:
            self.finished = True
            if self.left:
                self._left_behind.change(self._session, self.owner, -1)
        if self.tell is not None and not self.left:
            self.tell()
        self._done.release()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end; False where it takes longer."""
        end = None if timeout is None else monotonic() + timeout
        while not self.finished:
            # A Ctrl-C that comes in the moment before this begins to wait does not wake it.
            left = _LOOK_AGAIN if end is None else min(_LOOK_AGAIN, end - monotonic())
            if left <= 0:
                return False
            if self._done.acquire(timeout=left):
                break
        return True

    def leave(self) -> bool:
        """Wait no longer; False if it has ended in this very moment."""
        with self._left_behind.lock:
            if not self.finished and not self.left:
                self.left = True
                self._left_behind.change(self._session, self.owner, 1)
            return not self.finished


def made(job: Job, call: Callable[[], Any]) -> Callable[[], None]:
    """Make a call in another thread; what says that it is over.

    In a frame of its own, which ends with the call: whoever looks into it keeps nothing.
    """
    try:
        job.ended = (call(), None)
    except BaseException as error:  # noqa: BLE001 - handed to the caller, which decides
        read(error)
        job.ended = (None, error)
    return job.finish


class Workers:
    """Threads for handlers with a time limit."""

    def __init__(
        self, left_per_handler: int = LEFT_PER_HANDLER, left_in_all: int = LEFT_IN_ALL
    ) -> None:
        self.left = LeftBehind(left_per_handler, in_all=left_in_all)

    @property
    def left_behind(self) -> int:
        """How many calls ran out of time and still run."""
        return self.left.total

    def call(
        self,
        handler: Limited,
        function: Callable[..., Any],
        values: Any,
        session: Session | None = None,
        context: Context | None = None,
    ) -> Ended:
        """Call a function within the handler's limit.

        Returns:
            What it returned and None, or None and what it raised (`TimedOut` for the limit).
        """
        job = self.start(handler, function, values, session, context)
        if isinstance(job, TimedOut):
            return None, job
        in_time = False
        try:
            in_time = job.wait(handler.timeout)
        finally:
            if not in_time:
                in_time = not job.leave()
        return job.ended if in_time else (None, TimedOut())

    def start(
        self,
        handler: Limited,
        function: Callable[..., Any],
        values: Any,
        session: Session | None = None,
        context: Context | None = None,
        when_done: Callable[[], None] | None = None,
    ) -> Job | TimedOut:
        """Begin a call in a thread; `when_done` is called there at its end unless it was left."""
        refusal = self.left.refusal(session, handler)
        if refusal is not None:
            return refusal
        run = (copy_context() if context is None else context).run
        job = Job(handler, name_of(session), self.left, when_done)
        threads.make("hermes-ext-handler", lambda: made(job, lambda: run(function, *values)))
        return job


workers: Final = Workers()
