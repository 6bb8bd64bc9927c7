"""Session state in one SQLite file of the Hermes home, shared by all processes that use it."""

from __future__ import annotations

import atexit
import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from hermes_ext._forks import living
from hermes_ext._text import printable
from hermes_ext.exceptions import StateError
from hermes_ext.turns.store import DAY, EPOCH, integer

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

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

STATE_FILE: Final = "extensions-state.db"
"""Its name in a Hermes home."""

_WAIT_AGAIN_AFTER: Final = 5.0
_SAY_AGAIN_AFTER: Final = 60.0
_MOVES: Final = 3
_ROOM_NEEDED: Final = 64 * 1024


class SQLiteStore:
    """Values in one SQLite file (WAL), shared by all processes that name the same path.

    The file and its directory are made by the first write, the file with mode 0600. Each write is a
    transaction of its own: after `kill -9` everything that was written is there and whole (after
    a power cut the last few may be missing).

    What cannot be read or stored raises `StateError` with `unavailable` set: a disk that is full, a
    file that is read-only, damaged, or locked for longer than `busy_timeout`. Each call tries
    again, so that the store works as soon as the file does. After a wait for a lock that came to
    nothing, calls do not wait for five seconds.

    Args:
        path: the file.
        busy_timeout: seconds to wait for another process that is writing.
        notify: called with one line when the store begins to fail, at most once a minute, from the
            thread that met it.
        clock: seconds since the epoch; what `sweep` measures by.

    Attributes:
        path: the file.
        problem: such a line of the last failure while the store fails; None while it works.
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
        self.problem: str | None = None
        self._cannot_write = False
        self._busy_timeout = busy_timeout
        self._notify = notify
        self._clock = clock
        self._guard = threading.RLock()
        self._identity: tuple[int, int] | None = None
        self._read_only = False
        self._waited_at: float | None = None
        self._said_at = float("-inf")
        _stores[id(self)] = self

    def get(self, conversation_id: str, extension: str, key: str) -> str | None:
        slot = (conversation_id, extension, key)
        return self._read(conversation_id, lambda connection: _text(connection, *slot), None)

    def items(self, conversation_id: str, extension: str) -> dict[str, str]:
        owner = (conversation_id, extension)
        return self._read(conversation_id, lambda found: dict(found.execute(_ITEMS, owner)), {})

    def set(self, conversation_id: str, extension: str, key: str, value: str) -> None:
        slot = (conversation_id, extension, key, value)
        self._write(conversation_id, lambda connection: connection.execute(_SET, slot))

    def delete(self, conversation_id: str, extension: str, key: str) -> None:
        slot = (conversation_id, extension, key)
        self._write(conversation_id, lambda connection: connection.execute(_DELETE, slot))

    def count(self, conversation_id: str, extension: str, key: str, by: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            total = integer(_text(connection, conversation_id, extension, key)) + by
            connection.execute(_SET, (conversation_id, extension, key, str(total)))
            return total

        return self._write(conversation_id, work)

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

        with self._guard, self._working(writing=False):
            return 0 if days <= 0 else self._if_there(work) or 0

    def check(self) -> None:
        """Find out whether state can be read and stored, and leave nothing behind.

        Raises:
            StateError: it cannot.
        """
        with self._guard, self._working(writing=True):
            if self.path.parent.exists():
                self._if_there(_examine)
                _try_writing_at(self.path)

    def close(self) -> None:
        with self._guard:
            self._disconnect()

    def __del__(self) -> None:
        # Python 3.13 warns about a connection that nobody closed.
        self._disconnect()

    # -- reading and writing ----------------------------------------------------------------

    def _read(self, conversation_id: str, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        def reading(connection: sqlite3.Connection) -> tuple[T, bool]:
            row = connection.execute(_USED_AT, (conversation_id,)).fetchone()
            # Being read is being used; said once a day, so that reading seldom writes.
            return work(connection), row is not None and row[0] < self._clock() - DAY

        with self._guard, self._working(writing=False):
            found = self._if_there(reading)
            if found is None:
                return default
            if found[1]:
                with suppress(_sqlite().Error, OSError):  # what was read is right all the same
                    self._if_there(lambda connection: self._use(connection, conversation_id))
            return found[0]

    def _use(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        connection.execute(_USE, (conversation_id, self._clock()))

    def _write(self, conversation_id: str, change: Callable[[sqlite3.Connection], T]) -> T:
        """Make a change in one transaction, and return what it gives."""

        def work(connection: sqlite3.Connection) -> T:
            with _transaction(connection):
                self._use(connection, conversation_id)
                return change(connection)

        with self._guard, self._working(writing=True):
            for _ in range(_MOVES):
                connection = self._connected(create=True)
                assert connection is not None
                written = work(connection)
                if _identity(self.path) == self._identity:
                    return written
                # Moved or removed by somebody meanwhile, and what was written with it.
            raise FileNotFoundError(f"{self.path} is removed again and again")

    def _if_there(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do work on the file; None where there is no file."""
        connection = self._connected(create=False)
        return None if connection is None else work(connection)

    # -- the outage -------------------------------------------------------------------------

    @contextmanager
    def _working(self, *, writing: bool) -> Iterator[None]:
        """While open, what the disk refuses becomes a `StateError`, said once for each outage."""
        begun = time.monotonic()
        try:
            yield
        except (_sqlite().Error, OSError) as error:
            if time.monotonic() - begun >= self._patience > 0:
                self._waited_at = time.monotonic()
            self._disconnect()
            raise self._failed(error, writing) from error
        if writing and self._waited_at is not None:  # reading may need no lock
            self._waited_at = None
            self._disconnect()  # the next connection waits again
        if writing or not self._cannot_write:
            self.problem, self._cannot_write = None, False

    @property
    def _patience(self) -> float:
        """Seconds to wait for a lock; none just after a wait that came to nothing."""
        waited = self._waited_at
        if waited is not None and time.monotonic() - waited < _WAIT_AGAIN_AFTER:
            return 0
        return self._busy_timeout

    def _failed(self, error: Exception, writing: bool) -> StateError:
        failed = _fault_of(self.path, error)
        begins, self.problem = self.problem is None, str(failed)
        self._cannot_write |= writing
        # A disk that is almost full fails in several ways, and takes a little now and then.
        now = time.monotonic()
        if begins and self._notify is not None and now - self._said_at > _SAY_AGAIN_AFTER:
            self._said_at = now
            self._notify(self.problem)
        return failed

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
            timeout=self._patience,
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

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from opening and closing the file.

        SQLite does not wait for its busy timeout when two processes switch to WAL at once.
        """
        from filelock import FileLock

        lock = FileLock(f"{self.path}.lock", timeout=self._patience, mode=0o600)
        # Held for a millisecond or two; asking every 50 would make others late.
        with lock.acquire(poll_interval=0.002):
            yield

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._read_only = False
        if connection is not None:
            with ExitStack() as alone, suppress(_sqlite().Error):
                # Also where the lock cannot be had, in a read-only home.
                with suppress(OSError):
                    alone.enter_context(self._alone())
                connection.close()


def _sqlite() -> Any:
    # `import hermes_ext` must not pay for SQLite.
    import sqlite3

    return sqlite3


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


def _text(
    connection: sqlite3.Connection, conversation_id: str, extension: str, key: str
) -> str | None:
    row = connection.execute(_GET, (conversation_id, extension, key)).fetchone()
    return None if row is None else str(row[0])


def _examine(connection: sqlite3.Connection) -> None:
    """Read all of the file, and take its write lock once.

    Raises:
        sqlite3.Error: it is damaged, or cannot be locked.
    """
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _sqlite().DatabaseError(found)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def _try_writing_at(path: Path) -> None:
    """Find out whether the file could be made and locked.

    Raises:
        OSError: it could not.
    """
    for beside in (f"{path}{suffix}" for suffix in (".lock", "-wal", "-shm")):
        if os.path.lexists(beside):
            os.close(os.open(beside, os.O_RDWR))
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))) as file:
        file.write(bytes(_ROOM_NEEDED))
        file.flush()
        os.fsync(file.fileno())


# -- why it fails --------------------------------------------------------------------------------

# The low byte of SQLite's extended result codes, without importing it.
_BUSY: Final = frozenset({5, 6})
_READ_ONLY: Final = frozenset({3, 8, 14, 23})
_FULL: Final = frozenset({13})
_DAMAGED: Final = frozenset({11, 26})
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_RIGHTS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def _fault_of(path: Path, error: Exception) -> StateError:
    """The error for a handler, whose text is also the line for the person.

    Args:
        path: the file that session state is kept in.
        error: what SQLite or the system raised.
    """
    return StateError(
        f"session state is unavailable: {printable(path)}: {printable(_reason(path, error))}",
        hint=f"{_remedy(path, error)}. Until then handlers that need it fail, and guards refuse",
        unavailable=True,
    )


def _reason(path: Path, error: Exception) -> str:
    if os.path.isdir(path):
        return "it is a folder"
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename in (None, str(path)) else f"{error.filename}: "
        return f"{named}{error.strerror}"
    return f"the file is damaged ({error})" if _code(error) in _DAMAGED else str(error)


def _remedy(path: Path, error: Exception) -> str:
    code, number = _code(error), getattr(error, "errno", None)
    if os.path.isdir(path):
        return "Remove the folder"
    if code in _DAMAGED:
        return "Move the file away to begin anew; what extensions kept in it is lost"
    if code in _BUSY or isinstance(error, TimeoutError):
        return "Another process holds it: end that process if it hangs"
    if code in _FULL or number in _NO_ROOM:
        return "Free space on the disk"
    if code in _READ_ONLY or number in _NO_RIGHTS:
        return "Make the file and its folder readable and writable for you"
    return "Repair what is named here, or move the file away"


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for errors of the system."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


# -- forks and the end of the process -------------------------------------------------------------

_stores: WeakValueDictionary[int, SQLiteStore] = WeakValueDictionary()


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
        for store in living(_stores):
            store._guard.acquire()
            self._held.append(store)
            store._disconnect()

    def after(self) -> None:
        held, self._held = self._held, []
        for store in held:
            store._guard.release()
        self._one_at_a_time.release()


def _close_all() -> None:
    for store in living(_stores):
        store.close()


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before, after_in_parent=_forks.after, after_in_child=_forks.after
    )
atexit.register(_close_all)
