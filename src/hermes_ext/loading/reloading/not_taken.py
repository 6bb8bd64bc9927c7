"""Changes that are not taken: what is said of them, and which running processes have not.

A process that keeps its old rules has a small file in the home's cache for as long as that is so,
and a lock beside it for as long as the process lives. A file whose lock is free is left over from a
process that was killed: a number that another process has by now cannot be taken for it. A home in
which every change was taken has no such file.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._files import replace_file
from hermes_ext._regular import read_regular
from hermes_ext._text import printable
from hermes_ext._values import frozen

if TYPE_CHECKING:
    from filelock import BaseFileLock

_LARGEST: Final = 64 * 1024
_PRIVATE: Final = 0o600
_SHOWN: Final = 5  # paths and sessions in a message


@frozen
class OldRules:
    """A running process whose rules are older than the files.

    Attributes:
        pid: its number.
        since: when it first did not take a change, in UTC, ISO format.
        reason: what it did not take, why, and what to do.
    """

    pid: int
    since: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Plain data with the same keys."""
        return {"pid": self.pid, "since": self.since, "reason": self.reason}


class NotTakenFile:
    """This process's own file."""

    def __init__(self, home: Path) -> None:
        self._folder = _folder(home)
        self._file: Path | None = None
        self._lock: BaseFileLock | None = None
        self._owner = 0
        self._since = ""

    def report(self, reason: str) -> None:
        """Write why what changed is not in force. A disk that takes nothing costs only this."""
        try:
            if self._file is None or self._owner != os.getpid():
                self._begin()
            assert self._file is not None
            data = json.dumps(OldRules(self._owner, self._since, reason).to_json()).encode()
            replace_file(self._file, data, mode=_PRIVATE, durable=False)
        except OSError:
            from hermes_ext._log import logger  # late: commands read these files, without a log

            logger.debug("cannot write that a change was not taken", exc_info=True)

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._folder.mkdir(parents=True, exist_ok=True)
        # A name that no other process ever has, so that one that is left over can be removed.
        file = self._folder / f"{self._owner}-{os.urandom(6).hex()}.json"
        lock = _lock_of(file)
        lock.acquire(timeout=0)
        self._file, self._lock = file, lock
        atexit.register(self.remove)

    def remove(self) -> None:
        """All is taken, or the process ends. A forked child leaves its parent's alone."""
        if self._file is None or self._lock is None or self._owner != os.getpid():
            return
        file, lock, self._file = self._file, self._lock, None
        atexit.unregister(self.remove)
        _remove(file, lock)


def with_old_rules(home: Path) -> tuple[OldRules, ...]:
    """The running processes of a home that have not taken a change, the oldest first."""
    try:
        files = sorted(_folder(home).glob("*.json"))
    except OSError:
        return ()
    found = filter(None, map(_running, files))
    return tuple(sorted(found, key=lambda each: (each.since, each.pid)))


def _running(file: Path) -> OldRules | None:
    """What a file says, if its process runs; a file that is left over is removed."""
    report = _read(file)
    if report is None:
        return None
    lock = _lock_of(file)
    try:
        lock.acquire(timeout=0)
    except OSError:  # it runs; or it may, in another user's home that this one can only read
        return report
    _remove(file, lock)
    return None


def _read(file: Path) -> OldRules | None:
    try:
        if file.is_symlink():
            return None
        data = json.loads(read_regular(file, _LARGEST))
        pid, since, reason = data["pid"], data["since"], data["reason"]
        datetime.fromisoformat(since)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(pid) is not int or pid < 1 or not isinstance(reason, str):
        return None
    return OldRules(pid, printable(since), printable(reason))


def _folder(home: Path) -> Path:
    return home / "cache" / "hermes-ext" / "not-taken"


def _lock_of(file: Path) -> BaseFileLock:
    from filelock import FileLock

    # The process ends in another thread than the turn that found the change.
    return FileLock(file.with_name(f".{file.name}.lock"), mode=_PRIVATE, thread_local=False)


def _remove(file: Path, lock: BaseFileLock) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
    lock.release()
    with contextlib.suppress(OSError):
        Path(lock.lock_file).unlink(missing_ok=True)


def would_lose(lost: list[str]) -> str:
    """Something would be lost by what changed."""
    return (
        f"what changed in the extensions is not in force, the old stays: {'; '.join(lost)}. "
        "It is tried again when something changes"
    )


def changed_by_the_agent(paths: set[str]) -> str:
    """The agent may have changed these."""
    return (
        f"changed while the agent was at work, and not taken: {_listed(paths)}. What is loaded "
        "stays in force; look at it, and start Hermes anew to take it"
    )


def left_open(sessions: Iterable[str], turns: int) -> str:
    """What changed is in force, but not for turns that the host has left open."""
    names = ", ".join(sorted({repr(printable(each)) for each in sessions})[:_SHOWN])
    return (
        f"the extensions were loaded anew for new turns. Turns that the host has not ended keep "
        f"what they began with: {turns} (session {names})"
    )


def keeps_changing(paths: set[str]) -> str:
    """What changed cannot be loaded, because it changes again each time."""
    return f"what changed in the extensions is not in force: {_listed(paths)} keeps changing"


def given_up(why: str) -> str:
    """Nothing is taken any more."""
    return f"{why}. What is loaded stays in force until Hermes is started anew"


def _listed(paths: set[str]) -> str:
    shown = [printable(path) for path in sorted(paths)[:_SHOWN]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
