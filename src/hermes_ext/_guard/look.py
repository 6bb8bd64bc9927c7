"""Where a path leads: as it is written, with its links followed, and by the file itself."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from fnmatch import translate
from itertools import islice
from stat import S_ISLNK, S_ISREG
from typing import Final

from attrs import define, field

from hermes_ext._guard.places import (
    ANY,
    MANY,
    ONE,
    PROJECT_FOLDER,
    Protected,
    fold,
    has_holes,
    is_below,
    matches,
)

_ENTRIES: Final = 2_000  # of directories that a glob is looked up in
_FILES: Final = 5_000  # of the protected files whose identity is compared


@define
class Look:
    """One look at the disk, for one tool call: what it finds out, it does not ask twice."""

    protected: Protected
    _real: dict[str, str] = field(factory=dict, init=False)
    _files: frozenset[tuple[int, int]] | None = field(default=None, init=False)

    def place(self, path: str, base: str) -> str | None:
        """The protected place that a path leads into, for a message; None if into none.

        Args:
            path: as somebody wrote it; may have holes.
            base: the directory that it starts from if it is relative; may have holes.
        """
        if not path or "\0" in path:
            return None
        full = _joined(path, base)
        if has_holes(full):
            return self._with_holes(_normal(full))
        return self.protected.place(_normal(full)) or self._really(full)

    def covers(self, path: str, base: str) -> str | None:
        """A protected place that exists at a path or below it, for a message.

        What is done to the whole of `path`, a glob or a folder, is done to that place too.
        """
        if not path or "\0" in path:
            return None
        full = _normal(_joined(path, base))
        if ANY in full:
            return None
        found = self._matching(full) if has_holes(full) else iter((full,))
        return next(filter(None, (self._below(each, base) for each in found)), None)

    def holds(self, path: str, base: str, names: Collection[str] | None) -> str | None:
        """As `covers`, where only files and folders with such names are touched.

        names: globs, as `find -name` takes them; None for all.
        """
        found = self.covers(path, base)
        if found is None or names is None:
            return found
        patterns = [re.compile(translate(fold(name))) for name in names]
        top = fold(_normal(_joined(path, base))).rstrip("/")
        places = [written for place, written in self.protected.known() if is_below(place, top)]
        places += [os.path.join(each, PROJECT_FOLDER) for each in _upwards(base)]
        places.append(os.path.join(_normal(_joined(path, base)), PROJECT_FOLDER))
        names_below = (name for place in places for name in _names_below(place))
        for name in islice(names_below, _FILES):
            if any(pattern.match(fold(name)) for pattern in patterns):
                return found
        return None

    def above_rules(self, path: str, base: str) -> str | None:
        """The path itself, if the Hermes home or the extensions are there or below."""
        if not path or "\0" in path or has_holes(path):
            return None
        full = _normal(_joined(path, base))
        known = (*self.protected.homes, *self.protected.roots)
        for each in (full, self.real(full)):
            top = fold(each).rstrip("/")
            if any(is_below(place, top) for place in known):
                return path
        return None

    def names_in(self, path: str, base: str) -> list[str]:
        """The names in a folder; none if there is no such folder."""
        full = _joined(path, base)
        with suppress(OSError, ValueError), os.scandir(full) as entries:
            return [entry.name for entry in islice(entries, _ENTRIES)]
        return []

    def is_home(self, path: str, base: str) -> bool:
        """Whether a path leads to a Hermes home as such."""
        full = _joined(path, base)
        if not path or "\0" in path or has_holes(full):
            return False
        return self.protected.is_home(_normal(full)) or self.protected.is_home(self.real(full))

    def real(self, path: str) -> str:
        """The path with its links followed."""
        found = self._real.get(path)
        if found is None:
            try:
                found = os.path.realpath(path)
            except (OSError, ValueError, RecursionError):  # closed to us, or links without end
                found = path
            self._real[path] = found
        return found

    # -- what a path without holes leads to ---------------------------------------------------

    def _really(self, full: str) -> str | None:
        parent, name = os.path.split(full.rstrip("/"))
        if name in ("", ".", ".."):
            return self.protected.place(self.real(full))
        # A link as such, which can be moved or deleted, and what it leads to are two things.
        own = os.path.join(self.real(parent or "/"), name)
        found = self.protected.place(own)
        if found is not None:
            return found
        try:
            status = os.lstat(own)
        except (OSError, ValueError):
            return None
        if S_ISLNK(status.st_mode):
            return self.protected.place(self.real(own)) or self._same_file(own)
        if S_ISREG(status.st_mode) and status.st_nlink > 1:
            return self._same_file(own)
        return None

    def _same_file(self, path: str) -> str | None:
        """Whether a file with several names is a protected one under another name."""
        with suppress(OSError, ValueError):
            status = os.stat(path)
            if S_ISREG(status.st_mode) and status.st_nlink > 1:
                if self._files is None:
                    self._files = frozenset(islice(self._identities(), _FILES))
                if (status.st_dev, status.st_ino) in self._files:
                    return f"another name of a protected file: {path}"
        return None

    def _identities(self) -> Iterator[tuple[int, int]]:
        for _, place in self.protected.known():
            for file in (place, *_files_below(place)):
                with suppress(OSError):
                    status = os.lstat(file)
                    if status.st_nlink > 1:
                        yield (status.st_dev, status.st_ino)

    def _below(self, path: str, base: str) -> str | None:
        found = self.protected.below(path) or self.protected.below(self.real(path))
        if found is not None:
            return found
        # The project's own rules, where the work happens further down in it.
        for folder in _upwards(base):
            further_down = folder != path and is_below(folder, path.rstrip("/"))
            if further_down and os.path.lexists(os.path.join(folder, PROJECT_FOLDER)):
                return self.protected.below(folder)
        return None

    # -- globs ----------------------------------------------------------------------------------

    def _with_holes(self, path: str) -> str | None:
        found = self.protected.could_be(path)
        if found is not None or ANY in path:
            return found
        for each in self._matching(path, only_telling=True):
            found = self.protected.place(each) or self._really(each)
            if found is not None:
                return found
        return None

    def _matching(self, path: str, only_telling: bool = False) -> Iterator[str]:
        """The paths that exist and that a glob stands for.

        only_telling: leave out what cannot lead anywhere else than it seems to.
        """
        parts = path.split("/")[1:]
        return islice(_expanded("", parts, [_ENTRIES], only_telling), _ENTRIES)


def _joined(path: str, base: str) -> str:
    return path if path[:1] in ("/", ANY) and path else f"{base}/{path}"


def _normal(path: str) -> str:
    """Without `.`, `..` and doubled slashes; holes stay."""
    if not path.startswith(ANY):
        return f"/{os.path.normpath(path).lstrip('/')}"
    return os.path.normpath(path)


def _upwards(directory: str) -> Iterator[str]:
    while True:
        yield directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return
        directory = parent


def _files_below(place: str) -> Iterator[str]:
    for folder, _, files in os.walk(place):
        yield from (os.path.join(folder, name) for name in files)


def _names_below(place: str) -> Iterator[str]:
    """The names of a place and of all below it, without bytecode, which is no rule."""
    yield os.path.basename(place)
    for _, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from folders
        yield from (name for name in files if not name.endswith((".pyc", ".pyo")))


def _expanded(base: str, parts: list[str], budget: list[int], only_telling: bool) -> Iterator[str]:
    """A small `glob` that looks at so many entries and no more."""
    if not parts:
        yield base or "/"
        return
    first, *rest = parts
    if MANY not in first and ONE not in first:
        place = f"{base}/{first}"
        if rest or os.path.lexists(place):
            yield from _expanded(place, rest, budget, only_telling)
        return
    with suppress(OSError), os.scandir(base or "/") as entries:
        for entry in entries:
            budget[0] -= 1
            if budget[0] < 0:
                return
            if not matches(fold(first), fold(entry.name)):
                continue
            telling = entry.is_symlink() or fold(entry.name) == PROJECT_FOLDER
            if rest or telling or not only_telling:
                yield from _expanded(f"{base}/{entry.name}", rest, budget, only_telling)
