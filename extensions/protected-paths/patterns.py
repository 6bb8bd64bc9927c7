"""Patterns as in .gitignore, matched against what a call touches."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pathspec

from hermes_ext.effects import Change, ChangeKind, Machine, OpenChange

_MOST_FILES = 20_000  # looked at below a directory that changes as a whole
_UNSEEN = "what is in it cannot be looked at"
_SPECIAL = re.compile(r"[\\*?\[\]!# ]")


class Rule:
    """Patterns with one action.

    on: the kinds of change that it is about. setting: the key that it stands under.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        root: Path,
        machine: Machine,
        *,
        setting: str,
        on: Sequence[str] = ("create", "write", "delete"),
        action: str = "block",
        message: str = "",
    ) -> None:
        self.on = frozenset(on)
        self.action = action
        self.message = message
        self.setting = setting
        self._root = root
        self._local = machine.local
        found = [(each, *one) for each in patterns for one in _full(each, root, machine)]
        self._shown = [shown for shown, _, _ in found]
        self._full = tuple(full for _, full, _ in found)
        self._places = [(place, shown) for shown, full, place in found if full[0] != "!"]

    def pattern_for(self, path: Path, *, named: bool = False) -> str | None:
        """The pattern that a path matches; `named`: or that only what is below it can match."""
        composed = unicodedata.normalize("NFC", path.as_posix()[1:])
        exact, folded = _compiled(self._full)
        # A file system may take another case for the same name; an exception is one in both.
        for spec, text in ((exact, composed), (folded, composed.casefold())):
            # A pattern that ends in a slash is for directories: it may be one, or have been one.
            for each in (text, f"{text}/"):
                result = spec.check_file(each)
                if result.include and result.index is not None:
                    return self._shown[result.index]
        return self._below(path) if named else None

    def match_in(self, change: Change) -> tuple[Path, str] | None:
        """The path that a change touches and that a pattern matches, with the pattern."""
        if change.kind in self.on:
            pattern = self.pattern_for(change.path) or self._other_name(change.path)
            if pattern is not None:
                return change.path, pattern
        if not change.tree:
            return None
        deletes = change.kind is ChangeKind.DELETE
        if ("delete" if deletes else "write") in self.on:
            for file in self._files_below(change.path):
                pattern = _UNSEEN if file is None else self.pattern_for(file)
                if pattern is not None:
                    return file or change.path, pattern
        pattern = self._below(change.path) if not deletes and "create" in self.on else None
        return None if pattern is None else (change.path, pattern)

    def reached_by(self, changes: Sequence[OpenChange]) -> tuple[OpenChange, Path, str] | None:
        """A change that may be one of a protected file that is there, with the file and pattern.

        What is only made where nothing is (`mkdir`) changes no such file.
        """
        meant = [each for each in changes if each.kind in self.on and each.kind != "create"]
        for path, pattern in self._there() if meant else ():
            for change in meant:
                if _may_be(change, path, unseen=pattern == _UNSEEN):
                    return change, path, pattern
        return None

    def _there(self) -> Iterator[tuple[Path, str]]:
        """The protected files of the project, and those at the places outside of it."""
        places = (Path(place) for place, _ in self._places if place)
        outside = [each for each in places if not each.is_relative_to(self._root)]
        for start in dict.fromkeys((self._root, *outside)):
            if self._local and start != self._root and not os.path.lexists(start):
                continue
            for file in chain((start,), self._files_below(start)):
                pattern = _UNSEEN if file is None else self.pattern_for(file)
                if pattern is not None:
                    yield file or start, pattern

    def _below(self, directory: Path) -> str | None:
        """A pattern for a place that lies in a directory, by what it begins with."""
        above = Path(_folded(directory.as_posix()))
        places = ((Path(_folded(place)), shown) for place, shown in self._places if place)
        return next((shown for place, shown in places if place.is_relative_to(above)), None)

    def _other_name(self, path: Path) -> str | None:
        """The pattern for another name of the same file (a hard link), in the project."""
        try:
            found = os.lstat(path) if self._local else None
        except OSError:
            return None
        if found is None or found.st_nlink < 2 or not stat.S_ISREG(found.st_mode):
            return None
        for file in self._files_below(self._root):
            pattern = _UNSEEN if file is None else self.pattern_for(file)
            if pattern is not None and (file is None or _is_same(file, found)):
                return pattern
        return None

    def _files_below(self, directory: Path) -> Iterator[Path | None]:
        """What is in a directory and below; None where there is more than is looked at."""
        left = _MOST_FILES if self._local else -1
        for folder, folders, files in os.walk(directory) if self._local else (("", [], []),):
            left -= len(files) + len(folders)
            if left < 0:
                yield None
                return
            yield from (Path(folder, name) for name in (*files, *folders))


