"""Where session state is: the interface that a host may implement, and the store in memory.

Stores deal in JSON text. Values are encoded when they are set and decoded when they are read, so
nobody holds an object that somebody else can change, and nothing is cached: two processes that use
one conversation see each other's writes at once.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from hermes_ext._forks import has_locks

# Any, as in the standard library's json: a recursive union would make authors cast each read.
JSON: TypeAlias = Any
"""None, bool, int, float (finite), str, list of JSON, or dict from str to JSON."""

ABSENT: Final = object()
DAY: Final = 86_400.0
EPOCH: Final = 1_735_689_600.0
"""The first of 2025: a time before it is of a clock that was not set."""


class SessionStore(Protocol):
    """Where the values of all conversations are: JSON text by conversation, extension and key.

    Every method may be called from any thread, and raises `StateError` with `unavailable` set where
    the values cannot be read or stored: a full disk, a file that is read-only, locked or damaged.
    What a method has not stored by then is not stored later either. A later call tries again.

    Attributes:
        problem: one line while the store fails: what, why, and what to do; None while it works.
    """

    problem: str | None

    def get(self, conversation_id: str, extension: str, key: str) -> str | None:
        """The JSON text under `key`; None where there is none."""

    def items(self, conversation_id: str, extension: str) -> dict[str, str]:
        """All keys of one extension in one conversation with their JSON text: a copy."""

    def set(self, conversation_id: str, extension: str, key: str, value: str) -> None:
        """Store the JSON text `value`. It is stored when this returns."""

    def delete(self, conversation_id: str, extension: str, key: str) -> None:
        """Remove `key`; one that is not there is no error."""

    def count(self, conversation_id: str, extension: str, key: str, by: int) -> int:
        """Add `by` to the integer under `key` (0 where there is none) and return the sum.

        Atomic over threads and over all processes that share the store.

        Raises:
            TypeError: what is stored there is not an integer.
        """

    def sweep(self, days: float) -> int:
        """Forget conversations that nobody used for `days` days; returns how many they were.

        0 or less keeps everything. The days end with the last use of any conversation, not with
        what the clock says now, and one that was used before `EPOCH` stays: a clock that is wrong
        when a process starts must not cost what is in use.
        """

    def close(self) -> None:
        """Write what is still to be written and let go of files; later calls open them again."""


def decoded(text: str | None) -> JSON:
    """The value of a stored JSON text; `ABSENT` for None and for what is no JSON."""
    try:
        return ABSENT if text is None else json.loads(text)
    except ValueError:
        # SQLite keeps no checksums: a damaged page may come back as text that was never written.
        return ABSENT


def integer(text: str | None) -> int:
    """The integer that a JSON text holds; 0 for None and for text that is no JSON.

    Raises:
        TypeError: it holds something else.
    """
    value = decoded(text)
    if value is ABSENT:
        return 0
    if type(value) is not int:
        raise TypeError(f"the value is of type {type(value).__name__}, not an integer")
    return value


class MemoryStore:
    """Values in this process only: for tests, and for hosts without a home.

    Args:
        clock: seconds; what `sweep` measures by.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.problem: str | None = None
        self.renew_locks()
        has_locks(self)
        self._clock = clock
        self._values: dict[str, dict[tuple[str, str], str]] = {}
        self._used_at: dict[str, float] = {}

    def renew_locks(self) -> None:
        """After a fork."""
        self._guard = threading.RLock()

    def get(self, conversation_id: str, extension: str, key: str) -> str | None:
        with self._guard:
            return self._used(conversation_id, extension).get((extension, key))

    def items(self, conversation_id: str, extension: str) -> dict[str, str]:
        with self._guard:
            found = self._used(conversation_id, extension).items()
            return {key: text for (owner, key), text in found if owner == extension}

    def set(self, conversation_id: str, extension: str, key: str, value: str) -> None:
        with self._guard:
            self._used(conversation_id, extension, begin=True)[extension, key] = value

    def delete(self, conversation_id: str, extension: str, key: str) -> None:
        with self._guard:
            values = self._used(conversation_id, extension)
            values.pop((extension, key), None)
            if not values:
                self._values.pop(conversation_id, None)
                self._used_at.pop(conversation_id, None)

    def count(self, conversation_id: str, extension: str, key: str, by: int) -> int:
        with self._guard:
            total = integer(self.get(conversation_id, extension, key)) + by
            self.set(conversation_id, extension, key, str(total))
            return total

    def sweep(self, days: float) -> int:
        with self._guard:
            last_use = max(self._used_at.values(), default=0.0)
            before = min(self._clock(), last_use) - days * DAY
            idle = [
                name
                for name, used_at in self._used_at.items()
                if days > 0 and EPOCH <= used_at < before
            ]
            for name in idle:
                del self._values[name], self._used_at[name]
            return len(idle)

    def close(self) -> None:
        """Nothing to let go of; the values stay."""

    def _used(
        self, conversation_id: str, _extension: str, begin: bool = False
    ) -> dict[tuple[str, str], str]:
        """The values of a conversation; begin: also of one that has none yet."""
        values = self._values.get(conversation_id)
        if values is None and not begin:
            return {}
        if values is None:
            values = self._values[conversation_id] = {}
        # Never earlier than it was: the clock may have been set back.
        used_at = self._used_at.get(conversation_id, 0.0)
        self._used_at[conversation_id] = max(used_at, self._clock())
        return values


class CopiedStore(MemoryStore):
    """What another store holds when it is first asked for; changes stay here.

    Args:
        of: the other store.
    """

    def __init__(self, of: SessionStore) -> None:
        super().__init__()
        self._of = of
        self._copied: set[tuple[str, str]] = set()

    def _used(
        self, conversation_id: str, extension: str, begin: bool = False
    ) -> dict[tuple[str, str], str]:
        if (conversation_id, extension) not in self._copied:
            self._copied.add((conversation_id, extension))
            for key, text in self._of.items(conversation_id, extension).items():
                self.set(conversation_id, extension, key, text)
        return super()._used(conversation_id, extension, begin)
