"""Which files of a tool call would be new modules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_ext.effects import ChangeKind, Effects

from .project import Project


def new_modules(effects: Effects, project: Project, patterns: Sequence[str]) -> list[str]:
    """The files, as the model may name them, that would be the first of a module.

    That is the first file in a directory whose name fits one of the patterns; or a directory that
    is copied or unpacked to where nothing is.
    """
    found = (path for path in _new_paths(effects) if _is_first(path, effects, patterns))
    root = project.root
    return [project.shown(path) for path in found if root is None or path.is_relative_to(root)]


def _new_paths(effects: Effects) -> Iterator[Path]:
    for change in effects.changes:
        if change.kind is not ChangeKind.DELETE:
            yield change.path
    if not effects.exact:
        yield from sorted(effects.mentions)


def _is_first(path: Path, effects: Effects, patterns: Sequence[str]) -> bool:
    if os.path.lexists(path):
        return False
    change = effects.change_of(path)
    if change is not None and change.tree and change.path == path:
        return True
    return _fits(path.name, patterns) and not _has_one(path.parent, patterns)


def _has_one(directory: Path, patterns: Sequence[str]) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(_fits(entry.name, patterns) and entry.is_file() for entry in entries)
    except OSError:
        return False


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)