def rules_of(config: Mapping[str, Any], root: Path, machine: Machine) -> list[Rule]:
    """The rules that the settings describe, in their order."""
    rules = [Rule(config["paths"], root, machine, setting="paths")] if config["paths"] else []
    for place, each in enumerate(config["rules"]):
        more = {name: each[name] for name in ("on", "action", "message") if name in each}
        rules.append(Rule(each["paths"], root, machine, setting=f"rules[{place}]", **more))
    return rules


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> tuple[pathspec.GitIgnoreSpec, pathspec.GitIgnoreSpec]:
    exact = [unicodedata.normalize("NFC", each) for each in patterns]
    folded = [each.casefold() for each in exact]
    return pathspec.GitIgnoreSpec.from_lines(exact), pathspec.GitIgnoreSpec.from_lines(folded)


def _full(pattern: str, root: Path, machine: Machine) -> Iterator[tuple[str, str]]:
    """A pattern as those from `/` that it means, each with the place that it is surely about.

    The place is "" where it may match anywhere in the project.
    """
    sign = "!" * pattern.startswith("!")
    bare = pattern[len(sign) :]
    for base, rest in _bases(bare, root, machine):
        parts = rest.split("/")
        fixed = []
        while parts and not _is_pattern(parts[0]):
            fixed.append(parts.pop(0))
        plain = "/" not in bare.rstrip("/") and bare.rstrip("/") != "~"
        name = Path(os.path.normpath(base.joinpath(*fixed)))
        # A link is protected as a name, and so is what it leads to.
        places = (name, machine.resolve(name.parent) / name.name, machine.resolve(name))
        tail = "/" * (bare.endswith("/") and not parts) + "".join(f"/{each}" for each in parts)
        for place in dict.fromkeys(places):
            if not (plain and place == name):
                fits = str(place) if fixed else ""
                yield f"{sign}{_escaped(place.as_posix().rstrip('/'))}{tail}", fits
        if plain:
            yield f"{sign}{_escaped(root.as_posix().rstrip('/'))}/**/{bare}", ""


def _bases(bare: str, root: Path, machine: Machine) -> Iterator[tuple[Path, str]]:
    """Where a pattern starts, and what is left of it."""
    rest = bare.lstrip("/")
    if bare == "~" or bare.startswith("~/"):
        yield machine.resolve("~"), bare[2:]
        return
    if not bare.startswith("//"):
        yield root, rest
    # In .gitignore a slash at the start is the project's root; people mean the disk's as often.
    if bare.startswith("//") or (bare.startswith("/") and not _is_pattern(rest.split("/")[0])):
        yield Path("/"), rest


def _is_pattern(part: str) -> bool:
    return any(each in part for each in "*?[\\")


def _escaped(path: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", path)


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _may_be(change: OpenChange, path: Path, *, unseen: bool) -> bool:
    """Whether a change may be one of this path; `unseen`: or of anything below it.

    What begins with a directory is taken to stay in it.
    """
    below = change.below
    if unseen:
        return below is None or below.is_relative_to(path) or path.is_relative_to(below)
    if below is not None and not path.is_relative_to(below):
        return False
    names = [path.name, *(each.name for each in path.parents if change.tree)]
    return any(_folded(name).endswith(_folded(change.ends)) for name in names)


def _is_same(path: Path, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), found)
    except OSError:
        return False
