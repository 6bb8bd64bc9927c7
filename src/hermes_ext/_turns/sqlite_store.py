"""Session state in one SQLite file of the Hermes home, shared by all processes that use it."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from attrs import frozen

from hermes_ext._turns.store import DAY, EPOCH, integer

if TYPE_CHECKING:
    import sqlite3

Slot: TypeAlias = tuple[str, str, str]
"""Conversation id, extension, key."""

T = TypeVar("T")


@frozen
class _Put:
    """A key gets this text; None removes it."""

    text: str | None

    def after(self, earlier: _Change | None) -> _Change:
        return self

    def over(self, stored: str | None) -> str | None:
        return self.text


@frozen
class _Add:
    """A key's integer grows by this much; what is no integer stays as it is."""

    by: int

    def after(self, earlier: _Change | None) -> _Change:
        if isinstance(earlier, _Add):
            return _Add(earlier.by + self.by)
        return self if earlier is None else _Put(self.over(earlier.text))

    def over(self, stored: str | None) -> str | None:
        try:
            return str(integer(stored) + self.by)
        except TypeError:
            return stored


_Change: TypeAlias = _Put | _Add

_SCHEMA_VERSION: Final = 1
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS conversation"
    " (id TEXT PRIMARY KEY, used_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS value (conversation TEXT NOT NULL, extension TEXT NOT NULL,"
    " key TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (conversation, extension, key))"
    " WITHOUT ROWID",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_GET: Final = "SELECT json FROM value WHERE conversation = ? AND extension = ? AND key = ?"
_ITEMS: Final = "SELECT key, json FROM value WHERE conversation = ? AND extension = ? ORDER BY key"
_SET: Final = (
    "INSERT OR REPLACE INTO value (conversation, extension, key, json) VALUES (?, ?, ?, ?)"
)
_DELETE: Final = "DELETE FROM value WHERE conversation = ? AND extension = ? AND key = ?"
_USED_AT: Final = "SELECT used_at FROM conversation WHERE id = ?"
_USE: Final = (
    "INSERT INTO conversation (id, used_at) VALUES (?, ?)"
    " ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)"
)
_LAST_USE: Final = "SELECT coalesce(max(used_at), 0) FROM conversation"
_WHERE_IDLE: Final = f"FROM conversation WHERE used_at >= {EPOCH} AND used_at < ?"
_IDLE: Final = f"SELECT count(*) {_WHERE_IDLE}"
_SWEEP: Final = (
    f"DELETE FROM value WHERE conversation IN (SELECT id {_WHERE_IDLE})",
    f"DELETE {_WHERE_IDLE}",
)

# The low byte of SQLite's extended result codes.
_CORRUPT: Final = 11
_NOT_A_DATABASE: Final = 26

_PENDING_LIMIT: Final = 10_000
_RETRY_AFTER: Final = 5.0
_MOVES: Final = 3


