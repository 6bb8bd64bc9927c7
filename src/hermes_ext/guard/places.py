"""What is protected: the files that the rules are made of.

Names are compared without regard to case and to spellings that a file system may take for the
same.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Final

from hermes_ext._text import printable
from hermes_ext._values import define, field, frozen
from hermes_ext.hosts.default import default_host
from hermes_ext.hosts.facts import HostFacts

PROJECT_FOLDER: Final = ".hermes"

# In a home, and in each of its profiles, beside what the host has there.
_NAMES: Final = {
    "extensions": "the extensions",
    "extensions-trust": "the list of trusted projects",
    "extensions-data": "the extensions' own files",
}
_BEGINNINGS: Final = {
    ("extensions-state.db",): "the extensions' state",
    ("logs", "extensions.jsonl"): "the decision log",
    ("cache", "hermes-ext"): "what the last load recorded",
}
_OF_A_PROJECT: Final = "a project's rules"
_FILES: Final = 5_000  # of the protected files whose identity is compared


def fold(path: str) -> str:
    """A path as it is compared: case, compatible characters and invisible ones do not count."""
    if path.isascii():
        return path.lower()
    shown = "".join(each for each in path if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", shown).casefold()


def is_below(path: str, place: str) -> bool:
    return path.startswith(place) and path[len(place) : len(place) + 1] in ("", "/")


def _two_names(path: str | Path) -> tuple[str, ...]:
    written = os.path.abspath(path)
    return tuple(dict.fromkeys((written, os.path.realpath(written))))


@frozen
class Protected:
    """The protected places of one Hermes home; made by `of`.

    hermes_home: what `$HERMES_HOME` stands for. homes: the Hermes homes (the one in use, the root
    above a profile, all profiles), as written by what they are compared as, the longest first.
    roots: likewise, further protected folders and files.
    host: whose home it is. names, beginnings: what is protected in each home, and what it is.
    """

    hermes_home: str
    homes: Mapping[str, str]
    roots: Mapping[str, str]
    host: HostFacts
    names: Mapping[str, str]
    beginnings: Mapping[tuple[str, ...], str]

    @classmethod
    def of(cls, home: Path, global_dir: Path, places: Iterable[Path] = ()) -> Protected:
        """The places of `home`, looked up on the disk now. places: where loaded extensions are."""
        host = default_host()
        layout = host.layout
        names = {**_NAMES, **layout.files, layout.plugins: f"{host.name}'s plugins"}
        homes = dict.fromkeys(_homes(home, layout.profiles))
        roots = dict.fromkeys(
            name
            for place in (
                global_dir,
                *_elsewhere(places, global_dir),
                *_own_code(),
                *_led_to(homes, global_dir, names, layout.plugins),
            )
            for name in _two_names(place)
        )
        return cls(
            os.path.abspath(home),
            {fold(each): each for each in sorted(homes, key=len, reverse=True)},
            {fold(each): each for each in roots},
            host,
            names,
            {**_BEGINNINGS, **{(start,): what for start, what in layout.beginnings.items()}},
        )

    def place(self, path: str) -> str | None:
        """The protected place that an absolute path is in, for a message; None if in none."""
        folded = fold(path)
        rest = folded
        for home in self.homes:
            if folded.startswith(home) and folded[len(home) : len(home) + 1] == "/":
                rest = folded[len(home) :]
                what = self._in_a_home(rest[1:].split("/"))
                if what is not None:
                    return _shown(path, what)
                break
        if PROJECT_FOLDER in rest and PROJECT_FOLDER in map(_bare, rest.split("/")):
            return _shown(path, _OF_A_PROJECT)
        if any(is_below(folded, root) for root in self.roots):
            return _shown(path, "the extensions")
        return None

    def is_home(self, path: str) -> bool:
        """Whether a path is a Hermes home, or the folder of the profiles."""
        folded = fold(path)
        below = (
            folded[len(home) + 1 :].split("/") for home in self.homes if is_below(folded, home)
        )
        profiles = self.host.layout.profiles
        return folded in self.homes or any(
            parts[0] == profiles and len(parts) <= 2 for parts in below
        )

    def below(self, directory: str) -> str | None:
        """A protected place that exists in a directory or below it, for a message."""
        folded = fold(directory).rstrip("/")
        for place, written in (*self.homes.items(), *self.roots.items()):
            if is_below(place, folded):
                return _shown(written, "where the rules are")
        for place, written in self.known():
            if is_below(place, folded) and os.path.lexists(written):
                return _shown(written, "where the rules are")
        project = os.path.join(directory, PROJECT_FOLDER)
        return _shown(project, _OF_A_PROJECT) if os.path.lexists(project) else None

    def above(self, directory: str, top: str) -> str | None:
        """The rules of a project that a directory lies in, at `top` or below, for a message."""
        while True:
            project = os.path.join(directory, PROJECT_FOLDER)
            if os.path.lexists(project):
                return _shown(project, _OF_A_PROJECT)
            if directory in (top, "/"):
                return None
            directory = os.path.dirname(directory)

    def holds_home(self, directory: str) -> bool:
        """Whether a Hermes home is a directory, or lies below it."""
        folded = fold(directory).rstrip("/")
        return any(is_below(home, folded) for home in self.homes)

    def known(self) -> Iterator[tuple[str, str]]:
        """The protected places that have a fixed path: as compared, and as written."""
        for home, written in self.homes.items():
            for name in (*self.names, *map("/".join, self.beginnings)):
                yield f"{home}/{name}", f"{written}/{name}"
        yield from self.roots.items()

    def _in_a_home(self, parts: list[str]) -> str | None:
        """What a path is, given by its folded parts below a home."""
        if parts[0] == self.host.layout.profiles and len(parts) > 2:
            parts = parts[2:]
        name = _bare(parts[0])
        what = self.names.get(name)
        if what is not None:
            return what
        for beginning, what in self.beginnings.items():
            *folders, start = beginning
            name = parts[len(folders)] if len(parts) > len(folders) else ""
            if parts[: len(folders)] == folders and name.startswith(start):
                return what
        return None


@define
class Identities:
    """The protected files by what they are, as a hard link is the file itself; looked up once."""

    protected: Protected
    _known: frozenset[tuple[int, int]] | None = field(default=None, init=False)

    def of(self, path: str) -> str | None:
        """The protected file that a path is another name of, for a message."""
        with suppress(OSError, ValueError):
            status = os.stat(path)
            if S_ISREG(status.st_mode) and status.st_nlink > 1:
                if self._known is None:
                    self._known = frozenset(islice(self._all(), _FILES))
                if (status.st_dev, status.st_ino) in self._known:
                    return f"another name of a protected file: {printable(path)}"
        return None

    def _all(self) -> Iterator[tuple[int, int]]:
        for _, place in self.protected.known():
            below = (os.path.join(at, name) for at, _, files in os.walk(place) for name in files)
            for file in (place, *below):
                with suppress(OSError):
                    status = os.lstat(file)
                    if status.st_nlink > 1:
                        yield (status.st_dev, status.st_ino)


def _homes(home: Path, profiles: str) -> Iterator[str]:
    bases = [*_two_names(home)]
    for each in tuple(bases):
        parent = os.path.dirname(each)
        if os.path.basename(parent) == profiles:
            bases += _two_names(os.path.dirname(parent))
    for base in bases:
        yield base
        with suppress(OSError), os.scandir(os.path.join(base, profiles)) as entries:
            yield from (os.path.realpath(entry.path) for entry in entries)


def _elsewhere(places: Iterable[Path], global_dir: Path) -> Iterator[Path]:
    """Those that do not lie in the folder of the extensions, which is protected as a whole."""
    within = f"{os.fspath(global_dir)}{os.sep}"
    for place in places:
        if not os.fspath(place).startswith(within) or os.path.islink(place):
            yield place


def _led_to(
    homes: Iterable[str], global_dir: Path, names: Iterable[str], plugins: str
) -> Iterator[Path]:
    """Where links in the places lead: a settings file kept elsewhere, a plugin that is a link."""
    folders = [global_dir]
    for home in homes:
        for name in names:
            place = os.path.join(home, name)
            if os.path.islink(place):
                yield Path(place)
        folders += [Path(home, "extensions"), Path(home, plugins)]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_symlink())


def _own_code() -> Iterator[Path]:
    """This package, where it is installed; in a checkout people work on it."""
    package = Path(__file__).resolve().parents[1]
    if package.parent.name in ("site-packages", "dist-packages"):
        yield package
        yield from islice(package.parent.glob("hermes_ext-*.dist-info"), 3)


def _shown(path: str, what: str) -> str:
    return f"{printable(path)} ({what})"


def _bare(name: str) -> str:
    # Windows takes trailing dots and spaces for nothing.
    return name.rstrip(" .") if name[-1:] in (" ", ".") else name
