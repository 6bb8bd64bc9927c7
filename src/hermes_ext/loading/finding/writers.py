"""Who else can change the rules: by owner and permissions of what is on the disk.

Such extensions are loaded all the same, and reported. Leaving a guard out would let calls pass, and
whoever can write there could have taken the guard away.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from hermes_ext._problems import Problem
from hermes_ext._text import printable
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate

_MOST: Final = 2_000  # files and folders of one extension that are looked at
_ROOT: Final = 0
_CODE: Final = "writable-by-others"


def writable_by_others(
    home: Path, file: Path, folder: Path, found: Iterable[Candidate]
) -> tuple[Problem, ...]:
    """What others can change, and with it the rules: at most one problem for each extension.

    file, folder: the configuration, and where extensions are; they need not be there.
    """
    if not hasattr(os, "geteuid"):
        return ()
    problems = [_fault_of_way(home), _told(file), _fault_of_way(folder)]
    problems += (
        _fault_of_extension(each.path)
        for each in found
        if each.source is Source.GLOBAL and each.path is not None
    )
    return tuple(dict.fromkeys(filter(None, problems)))


def _fault_of_way(folder: Path) -> Problem | None:
    """The folder itself, or one above it, in which another one can be put in its place."""
    for path in dict.fromkeys((folder, Path(os.path.realpath(folder)))):
        told = _told(path) or next(filter(None, map(_told_above, path.parents)), None)
        if told is not None:
            return told
    return None


def _fault_of_extension(path: Path) -> Problem | None:
    """What lies in one extension, and the way to it where it is a link to somewhere else."""
    if os.path.islink(path):
        told = _fault_of_way(path)
        if told is not None:
            return told
    return next(filter(None, map(_told, _all_of(path))), None)


def _all_of(path: Path) -> Iterator[str]:
    yield str(path)
    left, waiting = _MOST, [str(path)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _told(path: Path | str) -> Problem | None:
    """How others can change a file or a folder; None if they cannot."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode) and _is_own(found):
            found = os.stat(path)
    except OSError:  # gone, or it cannot be looked at: then it is not loaded
        return None
    if not _is_own(found):
        return _owned(Path(path), found.st_uid)
    if _others_write(found):
        return _written(Path(path), found.st_mode)
    return None


def _told_above(path: Path) -> Problem | None:
    """How others can put something else in the place of what is in a folder."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        # In a container, root of the machine around it has the number of nobody.
        if found.st_uid not in (_ROOT, os.geteuid(), _nobody()):
            return _owned(path, found.st_uid)
        # With the sticky bit, as in /tmp, entries are their owners' alone.
        if _others_write(found) and not found.st_mode & stat.S_ISVTX:
            return _written(path, found.st_mode)
    return None


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == _ROOT or found.st_uid == os.geteuid()


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_of_one(found.st_gid)


@functools.cache  # asked for each file, and the database can be on another machine
def _is_of_one(group: int) -> bool:
    """Whether a group is the user's own, as many systems give each user one."""
    import grp
    import pwd

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
        found = grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and {*found.gr_mem} <= {name}


@functools.cache
def _nobody() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_bytes())
    except (OSError, ValueError):
        return _ROOT


def _owned(path: Path, owner: int) -> Problem:
    told = f"belongs to another user (uid {owner}), who can change the rules"
    hint = f"To own it: chown -h $(id -u) {shlex.quote(printable(path))}"
    return Problem(path, None, "", told, hint, _CODE)


def _written(path: Path, mode: int) -> Problem:
    who = "anyone" if mode & stat.S_IWOTH else "a group"
    told = f"{who} can write to it (mode {stat.S_IMODE(mode):04o}) and so change the rules"
    hint = f"To keep it to yourself: chmod go-w {shlex.quote(printable(path))}"
    return Problem(path, None, "", told, hint, _CODE)
