"""The threads of the process: daemon threads that make one call after another.

All of the package's own threads come from here, so that a fork has one place to begin anew. A
thread cannot be stopped: what runs in one that nobody waits for any more is left to end by itself,
and does not keep the process from ending.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeAlias

from hermes_ext._forks import has_locks

_IDLE_KEPT: Final = 8

Call: TypeAlias = Callable[[], Callable[[], None]]
"""What a thread makes. It raises nothing, and returns what is called once the thread is free."""


class _Thread:
    __slots__ = ("_call", "_pool", "_thread", "_wake")

    def __init__(self, pool: Threads) -> None:
        self._pool = pool
        self._call: Call | None = None
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def give(self, name: str, call: Call) -> None:
        self._thread.name = name
        self._call = call
        self._wake.release()

    def _serve(self) -> None:
        goes_on = True
        while goes_on:
            self._wake.acquire()
            goes_on = self._make()

    def _make(self) -> bool:
        """Make the call that was given; whether there will be another.

        In a frame of its own, which ends with the call: whoever looks into it keeps nothing.
        """
        call, self._call = self._call, None
        assert call is not None
        tell = call()
        goes_on = self._pool.takes_back(self)
        tell()  # whoever waits for it may have more at once
        return goes_on


class Threads:
    """Threads that are reused: a new one for each call takes longer than most calls."""

    def __init__(self) -> None:
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """Start anew, without any thread: after a fork, the child has none of them."""
        self._lock = threading.Lock()
        self._idle: list[_Thread] = []

    def make(self, name: str, call: Call) -> None:
        """Make a call in a thread, which has this name for as long.

        Raises:
            RuntimeError: no thread can be started now.
        """
        if sys.is_finalizing():  # a thread that is there does not go on either
            raise RuntimeError("the interpreter is ending")
        with self._lock:
            thread = self._idle.pop() if self._idle else None
        (thread or _Thread(self)).give(name, call)

    def takes_back(self, thread: _Thread) -> bool:
        """A thread is about to be free; False if it is not needed any more."""
        with self._lock:
            keep = len(self._idle) < _IDLE_KEPT
            if keep:
                self._idle.append(thread)
        return keep


threads: Final = Threads()


def nothing() -> None:
    """For a call at whose end nobody waits."""


class Lane:
    """Calls of which so many are made at a time; the others wait, in order.

    Args:
        name: of the threads.
        width: how many calls are made at a time.
    """

    def __init__(self, name: str, width: int) -> None:
        self._name = name
        self._width = width
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """Start anew: after a fork, what waits is the parent's to make."""
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Have a call made.

        Raises:
            RuntimeError: no thread can be started now.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._busy < self._width:
                threads.make(self._name, self._serve)
                self._busy += 1
            self._waiting.append((future, call))
        return future

    def _serve(self) -> Callable[[], None]:
        while (given := self._next()) is not None:
            future, call = given
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - handed to whoever waits for it
                    future.set_exception(error)
            del given, future, call  # or they would be kept until the next ones come
        return nothing

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._busy -= 1
            return None
