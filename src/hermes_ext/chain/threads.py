"""The threads of the process: daemon threads that make one call after another.

All of the package's own threads come from here, so that a fork has one place to begin anew. A
thread cannot be stopped: what runs in one that nobody waits for any more is left to end by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeAlias

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
