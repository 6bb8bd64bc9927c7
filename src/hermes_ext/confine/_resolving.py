"""From the paths that an author names to directories that a confined call may write."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MOST_FILES: Final = 10_000
"""Files and directories below one writable directory; of more nobody could look at each."""

_OPENED: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NOT_OURS: Final = frozenset({".git", ".hermes"})
_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run")

_NOT_EXPANDED: Final = {r"\A~": "~ is", r"\$": "variables are", r"[*?\[]": "patterns are"}
_TEMPORARY: Final = ("TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR")
_ANYBODYS: Final = stat.S_ISVTX | stat.S_IWOTH


class NotWritable(ValueError):  # noqa: N818 - not an error to callers: the path is left out
    """Why a path cannot be writable."""


def resolved(text: str, root: Path | None) -> Path:
    """The directory that a path names, absolute and without links.

    Args:
        text: relative paths start at `root`.
        root: the project's directory; None where it is not known.

    Raises:
        NotWritable: it is no real directory of the project, or one that nobody may write.
    """
    if root is None:
        raise NotWritable("the project directory is not known")
    if sys.platform == "win32":
        raise NotWritable("Windows cannot confine")
    try:
        real = Path(os.path.realpath(root))
        parts = _parts_below(text, root, real)
        path = real.joinpath(*parts)
        _check_place(path, real)
        _look_into(real, parts)
    except (OSError, ValueError, RecursionError) as error:
        raise error if isinstance(error, NotWritable) else NotWritable(_told(error, text)) from None
    return path


def _parts_below(text: str, root: Path, real: Path) -> tuple[str, ...]:
    """The names that lead from the root to a path."""
    if ".." in Path(text).parts:
        raise NotWritable("it contains ..")
    path = root.absolute() / text
    for start in (root.absolute(), real):
        if path.is_relative_to(start):
            return path.relative_to(start).parts
    raise NotWritable(f"it is not in {real}")


def _check_place(path: Path, root: Path) -> None:
    for part in path.relative_to(root).parts:
        if part.casefold() in _NOT_OURS:
            raise NotWritable(f"{part} is never writable")
    for what, places in (("your home", _homes()), ("a shared temporary folder", _temporary())):
        for place in places:
            if Path(place).is_relative_to(path):
                raise NotWritable("it is " + (what if place == str(path) else f"above {what}"))
    if path == Path("/"):
        raise NotWritable("it is the whole disk")


def _homes() -> Iterator[str]:
    yield from _real(os.path.expanduser("~"), os.environ.get("HOME", ""))


def _temporary() -> Iterator[str]:
    yield from _real(*_SHARED, *(os.environ.get(name, "") for name in _TEMPORARY))


def _real(*paths: str) -> Iterator[str]:
    return (os.path.realpath(path) for path in paths if os.path.isabs(path))


def _look_into(root: Path, parts: tuple[str, ...]) -> None:
    """Follow the parts without following a link, and look at all that lies there."""
    at = os.open(root, _OPENED)
    try:
        for place, part in enumerate(parts, 1):
            below = _opened(part, at, "it" if place == len(parts) else part)
            os.close(at)
            at = below
        if os.fstat(at).st_mode & _ANYBODYS == _ANYBODYS:
            raise NotWritable("it is a shared temporary folder")
        _check_links(at)
    finally:
        os.close(at)


def _opened(part: str, at: int, name: str) -> int:
    try:
        return os.open(part, _OPENED, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        mode = os.stat(part, dir_fd=at, follow_symlinks=False).st_mode
        # What is a directory by now was a link a moment ago.
        is_link = stat.S_ISLNK(mode) or stat.S_ISDIR(mode)
        kind = "a symbolic link" if is_link else "not a directory"
        raise NotWritable(f"{name} is {kind}") from None


def _check_links(directory: int) -> None:
    """No file in it may have a name elsewhere: writing it would change what is there."""
    seen: Counter[tuple[int, int]] = Counter()
    links: dict[tuple[int, int], tuple[int, str]] = {}
    for path, found in _files(directory):
        if found.st_nlink > 1:
            seen[found.st_dev, found.st_ino] += 1
            links.setdefault((found.st_dev, found.st_ino), (found.st_nlink, path))
    for file, (number, path) in links.items():
        if seen[file] < number:
            raise NotWritable(f"{path} has a hard link elsewhere")


def _files(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a directory and below, but for directories, each with its path."""
    count = 0
    for folder, _, names, at in os.fwalk(".", dir_fd=directory, onerror=_raised):
        count += len(names) + 1
        if count > MOST_FILES:
            raise NotWritable(f"it has more than {MOST_FILES:,} files")
        for name in names:
            with suppress(FileNotFoundError):  # somebody has removed it meanwhile
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
                yield os.path.normpath(os.path.join(folder, name)), found


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _told(error: OSError | ValueError | RecursionError, text: str) -> str:
    if isinstance(error, RecursionError):
        return "its folders are nested too deeply"
    if isinstance(error, FileNotFoundError):
        meant = (what for sign, what in _NOT_EXPANDED.items() if re.search(sign, text))
        return "it does not exist" + next((f" ({what} not expanded)" for what in meant), "")
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
