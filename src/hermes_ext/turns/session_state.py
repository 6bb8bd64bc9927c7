"""What an extension keeps for a conversation, over turns, resume, restart and reload."""

from __future__ import annotations

import json
import threading
from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from typing import Any, Final
from weakref import WeakValueDictionary

from hermes_ext._forks import has_locks
from hermes_ext.chain.loans import LentLock, Lock, SharedLock
from hermes_ext.exceptions import StateError
from hermes_ext.turns.state import rejudging
from hermes_ext.turns.store import ABSENT, JSON, CopiedStore, SessionStore, decoded, integer


class SessionState(MutableMapping[str, JSON]):
    """The JSON values that one extension keeps for one conversation: a mapping from `str`.

    Written at once, so they are there however the turn ends. A read gives a fresh copy: changing a
    list that was read changes nothing until it is set again. Reading and iterating never raise
    because another thread or process writes. `state["n"] += 1` is two steps and may lose
    updates under parallel tool calls: use `count`, or `lock`.

    A handler that runs into its time limit is cut from it: the lock that it holds is replaced, and
    what it writes from then on is not stored.

    Args:
        store: where the values are.
        conversation_id: the conversation; subagents share their parent's.
        extension: the extension's name. No other extension sees these values.

    Raises:
        StateError: a value is set that JSON cannot hold, or a key that is not text, or `count`
            meets a value that is no integer; or, with `unavailable` set, nothing can be read or
            stored at the moment. A handler that lets it through fails, by its `on_store_error`.
    """

    __slots__ = ("_conversation_id", "_extension", "_lock", "_locks", "_store")

    def __init__(self, store: SessionStore, conversation_id: str, extension: str) -> None:
        self._store = store
        # Ids come from hosts; a lone surrogate in one is no reason to fail a turn.
        self._conversation_id = conversation_id.encode("utf-8", "backslashreplace").decode()
        self._extension = extension
        self._locks: object = None
        self._lock: Any = None

    @property
    def lock(self) -> Lock:
        """A re-entrant lock for what must happen as one step: `with state.lock: …`.

        Shared by everything in this process that uses the same extension and conversation; other
        processes are not kept out.
        """
        if self._locks is not _locks.by_owner:
            self._locks = _locks.by_owner
            self._lock = _locks.of((id(self._store), self._conversation_id, self._extension))
        return self._lock  # type: ignore[no-any-return]

    @property
    def loan_key(self) -> tuple[int, str, str]:
        """What is lent once to each call."""
        return id(self._store), self._conversation_id, self._extension

    def lent(self) -> SessionState:
        """This state for one call, which may be left behind."""
        made = SessionState(self._store, self._conversation_id, self._extension)
        shared = self.lock
        made._locks, made._lock = self._locks, LentLock(shared)  # type: ignore[arg-type]
        return made

    def take_back(self) -> str | None:
        """Go on with a copy; `session_state.lock` if the call held it."""
        held = self._lock.take_back()
        self._store = CopiedStore(self._store)
        return "session_state.lock" if held else None

    def let_go(self) -> None:
        """Of state that is lent, release the lock, if this thread holds it."""
        self._lock.let_go()

    def count(self, key: str, by: int = 1) -> int:
        """Add `by` to the integer under `key` (0 where there is none) and return the sum.

        Atomic over threads and processes. While a call is judged a second time (another plugin
        changed its arguments) the number is returned as it stands, so that one call counts once.

        Raises:
            StateError: the value there, or `by`, is not an integer.
        """
        self._check_key(key)
        if isinstance(by, bool) or not isinstance(by, int):
            raise self._error(key, f"session_state cannot count by {by!r}", "Give an integer")
        try:
            if rejudging():
                return integer(self._store.get(*self._owner, key))
            return self._store.count(*self._owner, key, int(by))
        except TypeError as error:
            hint = "Delete the key first, or count under another one"
            raise self._error(key, f"session_state cannot count: {error}", hint) from None

    def snapshot(self) -> dict[str, JSON]:
        """All keys and values as a plain dict: one consistent copy."""
        found = {key: decoded(text) for key, text in self._store.items(*self._owner).items()}
        return {key: value for key, value in found.items() if value is not ABSENT}

    # -- the mapping ------------------------------------------------------------------------

    def __getitem__(self, key: str) -> JSON:
        value = decoded(self._store.get(*self._owner, key) if _is_key(key) else None)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: JSON) -> None:
        self._check_key(key)
        self._store.set(*self._owner, key, self._encoded(key, value))

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._store.delete(*self._owner, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def __len__(self) -> int:
        return len(self.snapshot())

    def keys(self) -> KeysView[str]:
        """The keys as they are now; later changes do not show."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[JSON]:
        """Copies of the values as they are now; later changes do not show."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, JSON]:
        """Keys and copies of the values as they are now; later changes do not show."""
        return self.snapshot().items()

    def setdefault(self, key: str, default: JSON = None) -> JSON:
        """As of a dict, in one step for this process."""
        with self.lock:
            return super().setdefault(key, default)

    def pop(self, key: str, default: Any = ABSENT) -> JSON:
        """As of a dict, in one step for this process."""
        with self.lock:
            try:
                value = self[key]
            except KeyError:
                if default is ABSENT:
                    raise
                return default
            self._store.delete(*self._owner, key)
            return value

    def popitem(self) -> tuple[str, JSON]:
        """As of a dict, in one step for this process."""
        with self.lock:
            for key, value in self.snapshot().items():
                self._store.delete(*self._owner, key)
                return key, value
        raise KeyError("popitem(): the session state is empty")

    def clear(self) -> None:
        """Remove every key of this extension in this conversation."""
        with self.lock:
            for key in self:
                self._store.delete(*self._owner, key)

    def __repr__(self) -> str:
        return (
            f"SessionState(extension={self._extension!r}, conversation={self._conversation_id!r})"
        )

    # -- what can be stored -----------------------------------------------------------------

    @property
    def _owner(self) -> tuple[str, str]:
        return self._conversation_id, self._extension

    def _check_key(self, key: object) -> None:
        if not _is_key(key):
            message = f"{key!r} cannot be a key of session_state"
            raise self._error(ascii(key), message, "Keys are str that UTF-8 can hold")

    def _encoded(self, key: str, value: JSON) -> str:
        try:
            found = _foreign(value, "the value")
            if found is None:
                return json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError) as error:
            found = f"the value cannot be written ({error})"
        hint = "Use None, bool, int, finite float, str, list, and dict with str keys"
        raise self._error(key, f"session_state holds JSON values only: {found}", hint)

    def _error(self, key: str, message: str, hint: str) -> StateError:
        return StateError(message, extension=self._extension, key=key, hint=hint)


