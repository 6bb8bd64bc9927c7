"""Why session state cannot be read or stored, and what a person can do about it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from hermes_ext._text import printable
from hermes_ext.exceptions import StateError

# The low byte of SQLite's extended result codes, without importing it.
_BUSY: Final = frozenset({5, 6})
_READ_ONLY: Final = frozenset({3, 8, 14, 23})
_FULL: Final = frozenset({13})
_DAMAGED: Final = frozenset({11, 26})
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_RIGHTS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def store_fault(path: Path, error: Exception) -> StateError:
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
