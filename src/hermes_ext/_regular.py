"""Files as the system notes them, and reading regular ones only.

Opening a pipe, a socket or a device could wait forever.
"""

from __future__ import annotations

import errno
import os
import stat
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
    descriptor, size = _opened(path)
    try:
        content = os.read(descriptor, min(size, largest) if largest >= 0 else size)
        if len(content) == size > 0:  # all of it; some that the system makes up tell no size
            return content
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return content + stream.read(largest if largest < 0 else largest - len(content))
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file, links followed. Raises OSError where there is none."""
    return _opened(path)[0]


def _opened(path: str | os.PathLike[str]) -> tuple[int, int]:
    """The descriptor, and the size of the file."""
    _check(os.stat(path), path)  # before opening, which devices and the far end of a pipe notice
    descriptor = os.open(path, READING)
    try:
        found = os.fstat(descriptor)
        _check(found, path)
        return descriptor, found.st_size
    except OSError:
        os.close(descriptor)
        raise


def check_readable(path: str | os.PathLike[str]) -> None:
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
