"""Patterns as in .gitignore, matched against what a call touches."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pathspec

from hermes_ext.effects import Change, ChangeKind

_MOST_FILES = 20_000  # looked at below a directory that changes as a whole
_FOLDS = sys.platform in ("darwin", "win32")


class Rule:
    """Patterns with one action.

    on: the kinds of change that it is about. setting: the key that it stands under.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        root: Path,
        homes: Sequence[str],
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
        outside = [each for each in patterns if each.lstrip("!").startswith(("//", "~"))]
        inside = [each for each in patterns if each not in outside]
        self._specs = (
            (root, _Spec(inside)),
            (Path("/"), _Spec([_from_root(each, homes) for each in outside], outside)),
        )

    def pattern_for(self, path: Path, *, named: bool = False) -> str | None:
        """The pattern that a path matches; `named`: or that only what is below it can match."""
        for base, spec in self._specs:
            if path != base and path.is_relative_to(base):
                relative = path.relative_to(base).as_posix()
                found = spec.match(relative) or (spec.below(relative) if named else None)
                if found is not None:
                    return found
        return None

    def match_in(self, change: Change) -> tuple[Path, str] | None:
        """The path that a change touches and that a pattern matches, with the pattern."""
        pattern = self.pattern_for(change.path)
        if pattern is not None and change.kind in self.on:
            return change.path, pattern
        if not change.tree:
            return None
        deletes = change.kind is ChangeKind.DELETE
        if ("delete" if deletes else "write") in self.on:
            for file in _files_below(change.path):
                pattern = "too many files to look at" if file is None else self.pattern_for(file)
                if pattern is not None:
                    return file or change.path, pattern
        if not deletes and "create" in self.on:
            return self._could_appear(change.path)
        return None

    def _could_appear(self, directory: Path) -> tuple[Path, str] | None:
        for base, spec in self._specs:
            if directory.is_relative_to(base):
                found = spec.below(directory.relative_to(base).as_posix())
                if found is not None:
                    return directory, found
        return None


class _Spec:
    """One list of patterns, relative to one directory. shown: as the user wrote them."""

    def __init__(self, patterns: Sequence[str], shown: Sequence[str] = ()) -> None:
        self._patterns = [_folded(each) for each in patterns]
        self._shown = list(shown) or list(patterns)
        self._spec = _compiled(tuple(self._patterns))

    def match(self, relative: str) -> str | None:
        """The pattern that decides that a path is protected."""
        for path in dict.fromkeys((_folded(relative), relative)):
            # A pattern that ends in a slash is for directories: it may be one, or have been one.
            for each in (path, f"{path}/"):
                result = self._spec.check_file(each)
                if result.include and result.index is not None:
                    return self._shown[result.index]
        return None

    def below(self, relative: str) -> str | None:
        """A pattern for a place that lies in a directory, by what it begins with."""
        directory = "" if relative == "." else f"{_folded(relative)}/"
        for pattern, shown in zip(self._patterns, self._shown, strict=True):
            fixed = _fixed_part(pattern)
            if fixed and f"{fixed}/".startswith(directory):
                return shown
        return None


def rules_of(config: Mapping[str, Any], root: Path, homes: Sequence[str]) -> list[Rule]:
    """The rules that the settings describe, in their order."""
    rules = [Rule(config["paths"], root, homes, setting="paths")] if config["paths"] else []
    for place, each in enumerate(config["rules"]):
        more = {name: each[name] for name in ("on", "action", "message") if name in each}
        rules.append(Rule(each["paths"], root, homes, setting=f"rules[{place}]", **more))
    return rules


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    return pathspec.GitIgnoreSpec.from_lines(patterns)


def _from_root(pattern: str, homes: Sequence[str]) -> str:
    """A pattern for a place outside of the project, as one that begins at `/`."""
    negated = pattern.startswith("!")
    bare = pattern[negated:]
    if bare.startswith("~"):
        home = os.path.realpath(homes[0]) if homes else "/nowhere"
        bare = home + bare[1:]
    return "!" * negated + "/" + bare.lstrip("/")


def _fixed_part(pattern: str) -> str:
    """The directory or file that a pattern is surely about; "" for one that may match anywhere."""
    if pattern.startswith("!") or "/" not in pattern.rstrip("/"):
        return ""
    parts = []
    for part in pattern.strip("/").split("/"):
        if any(each in part for each in "*?["):
            break
        parts.append(part)
    return "/".join(parts)


def _folded(path: str) -> str:
    composed = unicodedata.normalize("NFC", path)
    return composed.casefold() if _FOLDS else composed


def _files_below(directory: Path) -> Iterator[Path | None]:
    """What is in a directory and below; None where there is more than is looked at."""
    left = _MOST_FILES
    for folder, folders, files in os.walk(directory):
        left -= len(files) + len(folders)
        if left < 0:
            yield None
            return
        yield from (Path(folder, name) for name in (*files, *folders))