def _is_key(key: object) -> bool:
    if not isinstance(key, str):
        return False
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _foreign(value: object, where: str) -> str | None:
    """What in `value` JSON would refuse, or change without a word; None where nothing is."""
    if value is None or isinstance(value, str | int | float):
        return None
    if isinstance(value, list):
        return next(filter(None, (_foreign(v, f"{where}[{i}]") for i, v in enumerate(value))), None)
    if not isinstance(value, dict):
        return f"{where} is of type {type(value).__qualname__}"
    for key, item in value.items():
        if not isinstance(key, str):
            return f"{where} has the key {key!r}, which is not a str"
        if (found := _foreign(item, f"{where}[{key!r}]")) is not None:
            return found
    return None


class _Locks:
    """One lock per store, conversation and extension, for as long as somebody holds on to it."""

    by_owner: WeakValueDictionary[tuple[int, str, str], SharedLock]

    def __init__(self) -> None:
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """After a fork: another thread of the parent may have held one of them."""
        self._guard = threading.Lock()
        self.by_owner = WeakValueDictionary()

    def of(self, owner: tuple[int, str, str]) -> SharedLock:
        with self._guard:
            lock: SharedLock | None = self.by_owner.get(owner)
            if lock is None:
                lock = self.by_owner[owner] = SharedLock()
            return lock

    def __len__(self) -> int:
        return len(self.by_owner)


_locks: Final = _Locks()
