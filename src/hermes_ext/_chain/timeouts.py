"""Running handlers that have a time limit: in daemon threads that are reused, and left if stuck.

A thread cannot be stopped. One that runs into its limit is left behind; its late result is dropped,
and it serves again once its handler returns. How many may be left behind is bounded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final, Protocol

__all__ = ["Limited", "TimedOut", "Workers", "workers"]

LEFT_PER_HANDLER: Final = 4
LEFT_IN_ALL: Final = 32
_IDLE_KEPT: Final = 8

Ended = tuple[Any, BaseException | None]


class TimedOut(Exception):  # noqa: N818 - becomes a HandlerError of kind "timeout"
    """A handler took longer than its limit, or was not started because too many still run."""

    def __init__(self, still_running: int = 0) -> None:
        super().__init__(still_running)
        self.still_running = still_running

    def text(self, timeout: float | None) -> str:
        """What happened, as the end of a sentence that begins with the handler's name."""
        if self.still_running:
            return (
                f"was not called: {self.still_running} calls that ran out of time are still running"
            )
        return f"took longer than {timeout or 0:g} s"


class Limited(Protocol):
    """What is known here of a handler."""

    @property
    def timeout(self) -> float | None: ...
    @property
    def is_async(self) -> bool: ...


class _Job:
    __slots__ = ("call", "context", "done", "ended", "finished", "left", "owner", "when_done")

    def __init__(self, owner: Limited, call: Callable[[], Any], context: Context) -> None:
        self.owner = owner
        self.call = call
        self.context = context
        self.done = threading.Lock()
        self.done.acquire()
        self.ended: Ended = (None, None)
        self.finished = False
        self.left = False
        self.when_done: Callable[[], None] | None = None

    def run(self) -> None:
        try:
            self.ended = (self.context.run(self.call), None)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, which decides
            self.ended = (None, error)


class _Worker:
    __slots__ = ("_job", "_pool", "_wake")

    def __init__(self, pool: Workers) -> None:
        self._pool = pool
        self._job: _Job | None = None
        self._wake = threading.Lock()
        self._wake.acquire()
        threading.Thread(target=self._serve, name="hermes-ext-handler", daemon=True).start()

    def give(self, job: _Job | None) -> None:
        """Run a job; None ends the thread."""
        self._job = job
        self._wake.release()

    def _serve(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            if job is None:
                return
            job.run()
            goes_on = self._pool.returns(self, job)
            del job
            if not goes_on:
                return


class Workers:
    """Threads for handlers with a time limit.

    Args:
        left_per_handler: how many stuck calls of one handler are left behind before its calls fail
            at once.
        left_in_all: the same for all handlers together.
    """

    def __init__(
        self, left_per_handler: int = LEFT_PER_HANDLER, left_in_all: int = LEFT_IN_ALL
    ) -> None:
        self._left_per_handler = left_per_handler
        self._left_in_all = left_in_all
        self.forget()

    def forget(self) -> None:
        """Start anew, without any thread: after a fork, the child has none of them."""
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._left: dict[Limited, int] = {}

    @property
    def left_behind(self) -> int:
        """How many calls ran out of time and still run."""
        with self._lock:
            return sum(self._left.values())

    def call(self, handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
        """Call a function within the handler's limit.

        Returns:
            What it returned and None, or None and what it raised (`TimedOut` for the limit).
        """
        job = self.start(handler, lambda: function(*values))
        if isinstance(job, TimedOut):
            return None, job
        in_time = False
        try:
            in_time = job.done.acquire(timeout=-1 if handler.timeout is None else handler.timeout)
        finally:
            if not in_time:
                in_time = not self.leave(job)
        return job.ended if in_time else (None, TimedOut())

    def start(
        self,
        handler: Limited,
        call: Callable[[], Any],
        when_done: Callable[[], None] | None = None,
    ) -> _Job | TimedOut:
        """Begin a call in a thread; `when_done` is called there at its end unless it was left."""
        with self._lock:
            mine, everyone = self._left.get(handler, 0), sum(self._left.values())
            if mine >= self._left_per_handler or everyone >= self._left_in_all:
                return TimedOut(everyone if mine < self._left_per_handler else mine)
            worker = self._idle.pop() if self._idle else None
        job = _Job(handler, call, copy_context())
        job.when_done = when_done
        (worker or _Worker(self)).give(job)
        return job

    def leave(self, job: _Job) -> bool:
        """Wait no longer; False if it has ended in this very moment."""
        with self._lock:
            if job.finished:
                return False
            job.left = True
            self._left[job.owner] = self._left.get(job.owner, 0) + 1
            return True

    def returns(self, worker: _Worker, job: _Job) -> bool:
        """A worker has ended its job; False if it is not needed any more."""
        with self._lock:
            job.finished = True
            if job.left:
                self._left[job.owner] -= 1
                if not self._left[job.owner]:
                    del self._left[job.owner]
            keep = len(self._idle) < _IDLE_KEPT
            if keep:
                self._idle.append(worker)
        if job.when_done is not None and not job.left:
            job.when_done()
        job.done.release()
        return keep


workers: Final = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.forget)
