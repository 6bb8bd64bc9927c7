"""Writing small files so that they are whole whatever happens, and one program at a time.

What is written goes into a new file beside the old one, to the disk, and then into its place: a
reader and a `kill -9` find the old content or the new. Programs that read, change and write take
turns by a lock file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes_ext.exceptions import ConfigError

_TEMPORARY = ".hermes-ext.tmp"


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    durable: bool = True,
    still: Callable[[], bool] | None = None,
) -> bool:
    """Put `data` into `path` in one step; a link there is replaced, not followed.

    mode: its permissions. None: owner and permissions of the file that is there, and 0600 for a new
    one, which may hold keys. durable: wait until the disk has it; without, only a power cut can
    cost the content. still: asked when all is written; where it answers no, the old file stays.

    Returns whether the file is the new one. Raises OSError, which names `path`, with it as it was.
    """
    try:
        return _replaced(path, data, mode, durable, still)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _replaced(
    path: Path, data: bytes, mode: int | None, durable: bool, still: Callable[[], bool] | None
) -> bool:
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}{_TEMPORARY}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is None:
                _copy_owner_and_mode(path, file.fileno())
            else:
                _set_mode(file.fileno(), mode)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if still is not None and not still():
            return False
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    if durable:
        _sync_folder(path.parent)
    return True


def remove_leftovers(path: Path) -> None:
    """Remove what a killed `replace_file` left beside `path`: only for who holds the lock."""
    with contextlib.suppress(OSError):
        for leftover in os.listdir(path.parent):
            if leftover.startswith(f".{path.name}.") and leftover.endswith(_TEMPORARY):
                os.unlink(path.with_name(leftover))


@contextlib.contextmanager
def locked(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """Hold the lock of a file: `.NAME.lock` beside it, which stays there.

    Raises ConfigError where another program holds it for longer than these seconds, and OSError
    where the lock file cannot be made.
    """
    from filelock import FileLock, Timeout  # 20 modules, for those who write

    lock = path.with_name(f".{path.name}.lock")
    waiting = FileLock(lock, timeout=seconds)
    try:
        waiting.acquire()
    except Timeout:
        told = f"another program has been changing {path.name} for too long; nothing was written"
        raise ConfigError(told, path=lock, hint="Try again when it is done") from None
    try:
        yield
    finally:
        waiting.release()


def _copy_owner_and_mode(path: Path, descriptor: int) -> None:
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    new = os.fstat(descriptor)
    if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    _set_mode(descriptor, stat.S_IMODE(old.st_mode))


def _set_mode(descriptor: int, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def _sync_folder(folder: Path) -> None:
    # Some file systems and Windows cannot sync a folder; the file itself is whole without it.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