class SQLiteStore:
    """Values in one SQLite file (WAL), shared by all processes that name the same path.

    The file and its directory are made by the first write, the file with mode 0600. Each write is a
    transaction of its own: after `kill -9` everything that was written is there and whole (after
    a power cut the last few may be missing).

    Nothing raises because of the disk. What cannot be stored (full, read-only, locked for longer
    than `busy_timeout`) is kept in memory, seen by every read of this process, counters too, and
    stored with the next write that succeeds; a new attempt is made at most every five seconds. At
    most 10,000 such values are kept, the newest. A damaged file is renamed to
    `<name>.damaged-<n>` and a new one begun. Each of these adds one line to `notices`.

    Args:
        path: the file.
        busy_timeout: seconds to wait for another process that is writing.
        notify: called with each new notice, from the thread that met it.
        clock: seconds since the epoch; what `sweep` measures by.

    Attributes:
        path: the file.
        notices: what the person should know, in order, each text once.
    """

    _connection: sqlite3.Connection | None = None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout: float = 5.0,
        notify: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path).absolute()
        self.notices: list[str] = []
        self._busy_timeout = busy_timeout
        self._notify = notify
        self._clock = clock
        self._guard = threading.RLock()
        self._identity: tuple[int, int] | None = None
        self._read_only = False
        self._pending: dict[Slot, _Change] = {}
        self._failed_at: float | None = None
        _stores[id(self)] = self

    def get(self, conversation_id: str, extension: str, key: str) -> str | None:
        slot = (conversation_id, extension, key)
        with self._guard:
            change = self._pending.get(slot)
            if isinstance(change, _Put):
                return change.text
            stored = self._stored(slot)
            return stored if change is None else change.over(stored)

    def items(self, conversation_id: str, extension: str) -> dict[str, str]:
        owner = (conversation_id, extension)
        with self._guard:
            found: dict[str, str] = dict(
                self._read(conversation_id, lambda c: _all_of(c, owner), ())
            )
            for slot, change in self._pending.items():
                if slot[:2] == owner:
                    text = change.over(found.pop(slot[2], None))
                    if text is not None:
                        found[slot[2]] = text
            return found

    def set(self, conversation_id: str, extension: str, key: str, value: str) -> None:
        self._change((conversation_id, extension, key), _Put(value))

    def delete(self, conversation_id: str, extension: str, key: str) -> None:
        self._change((conversation_id, extension, key), _Put(None))

    def count(self, conversation_id: str, extension: str, key: str, by: int) -> int:
        return integer(self._change((conversation_id, extension, key), _Add(by)))

    def sweep(self, days: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            (last_use,) = connection.execute(_LAST_USE).fetchone()
            before = min(self._clock(), last_use) - days * DAY
            # Looking first: the usual answer is none, and needs no write lock.
            (idle,) = connection.execute(_IDLE, (before,)).fetchone()
            if idle:
                with _transaction(connection):
                    (idle,) = connection.execute(_IDLE, (before,)).fetchone()
                    for statement in _SWEEP:
                        connection.execute(statement, (before,))
            return int(idle)

        with self._guard:
            if days <= 0 or self._resting():
                return 0
            try:
                return self._attempt(work, create=False) or 0
            except _disk_errors() as error:
                self._failed(error)
                return 0

    def close(self) -> None:
        with self._guard:
            if self._pending:
                with suppress(*_disk_errors()):
                    self._flush(self._pending)
            self._disconnect()

    def __del__(self) -> None:
        # Python 3.13 warns about a connection that nobody closed.
        self._disconnect()

    # -- reading and writing ----------------------------------------------------------------

    def _stored(self, slot: Slot) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(_GET, slot).fetchone()
            return None if row is None else str(row[0])

        return self._read(slot[0], work, None)

    def _read(self, conversation_id: str, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        def reading(connection: sqlite3.Connection) -> tuple[T, bool]:
            row = connection.execute(_USED_AT, (conversation_id,)).fetchone()
            # Being read is being used; said once a day, so that reading seldom writes.
            return work(connection), row is not None and row[0] < self._clock() - DAY

        try:
            found = self._attempt(reading, create=False)
            if found is None:
                return default
            if found[1] and not self._resting():
                self._attempt(lambda connection: self._use(connection, conversation_id))
            return found[0]
        except _disk_errors() as error:
            self._failed(error)
            return default

    def _use(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        connection.execute(_USE, (conversation_id, self._clock()))

    def _change(self, slot: Slot, change: _Change) -> str | None:
        """Apply a change and return what is under the key now."""
        with self._guard:
            queued = change.after(self._pending.get(slot))
            if not self._resting():
                try:
                    return self._flush({**self._pending, slot: queued})[slot]
                except _disk_errors() as error:
                    self._failed(error)
            self._pending.pop(slot, None)
            self._pending[slot] = queued
            if len(self._pending) > _PENDING_LIMIT:
                del self._pending[next(iter(self._pending))]
            return queued.over(None if isinstance(queued, _Put) else self._stored(slot))

    def _flush(self, changes: dict[Slot, _Change]) -> dict[Slot, str | None]:
        """Store changes in one transaction; returns what is under each key now."""

        def work(connection: sqlite3.Connection) -> dict[Slot, str | None]:
            with _transaction(connection):
                for conversation_id in {slot[0] for slot in changes}:
                    self._use(connection, conversation_id)
                return {slot: _write(connection, slot, changes[slot]) for slot in changes}

        written = self._attempt(work) or {}
        for _ in range(_MOVES):
            if _identity(self.path) == self._identity:
                break
            # Set aside or removed by another process meanwhile, and what was written with it.
            written = self._attempt(work) or {}
        self._pending = {}
        self._failed_at = None
        return written

    def _attempt(self, work: Callable[[sqlite3.Connection], T], *, create: bool = True) -> T | None:
        """Do work on the file; a damaged one is set aside and the work done on a new one.

        None where there is no file and `create` is false.
        """
        try:
            return self._on_connection(work, create)
        except _sqlite().DatabaseError as error:
            if not _is_damage(error):
                raise
            self._set_aside(error)
            return self._on_connection(work, create)

    def _on_connection(self, work: Callable[[sqlite3.Connection], T], create: bool) -> T | None:
        connection = self._connected(create)
        return None if connection is None else work(connection)

    # -- the outage -------------------------------------------------------------------------

    def _resting(self) -> bool:
        """Whether the last failure is so recent that trying again would only cost time."""
        return self._failed_at is not None and 0 <= self._clock() - self._failed_at < _RETRY_AFTER

    def _failed(self, error: BaseException) -> None:
        self._failed_at = self._clock()
        self._disconnect()
        self._say(
            f"{self.path}: session state cannot be stored ({error}). It is kept in memory until it "
            "can be, and lost if the process ends before. Make the file writable, or free space."
        )

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)
            if self._notify is not None:
                self._notify(notice)

    # -- the file ---------------------------------------------------------------------------

    def _connected(self, create: bool) -> sqlite3.Connection | None:
        """The connection to the file that is at the path now; None where there is none."""
        found = _identity(self.path)
        # One that only reads what stood there is of no use once the file can be written again.
        outlived = self._read_only and os.access(self.path.parent, os.W_OK)
        if self._connection is not None and found == self._identity and not outlived:
            return self._connection
        # The file was removed or replaced: writing on would lose what is written.
        self._disconnect()
        if found is None and not create:
            return None
        if found is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connection = self._open(create)
        return self._connection

    def _open(self, create: bool) -> sqlite3.Connection | None:
        try:
            with self._alone():
                if create and not os.path.exists(self.path):
                    os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
                self._identity = _identity(self.path)
                if self._identity is None and not create:
                    return None
                # "rw": a file that went away just now is not made again with another mode.
                return self._prepared("mode=rw")
        except (_sqlite().OperationalError, OSError):
            # To read a WAL database SQLite writes beside it. In a read-only home it can be
            # read as it stands: without a WAL nobody is writing it.
            if os.access(self.path.parent, os.W_OK) or os.path.exists(f"{self.path}-wal"):
                raise
            self._identity = _identity(self.path)
            connection = self._prepared("mode=ro&immutable=1")
            self._read_only = True
            return connection

    def _prepared(self, options: str) -> sqlite3.Connection:
        connection: sqlite3.Connection = _sqlite().connect(
            f"{self.path.as_uri()}?{options}",
            uri=True,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise _sqlite().OperationalError("a newer version of hermes-ext wrote the file")
        if version == _SCHEMA_VERSION:
            return
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        with _transaction(connection):
            for statement in _SCHEMA:
                connection.execute(statement)

    def _set_aside(self, error: BaseException) -> None:
        damaged = self._identity
        self._disconnect()
        with self._alone():
            if damaged is None or _identity(self.path) != damaged:
                return  # Another process was faster; what is there now is its new file.
            number = 1
            while os.path.lexists(f"{self.path}.damaged-{number}"):
                number += 1
            # The database first: SQLite throws away a WAL that it finds beside a new file.
            for suffix in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    os.rename(f"{self.path}{suffix}", f"{self.path}.damaged-{number}{suffix}")
        self._say(
            f"{self.path}: session state is damaged ({error}). The file is set aside as "
            f"{self.path.name}.damaged-{number} and a new one begun: what extensions kept for "
            "earlier conversations is gone."
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from opening, closing and setting aside the file.

        SQLite finds the files beside a database by their names: a process that has just opened
        the one that is set aside would take the WAL of the new one for its own, and one that
        closes it would remove that WAL. And it does not wait for its busy timeout when two
        processes switch to WAL at once.
        """
        from filelock import FileLock

        lock = FileLock(f"{self.path}.lock", timeout=self._busy_timeout, mode=0o600)
        # Held for a millisecond or two; asking every 50 would make others late.
        with lock.acquire(poll_interval=0.002):
            yield

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._read_only = False
        if connection is not None:
            with ExitStack() as alone, suppress(_sqlite().Error):
                # Also where the lock cannot be had: in a read-only home nobody sets aside.
                with suppress(OSError):
                    alone.enter_context(self._alone())
                connection.close()


def _sqlite() -> Any:
    # `import hermes_ext` must not pay for SQLite.
    import sqlite3

    return sqlite3


def _disk_errors() -> tuple[type[Exception], ...]:
    return _sqlite().Error, OSError


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (_CORRUPT, _NOT_A_DATABASE)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(_sqlite().Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def _all_of(connection: sqlite3.Connection, owner: tuple[str, str]) -> tuple[Any, ...]:
    return tuple(connection.execute(_ITEMS, owner))


def _write(connection: sqlite3.Connection, slot: Slot, change: _Change) -> str | None:
    row = connection.execute(_GET, slot).fetchone()
    text = change.over(None if row is None else row[0])
    if text is None:
        connection.execute(_DELETE, slot)
    else:
        connection.execute(_SET, (*slot, text))
    return text


# -- forks and the end of the process -------------------------------------------------------------

_stores: WeakValueDictionary[int, SQLiteStore] = WeakValueDictionary()


def _open_stores() -> list[SQLiteStore]:
    # valuerefs() copies in one step; iterating fails when another thread makes a store meanwhile.
    return [store for ref in _stores.valuerefs() if (store := ref()) is not None]


class _Forks:
    """Closes all connections for the moment of a fork.

    SQLite's locks belong to a process while its record of them is inherited: a child that opens
    the file while it has an inherited connection believes to hold locks that it does not have, and
    the parent then removes the WAL under it. With no connection open there is nothing to inherit.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._held: list[SQLiteStore] = []

    def before(self) -> None:
        self._one_at_a_time.acquire()
        for store in _open_stores():
            store._guard.acquire()
            self._held.append(store)
            store._disconnect()

    def after(self) -> None:
        held, self._held = self._held, []
        for store in held:
            store._guard.release()
        self._one_at_a_time.release()


def _close_all() -> None:
    for store in _open_stores():
        store.close()


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before, after_in_parent=_forks.after, after_in_child=_forks.after
    )
atexit.register(_close_all)
