"""Walks over a project's extensions and settings without opening a file.

Whoever wrote the repository may have written it to harm its reader, and may change it while it is
read. So everything is opened from the project's folder down, part by part, and no part may be a
link: links are followed by hand, as far as they stay in `.hermes/extensions`. Only folders and
regular files are opened, and opening never waits. There is a limit to everything.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from hermes_ext._regular import READING, kind_of
from hermes_ext._text import printable
from hermes_ext._values import define, field, frozen
from hermes_ext.trust.place import EXTENSIONS, SETTINGS, Project, real_path

Stamp: TypeAlias = int

MAX_FILES: Final = 5_000
MAX_ENTRIES: Final = 10_000  # with folders and bytecode
MAX_LINKS: Final = 1_000  # each is followed at every turn, part by part
MAX_CHARACTERS: Final = 2_000_000  # of all paths; by links one may be longer than any on the disk
MAX_BYTES: Final = 64_000_000
MAX_DEPTH: Final = 32
MAX_SECONDS: Final = 10.0

_FLAGS: Final = READING | getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = _FLAGS | getattr(os, "O_DIRECTORY", 0)
_PASSING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.EAGAIN}
)


class TreeError(Exception):
    """A tree that is not read, or a file of it that is no longer what it was.

    path: the file or folder. reason: what is wrong with it. hint: what to do. `str()` is one
    printable line of all three. passing: it may be gone the next time, though nothing changes.
    """

    def __init__(self, path: Path, reason: str, hint: str = "", *, passing: bool = False) -> None:
        super().__init__(path, reason, hint)
        self.path = path
        self.reason = reason
        self.hint = hint
        self.passing = passing

    def __str__(self) -> str:
        told = f"{printable(self.path)} {self.reason}"
        return f"{told}. {self.hint}" if self.hint else told


class TooSlowError(TreeError):
    """The disk did not answer in time."""


@frozen
class Place:
    """One entry. shown: its path below `.hermes`. parts: where it really is, from the root."""

    shown: str
    parts: tuple[str, ...]
    size: int = 0

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.shown}/{name}", (*self.parts, name))


@define(eq=False)
class Walk:
    """One walk over a tree.

    project: whose. root: a descriptor of its folder, to open all else from. files: the regular
    files, in no order. size: of all of them. newest: when an entry changed last.
    """

    project: Project
    root: int
    deadline: float = field(factory=lambda: time.monotonic() + MAX_SECONDS)
    files: list[Place] = field(factory=list)
    size: int = 0
    newest: int = 0
    _seen: list[tuple[object, ...]] = field(factory=list)
    _entries: int = 0
    _characters: int = 0
    _links: Counter[str] = field(factory=Counter)
    _by_folder: Counter[str] = field(factory=Counter)
    _targets: dict[tuple[str, ...], tuple[str, ...]] = field(factory=dict)
    _base: tuple[str, ...] = ()

    def run(self) -> None:
        """Look at everything. Raises TreeError for what is not read, too much, or unreadable."""
        with self.told(""):
            found = os.stat(self.project.folder)
        # Not its times: all sorts of things are kept in `.hermes`.
        self._seen.append((found.st_dev, found.st_ino, found.st_mode, found.st_uid))
        self._top(SETTINGS, stat.S_ISREG, "regular file")
        self._top(EXTENSIONS, stat.S_ISDIR, "folder")

    @property
    def stamp(self) -> Stamp:
        """Tells this walk's findings from those of another."""
        return stamp_from(self._seen)

    def check_time(self) -> None:
        """Raises TooSlowError after the deadline."""
        if time.monotonic() > self.deadline:
            most = _largest((each.shown, 1) for each in self.files)
            raise TooSlowError(
                self.project.folder,
                f"takes longer than {MAX_SECONDS:g} s to read; most of what was read is in {most}",
                "Move what is not an extension's code to another place",
            )

    def too_big(self, pairs: Iterable[tuple[str, int]], limit: str) -> TreeError:
        """The error for a tree beyond a limit; `pairs`: paths and how much each counts."""
        return TreeError(
            self.project.folder,
            f"holds more than {limit}, which is the limit; most is in {_largest(pairs)}",
            "Move what is not an extension's code to another place",
        )

    @contextlib.contextmanager
    def told(self, shown: str) -> Iterator[None]:
        """Turns what the system refuses into a TreeError that names the entry."""
        try:
            yield
        except OSError as error:
            raise self.unreadable(shown, error) from None

    @contextlib.contextmanager
    def folder_of(self, place: Place) -> Iterator[int]:
        """A descriptor of the folder that an entry really lies in."""
        with self.told(place.shown):
            descriptor = open_beneath(self.root, place.parts[:-1])
        with _closing(descriptor):
            yield descriptor

    def open_file(self, place: Place, folder: int) -> int:
        """A descriptor of a regular file. Raises OSError, or TreeError for another kind of file."""
        descriptor = os.open(place.parts[-1], _FLAGS, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._error(place.shown, "became another kind of file while it was read")
        return descriptor

    def _error(self, shown: str, reason: str, hint: str = "") -> TreeError:
        return TreeError(self.project.folder / shown, reason, hint)

    def unreadable(self, shown: str, error: OSError) -> TreeError:
        """The error for what the system refuses."""
        return _unreadable(self.project.folder / shown, error)

    def _note(self, place: Place, found: os.stat_result) -> None:
        self.newest = max(self.newest, found.st_ctime_ns)
        told = (place.shown, place.parts, found.st_dev, found.st_ino, found.st_mode, found.st_uid)
        self._seen.append((*told, found.st_size, found.st_mtime_ns, found.st_ctime_ns))

    def _top(self, name: str, is_right: Callable[[int], bool], kind: str) -> None:
        root = self.project.root
        with self.told(name):
            try:
                real = real_path(self.project.folder / name, strict=True)
            except (FileNotFoundError, NotADirectoryError):
                self._seen.append((name,))
                return
        if root not in real.parents:
            told = "is a link that leads out of the project, or to all of it"
            raise self._error(name, told, "Remove the link")
        place = Place(name, real.relative_to(root).parts)
        self._base = place.parts
        with self.folder_of(place) as parent, self.told(name):
            found = os.stat(place.parts[-1], dir_fd=parent, follow_symlinks=False)
            if not is_right(found.st_mode):
                raise self._error(name, f"is not a {kind}", "Remove it")
            self._entry(parent, place, found, ())

    def _entry(
        self, parent: int, place: Place, found: os.stat_result, above: tuple[object, ...]
    ) -> None:
        self.check_time()
        self._characters += len(place.shown)
        if self._characters > MAX_CHARACTERS:
            folders = ((f"{folder}/", n) for folder, n in self._by_folder.items())
            raise self.too_big(folders, f"{MAX_CHARACTERS:,} characters in its paths")
        self._note(place, found)
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFLNK:
            self._link(place, above)
        elif kind == stat.S_IFDIR:
            self._folder(parent, place, (found.st_dev, found.st_ino), above)
        elif kind == stat.S_IFREG:
            self._file(place, found.st_size)
        else:
            told = f"is {kind_of(found.st_mode)}, which cannot be part of an extension"
            raise self._error(place.shown, told, "Remove it")

    def _file(self, place: Place, size: int) -> None:
        self.files.append(Place(place.shown, place.parts, size))
        self.size += size
        if len(self.files) > MAX_FILES:
            raise self.too_big(((each.shown, 1) for each in self.files), f"{MAX_FILES:,} files")
        if self.size > MAX_BYTES:
            sizes = ((each.shown, each.size) for each in self.files)
            raise self.too_big(sizes, f"{MAX_BYTES // 10**6} MB")

    def _folder(self, parent: int, place: Place, key: object, above: tuple[object, ...]) -> None:
        if key in above:
            raise self._error(place.shown, "is a link to a folder that it is in", "Remove the link")
        if len(above) > MAX_DEPTH:
            told = f"lies more than {MAX_DEPTH} folders deep, deeper than extensions are read"
            raise self._error(place.shown, told, "Move it up")
        with self.told(place.shown):
            descriptor = os.open(place.parts[-1], _FOLDER, dir_fd=parent)
        within = (*above, key)
        with _closing(descriptor):
            for name in self._listed(descriptor, place):
                inner = place / name
                try:
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it went since the folder was listed
                except OSError as error:
                    raise self.unreadable(inner.shown, error) from None
                self._entry(descriptor, inner, found, within)

    def _listed(self, descriptor: int, place: Place) -> list[str]:
        names = []
        with self.told(place.shown), os.scandir(descriptor) as entries:
            for entry in entries:
                self._entries += 1
                self._by_folder[place.shown] += 1
                if self._entries > MAX_ENTRIES:
                    counts = ((f"{folder}/", n) for folder, n in self._by_folder.items())
                    raise self.too_big(counts, f"{MAX_ENTRIES:,} files and folders")
                if not _is_bytecode(entry):
                    names.append(entry.name)
        return sorted(names)

    def _link(self, place: Place, above: tuple[object, ...]) -> None:
        self._links[f"{place.shown.rpartition('/')[0]}/"] += 1
        if self._links.total() > MAX_LINKS:
            raise self.too_big(self._links.items(), f"{MAX_LINKS:,} links")
        parts = self._targets.get(place.parts)
        if parts is None:
            with self.told(place.shown):
                parts = self._targets[place.parts] = self._target(place)
        target = Place(place.shown, parts)
        with self.folder_of(target) as parent, self.told(place.shown):
            found = os.stat(target.parts[-1], dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise self._error(place.shown, "changed while it was read", "Try again")
            self._entry(parent, target, found, above)

    def _target(self, place: Place) -> tuple[str, ...]:
        root = self.project.root
        try:
            real = real_path(root.joinpath(*place.parts), strict=True)
        except FileNotFoundError:
            told = "is a link to what is not there"
            raise self._error(place.shown, told, "Remove the link") from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            told = "is a link that leads back to itself, or on through too many other links"
            raise self._error(place.shown, told, "Remove the link") from None
        base = root.joinpath(*self._base)
        if not real.is_relative_to(base):
            told = f"is a link that leaves {printable(base)}, to {printable(real)}"
            raise self._error(place.shown, told, "Put the file itself there")
        return real.relative_to(root).parts


@contextlib.contextmanager
def walking(project: Project) -> Iterator[Walk]:
    """A walk over a project's tree; its descriptor is open until the end of the block.

    Raises TreeError where there is no such folder, or it cannot be opened.
    """
    try:
        descriptor = os.open(project.root, _FOLDER)
    except OSError as error:
        raise _unreadable(project.root, error) from None
    with _closing(descriptor):
        yield Walk(project, descriptor)


def open_beneath(folder: int, parts: Iterable[str]) -> int:
    """A descriptor of a folder below another, reached without following a link."""
    descriptor = os.open(".", _FOLDER, dir_fd=folder)
    for part in parts:
        with _closing(descriptor) as above:
            descriptor = os.open(part, _FOLDER, dir_fd=above)
    return descriptor


def _unreadable(path: Path, error: OSError) -> TreeError:
    passing = error.errno in _PASSING
    hint = "Try again" if passing else "Check its owner and permissions"
    return TreeError(path, f"cannot be read: {error.strerror or error}", hint, passing=passing)


def stamp_from(told: object) -> Stamp:
    """A number that is the same for the same."""
    return int.from_bytes(hashlib.blake2b(repr(told).encode(), digest_size=16).digest(), "big")


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_bytecode(entry: os.DirEntry[str]) -> bool:
    is_folder = entry.is_dir(follow_symlinks=False)
    if entry.name == "__pycache__":
        return is_folder or entry.is_symlink()
    return entry.name.endswith((".pyc", ".pyo")) and not is_folder


def _largest(pairs: Iterable[tuple[str, int]]) -> str:
    """The deepest path below which more than half of everything is."""
    below: Counter[str] = Counter()
    for path, weight in pairs:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            below["/".join(parts[:depth])] += weight
    if not below:
        return EXTENSIONS
    half = max(below.values()) / 2
    return printable(max((path for path, n in below.items() if n > half), key=len).rstrip("/"))
