"""Keeps this process, and all that it starts, from writing anywhere but in one directory.

Linux has this as Landlock. Generated commands remove and overwrite, so where it is missing they
are not run.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

__all__ = ["can_fence", "fence"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_PATH_BENEATH = 1
# Every access that changes a file: write, remove, make, move between directories, truncate.
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 15))
_NETWORK = 0b11  # binding and connecting TCP
_SCOPES = 0b11  # abstract sockets, signals to processes outside
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")


def _version() -> int:
    if sys.platform != "linux":
        return 0
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def can_fence() -> bool:
    """Whether this system can; the third version is the first that knows of truncating."""
    return _version() >= 3


def fence(directory: str) -> None:
    """From now on only `directory` can be changed; there is no way back."""
    version = _version()
    if version < 3:
        raise OSError("this system has no Landlock of version 3")
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = (_CHANGES, _NETWORK if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _checked(libc.syscall(_CREATE_RULESET, struct.pack("=QQQ", *wanted), size, 0))
    for path, allowed in ((directory, _CHANGES), *((d, _WRITE_FILE | _TRUNCATE) for d in _DEVICES)):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, place)
        _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
        os.close(place)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
