"""Files as the system notes them, and reading regular ones only.

Opening a pipe, a socket or a device could wait forever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, TypeAlias

Signature: TypeAlias = tuple[int, ...]

READING: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
"""Flags to open with: opening does not wait, and what is opened is this process's alone."""
_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}


def kind_of(mode: int) -> str:
    """What a file mode says there is, with its article: "a named pipe", "a folder"."""
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def read_regular(path: str | os.PathLike[str], largest: int = -1) -> bytes:
    """The content of a regular file, links followed, at most so many bytes; -1 reads everything.

    Raises OSError where it cannot be read or is not a regular file. Never waits for another
    process.
    """
    with os.fdopen(open_regular(path), "rb") as stream:
        return stream.read(largest)


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file, links followed. Raises OSError where there is none."""
    _check(os.stat(path), path)  # before opening, which devices and the far end of a pipe notice
    descriptor = os.open(path, READING)
    try:
        _check(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_readable(path: Path) -> None:
    """Raises OSError where `read_regular` would."""
    os.close(open_regular(path))


def signature(path: str) -> Signature:
    """What the system notes of a file, links followed; one number where it tells why it cannot."""
    try:
        found = os.stat(path)
    except OSError as error:
        return (error.errno or -1,)
    except ValueError:
        return (-1,)
    return (
        found.st_mode,
        found.st_ino,
        found.st_dev,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _check(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(found.st_mode):
        told = f"it is {kind_of(found.st_mode)}, not a file"
        raise OSError(errno.EINVAL, told, os.fspath(path))
