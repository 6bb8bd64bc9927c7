"""The file: decisions are appended to it off the turn, and it is rotated."""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakValueDictionary

from hermes_ext._forks import has_locks, living
from hermes_ext._interrupts import let_through
from hermes_ext.chain.threads import nothing, threads
from hermes_ext.turns.decisions.level import LogLevel
from hermes_ext.turns.decisions.rotation import rotated

if TYPE_CHECKING:
    from hermes_ext.turns.decisions.line import DecisionEvent

_QUEUE_LIMIT: Final = 2_000
_IDLE_SECONDS: Final = 2.0
_LOCK_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.002


class DecisionLog:
    """Appends decisions to a file, off the turn, from any number of threads and processes.

    The file is made by the first line, with mode 0600, its directory too. When it is full it
    becomes `<name>.1`, that one `<name>.2`, and the oldest goes. A line is written by one system
    call at the end of the file, so lines of two processes never mix. Events wait in a queue of
    at most `queue_limit`; when it is full the oldest are dropped, and a line
    `{"time": …, "dropped": n}` says how many. What waits is written when the process ends in an
    orderly way; `kill -9` and `os._exit` lose it unless `flush` was called.

    Args:
        path: the file.
        level: what is written: `off`, `decisions`, `steps` or `payloads`.
        max_bytes: size of one file; a single longer line still gets written.
        files: how many files there are at most, the current one among them; at least 1.
        queue_limit: how many events wait at most.
        notify: called with each new notice, from the writing thread.

    Attributes:
        notices: what the person should know, each text once: that lines cannot be written.

    Raises:
        ValueError: `level` is none of the four.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        level: LogLevel | str = LogLevel.DECISIONS,
        *,
        max_bytes: int = 5_000_000,
        files: int = 3,
        queue_limit: int = _QUEUE_LIMIT,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.level = LogLevel(level)
        self.notices: list[str] = []
        self._max_bytes = max_bytes
        self._files = files
        self._queue_limit = queue_limit
        self._notify = notify
        self.renew_locks()
        has_locks(self)
        _logs[id(self)] = self

    def renew_locks(self) -> None:
        """An empty queue and no thread: at first, and in a child after a fork.

        What waited in the parent is the parent's to write, and its locks may be held for ever here.
        """
        self._changed = threading.Condition()
        self._queue: deque[DecisionEvent] = deque()
        self._lost = 0
        self._busy = False
        self._writing = False

    @property
    def on(self) -> bool:
        """Whether anything is written: False at level `off`."""
        return self.level is not LogLevel.OFF

    def write(self, event: DecisionEvent) -> None:
        """Put an event in the queue. Returns at once and never raises."""
        if self.level is LogLevel.OFF:
            return
        with self._changed:
            if len(self._queue) >= self._queue_limit:
                self._queue.popleft()
                self._lost += 1
            self._queue.append(event)
            if self._writing:
                self._changed.notify_all()
            else:
                self._start_writing()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until every event put in so far is written, or given up on.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether nothing waits any more.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    # -- the writing thread -----------------------------------------------------------------

    def _start_writing(self) -> None:
        try:
            threads.make("hermes-ext-decisions", self._write_all)
            self._writing = True
        except RuntimeError:  # the interpreter is ending
            while self._queue:
                self._deliver(self._queue.popleft())

    def _write_all(self) -> Callable[[], None]:
        try:
            while (event := self._next()) is not None:
                self._deliver(event)
                del event  # or its turn would be kept until the next one comes
        except BaseException:
            with self._changed:
                self._writing = self._busy = False
                self._changed.notify_all()
            raise
        return nothing

    def _next(self) -> DecisionEvent | None:
        """Wait for an event; None, and no writer any more, where none came for a while.

        A log that nobody uses so has no thread that would keep it alive.
        """
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: bool(self._queue), _IDLE_SECONDS):
                self._writing = False
                return None
            self._busy = True
            return self._queue.popleft()

    def _deliver(self, event: DecisionEvent) -> None:
        with self._changed:
            lost, self._lost = self._lost, 0
        line = self._line(event)
        try:
            if lost:
                from hermes_ext.turns.decisions.line import encoded, iso

                self._append(encoded({"time": iso(time.time()), "dropped": lost}))
                lost = 0
            self._append(line)
        except OSError as error:
            with self._changed:
                self._lost += lost + 1
            self._say(
                f"{self.path}: the decision log cannot be written ({error}). The agent goes on; "
                "what cannot be written is dropped and counted. Make the file writable, or free "
                "space."
            )

    def _line(self, event: DecisionEvent) -> bytes:
        from hermes_ext.turns.decisions.line import build_line, encoded, iso

        try:
            return encoded(build_line(event, self.level))
        except BaseException as error:  # noqa: BLE001 - values are anybody's, who may raise anything: one bad one costs one line
            let_through(error)
            kind = type(error).__name__
            failed = {"time": iso(event.time), "turn": event.turn, "hook": str(event.hook)}
            return encoded({**failed, "error": f"the line could not be built: {kind}"})

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)
            if self._notify is not None:
                self._notify(notice)

    # -- the file ---------------------------------------------------------------------------

    def _append(self, line: bytes) -> None:
        with self._opened() as descriptor:
            size = os.fstat(descriptor).st_size
            if not size or size + len(line) <= self._max_bytes:
                return _put(descriptor, line)
        self._rotate(size)
        with self._opened() as descriptor:
            return _put(descriptor, line)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        # For each line: another process may have rotated the file.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, flags, 0o600)
        try:
            yield descriptor
        finally:
            # A child that another thread forks meanwhile has the descriptor too, and its lock.
            _lock(descriptor, "none")
            os.close(descriptor)

    def _rotate(self, size: int) -> None:
        from filelock import FileLock

        # A log that is too long is better than none: where it cannot be rotated it grows.
        with suppress(OSError), FileLock(f"{self.path}.lock", timeout=1, mode=0o600):
            if os.stat(self.path).st_size < size:
                return  # Another process has just done it.
            names = [self.path, *(rotated(self.path, n) for n in range(1, self._files))]
            for newer, older in reversed(list(pairwise(names))):
                with suppress(FileNotFoundError):
                    os.replace(newer, older)
            if self._files == 1:
                os.unlink(self.path)


def _put(descriptor: int, line: bytes) -> None:
    if _take_part(descriptor):
        # A writer was killed, or the disk filled up, in the middle of a line.
        line = b"\n" + line
    if os.write(descriptor, line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _take_part(descriptor: int) -> bool:
    """Become one of the file's writers. Returns whether its last line is torn.

    A line that another process is just writing looks like a torn one: the file grows before all of
    it is there. So writers share a lock, and only who has it alone believes in a torn line. No line
    waits for long: a process that stands still may have the lock, and some file systems have none.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        shared = _lock(descriptor, "shared")
        if shared is not False and not _is_torn(descriptor):
            return False
        if _lock(descriptor, "alone") or time.monotonic() > until:
            return _is_torn(descriptor)
        time.sleep(_POLL_SECONDS)


def _lock(descriptor: int, how: Literal["shared", "alone", "none"]) -> bool | None:
    """Change the lock without waiting. False where another's is in the way, None without locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        # First none: where turning one lock into the other fails some systems keep the old one.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        if how != "none":
            kind = fcntl.LOCK_SH if how == "shared" else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_torn(descriptor: int) -> bool:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0:
        return False
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) not in (b"\n", b"")


_logs: WeakValueDictionary[int, DecisionLog] = WeakValueDictionary()


def _flush_all() -> None:
    deadline = time.monotonic() + 2.0
    for log in living(_logs):
        log.flush(max(0.0, deadline - time.monotonic()))


atexit.register(_flush_all)
