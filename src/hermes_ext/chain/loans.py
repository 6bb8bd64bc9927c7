"""What a call of a handler borrows of the state that others share, until it is left behind.

A handler with a time limit may be left behind while it holds a lock of the state. Nobody can make
its thread let go. So such a call gets the state through a `Loan`: when the call is left, the lock
that it holds is replaced for everybody else, and the state that it has becomes a copy of its own.
"""

from __future__ import annotations

import threading
from time import monotonic
from types import TracebackType
from typing import Any, Final, Protocol

_LOOK_AGAIN: Final = 0.05  # seconds after which who waits for a lock looks whether it is replaced


class Lock(Protocol):
    """What `threading.RLock()` returns; its own type has another name in each Python."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.release()


class SharedLock(Lock):
    """A re-entrant lock that can be replaced while somebody holds it."""

    __slots__ = ("__weakref__", "_lock", "_replaced")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._replaced = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As of `threading.RLock`."""
        lock = self._lock
        if lock.acquire(False):
            if lock is self._lock:
                return True
            lock.release()
        return blocking and self._wait(timeout)

    def _wait(self, timeout: float) -> bool:
        end = None if timeout < 0 else monotonic() + timeout
        while True:
            lock = self._lock
            left = _LOOK_AGAIN if end is None else min(_LOOK_AGAIN, end - monotonic())
            if lock.acquire(timeout=max(left, 0)):
                if lock is self._lock:
                    return True
                lock.release()
            elif left <= 0:
                return False

    def release(self) -> None:
        """As of `threading.RLock`; one that was replaced meanwhile is let go without a word."""
        try:
            self._lock.release()
        except RuntimeError:
            if not self._replaced:
                raise

    def is_owned(self) -> bool:
        """Whether this thread holds it."""
        lock: Any = self._lock
        return bool(lock._is_owned())

    def replace(self) -> None:
        """Let those who wait have a new lock; whoever holds the old one keeps nobody out."""
        self._replaced = True
        self._lock = threading.RLock()


class LentLock(Lock):
    """A shared lock as one call has it: one of its own once the call was left behind."""

    __slots__ = ("_guard", "_held", "_lock", "_shared")

    def __init__(self, shared: SharedLock | LentLock) -> None:
        self._shared = shared
        self._lock: Lock = shared
        self._held = 0
        self._guard = threading.Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As of `threading.RLock`."""
        while True:
            lock = self._lock
            if not lock.acquire(blocking, timeout):
                return False
            with self._guard:
                if lock is self._lock:
                    self._held += 1
                    return True
            lock.release()  # the call was left while it waited

    def release(self) -> None:
        """As of `threading.RLock`; a lock that was taken away is not there to be released."""
        with self._guard:
            if self._lock is not self._shared and not self._held:
                return
            self._lock.release()
            self._held -= 1

    def is_owned(self) -> bool:
        """Whether this thread holds the shared one."""
        return self._lock is self._shared and self._shared.is_owned()

    def let_go(self) -> None:
        """Release it, if the call's own thread, which this is, has not: the call is over."""
        while self._held and self.is_owned():
            self.release()

    def replace(self) -> None:
        """Let the others have a new lock: a call that this one has made was left behind."""
        with self._guard:
            if self._lock is self._shared:
                self._held = 0
                self._shared.replace()
            else:
                self._lock = threading.RLock()

    def take_back(self) -> bool:
        """Cut it from the shared lock, for good; whether the call held that."""
        with self._guard:
            held, self._held = self._held, 0
            if held:
                self._shared.replace()
            self._lock = threading.RLock()
            return bool(held)


class Lent(Protocol):
    """State as one call has it."""

    def take_back(self) -> str | None:
        """Cut it from what others share; the name of the lock that the call held, if it did."""

    def let_go(self) -> None:
        """Release what this thread still holds of it."""


class Loan:
    """All that one call of a handler has of shared state."""

    __slots__ = ("_guard", "_lent", "_taken_back")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._lent: dict[Any, tuple[Any, Lent]] = {}
        self._taken_back = False

    def of(self, state: Any) -> Any:
        """The state as this call has it: the same at each call. What cannot be lent is shared."""
        lend = getattr(type(state), "lent", None)
        if lend is None:
            return state
        key = state.loan_key
        with self._guard:
            found = self._lent.get(key)
            if found is None:
                # The state is kept: its identity may be the key.
                found = self._lent[key] = state, lend(state)
                if self._taken_back:
                    found[1].take_back()
            return found[1]

    def take_back(self) -> tuple[str, ...]:
        """The call is left behind; the names of the locks that it held."""
        with self._guard:
            self._taken_back = True
            held = (lent.take_back() for _, lent in self._lent.values())
            return tuple(name for name in held if name is not None)

    def let_go(self) -> None:
        """The call is over; in its thread, release what it has not released."""
        for _, lent in list(self._lent.values()):
            lent.let_go()
