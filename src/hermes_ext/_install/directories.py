"""Which extensions are in force in a directory: one runtime per project, all on one base.

A turn asks when it begins, so that what the user trusts or stops trusting counts from the next turn
on. Code that was trusted and loaded stays in force while its files change: what changed has not
been trusted, and a guard must not go because somebody touched its file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from attrs import Factory, define

from hermes_ext._forks import has_locks
from hermes_ext._hooks.text import printable
from hermes_ext._install.loader import Base, Loaded, load_project
from hermes_ext._trust.place import Project, find_projects
from hermes_ext._trust.store import Standing, Verdict, is_still_trusted, judge, stamp_now
from hermes_ext.exceptions import ConfigError


class _Runtime(Protocol):
    notices: tuple[str, ...]


R = TypeVar("R", bound=_Runtime)


@define(eq=False)
class _Known(Generic[R]):
    """What is in force in one project.

    loaded: what was thought of the tree that was loaded. made: of what the runtime was made.
    """

    lock: threading.Lock = Factory(threading.Lock)
    runtime: R | None = None
    loaded: Verdict | None = None
    stamp: Hashable = None
    place: tuple[int, int] | None = None
    made: Loaded | None = None


class Projects(Generic[R]):
    """The runtimes of one Hermes home. Thread-safe.

    Args:
        base: what is loaded whatever the project.
        make: makes a runtime of what was loaded.
    """

    def __init__(self, base: Base, make: Callable[[Loaded], R]) -> None:
        self._base = base
        self._make = make
        self._known: dict[Path, _Known[R]] = {}
        self.renew_locks()
        has_locks(self)
        self._seen: dict[Path, Project] = {}
        self._without = load_project(base, None)
        self.without = make(self._without)

    def renew_locks(self) -> None:
        """After a fork; what a thread of the parent was loading is loaded in the child again."""
        self._lock = threading.Lock()
        for known in self._known.values():
            known.lock = threading.Lock()

    def at(self, directory: Path | None) -> R:
        """The runtime for work in a directory, as things are now.

        That of the nearest project whose trusted code is in force; where none is, of the nearest.
        """
        waiting: list[R] = []
        for project in self._projects(directory):
            with self._lock:
                known = self._known.setdefault(project.root, _Known())
            with known.lock:
                runtime = self._current(known, project)
                in_force = known.loaded is not None
            if in_force:
                _tell_of_nearer(runtime, waiting, project)
                if directory is not None:
                    self._seen[directory] = project
                return runtime
            waiting.append(runtime)
        return waiting[0] if waiting else self.without

    @property
    def base(self) -> Base:
        """What is loaded whatever the project."""
        return self._base

    def on(self, base: Base) -> Projects[R]:
        """The same on another base: of each project what was trusted when it was loaded.

        These stay as they are, for the turns that run.
        """
        new = Projects(base, self._make)
        if not base.config.project_local:
            return new
        with self._lock:
            known, seen = dict(self._known), dict(self._seen)
        for root, each in known.items():
            with each.lock:
                verdict, before, place = each.loaded, each.made, each.place
            if verdict is not None:
                made = load_project(base, verdict, before)
                # No stamp: what has become of the files is told to the new runtime's turns too.
                new._known[root] = _Known(
                    runtime=self._make(made), loaded=verdict, place=place, made=made
                )
        new._seen = seen
        return new

    def loads(self) -> dict[Path | None, Loaded]:
        """What is in force, by the project's root: None without a project."""
        with self._lock:
            known = [(root, each.made) for root, each in self._known.items() if each.loaded]
        return {None: self._without} | {root: made for root, made in known if made is not None}

    def packages(self) -> set[str]:
        """The private packages of all modules in use."""
        with self._lock:
            made = [each.made for each in self._known.values() if each.made is not None]
        return set().union(*(each.own_packages() for each in (self._without, *made)))

    def made(self) -> list[R]:
        """All runtimes so far."""
        with self._lock:
            known = [each.runtime for each in self._known.values()]
        return [self.without, *(runtime for runtime in known if runtime is not None)]

    def _projects(self, directory: Path | None) -> Iterator[Project]:
        config = self._base.config
        if directory is None or not config.project_local:
            return
        yield from find_projects(directory, home=self._base.home, global_dir=config.global_dir)
        # Somebody may have taken the folder away that a trusted extension came from.
        seen = self._seen.get(directory)
        if seen is not None:
            yield seen

    def _current(self, known: _Known[R], project: Project) -> R:
        place = _identity(project.root)
        if known.place != place:  # another folder of the same name is another project
            known.place, known.runtime, known.loaded = place, None, None
        stamp = stamp_now(project, self._base.home)
        if known.runtime is not None and stamp == known.stamp:
            return known.runtime
        verdict = judge(project, self._base.home)
        known.stamp = verdict.stamp
        if known.runtime is not None and known.loaded is not None:
            if _digest(verdict) == _digest(known.loaded):
                return known.runtime
            if verdict.standing is not Standing.TRUSTED and self._still_trusted(known.loaded):
                _tell(known.runtime, verdict)
                return known.runtime
        known.made = load_project(self._base, verdict)
        known.runtime = self._make(known.made)
        known.loaded = verdict if verdict.standing is Standing.TRUSTED else None
        return known.runtime

    def _still_trusted(self, loaded: Verdict) -> bool:
        if loaded.pinned:
            return True
        try:
            return is_still_trusted(loaded.project.root, _digest(loaded), self._base.home)
        except ConfigError:  # a store that cannot be read does not say that trust was withdrawn
            return True


def _digest(verdict: Verdict) -> str:
    trusted = verdict.standing is Standing.TRUSTED and verdict.tree is not None
    return verdict.tree.digest if trusted and verdict.tree is not None else ""


class Still(Projects[R]):
    """The same for a trial: nothing is loaded anew."""

    not_taken: str | None = None

    def choosing(self) -> AbstractContextManager[None]:
        """Nothing is ever taken away."""
        return nullcontext()

    def turn_begins(self) -> None:
        """What changed on the disk is not looked at."""

    def close(self) -> None:
        """There is nothing to stop."""


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _tell_of_nearer(runtime: _Runtime, waiting: list[R], project: Project) -> None:
    """That what lies further down is not trusted, and takes nothing of this out of force."""
    for other in waiting:
        for text in other.notices:
            told = f"{text}. The extensions of {printable(project.root)} stay in force there"
            if told not in runtime.notices:
                runtime.notices = (*runtime.notices, told)


def _tell(runtime: _Runtime, verdict: Verdict) -> None:
    text = (
        f"{printable(verdict.project.folder)} is no longer as it was when its extensions were "
        f"loaded ({verdict.reason}). What you trusted stays in force in this process; what changed "
        "does not run, and from the next start nothing of it does until you trust it again"
    )
    if text not in runtime.notices:
        runtime.notices = (*runtime.notices, text)
