"""Which extensions are in force in a directory: `Rules` for each stack of projects, on one base.

A turn asks when it begins, so that what the user trusts or stops trusting counts from the next turn
on. Code that was trusted and loaded stays in force while its files change: what changed has not
been trusted, and a guard must not go because somebody touched its file.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TypeAlias
from weakref import WeakSet

from hermes_ext._forks import has_locks
from hermes_ext._prog import Prog
from hermes_ext._regular import Signature, signature
from hermes_ext._values import Factory, define, evolve
from hermes_ext.chain.manager import HookManager
from hermes_ext.exceptions import ConfigError
from hermes_ext.hooks.handler import Handler
from hermes_ext.loading.ended import Base, Loaded, own_packages
from hermes_ext.loading.finding.projects import (
    NO_PROJECTS,
    ProjectStack,
    has_drifted,
    notices,
    stacked,
)
from hermes_ext.loading.loader import load_projects
from hermes_ext.rules import Rulebook, Rules, owners_of
from hermes_ext.trust.possible_projects import Listed, PossibleProject, possible_projects
from hermes_ext.trust.store import Verdict, is_still_trusted, judge, stamp_now

_Roots: TypeAlias = tuple[Path, ...]


@define(eq=False)
class _Known:
    """One project. loaded: its verdict when it was trusted last. now: as it is on the disk."""

    lock: threading.Lock = Factory(threading.Lock)
    loaded: Verdict | None = None
    now: Verdict | None = None
    stamp: Hashable = None
    place: Signature = ()


@define(eq=False)
class _Made:
    """What is in force where these projects apply.

    projects: those that were loaded. made: of what the rules were made.
    """

    lock: threading.Lock = Factory(threading.Lock)
    rules: Rules | None = None
    made: Loaded | None = None
    projects: tuple[Verdict, ...] = ()


class Projects(Rulebook):
    """The rules of one Hermes home, by project. Thread-safe.

    before: these rules from before a reload, whose failure counts go on.
    """

    def __init__(self, base: Base, prog: Prog, before: Projects | None = None) -> None:
        self.base = base
        self._prog = prog
        # Shared with those before: turns that began with them go on.
        self._managers: dict[_Roots, WeakSet[HookManager]] = {}
        if before is not None:
            self._managers = before._managers
        self._known: dict[Path, _Known] = {}
        self._made: dict[_Roots, _Made] = {}
        self.renew_locks()
        has_locks(self)
        self._listed: Listed | None = None
        self._seen: dict[Path, tuple[PossibleProject, ...]] = {}
        self._without = load_projects(base, NO_PROJECTS)
        super().__init__(self._rules_of(self._without))

    def renew_locks(self) -> None:
        """After a fork; what a thread of the parent was loading is loaded in the child again."""
        self._lock = threading.Lock()
        for known in self._known.values():
            known.lock = threading.Lock()
        for made in self._made.values():
            made.lock = threading.Lock()

    def at(self, directory: Path | None) -> Rules:
        stack = self._stack(directory)
        if stack.nearest is None:
            return self.everywhere
        with self._lock:
            made = self._made.setdefault(_roots(stack), _Made())
        with made.lock:
            rules = made.rules
            if rules is None or made.projects != stack.shown:
                rules = self._load(made, stack)
            told = notices(stack, self._prog)
            if rules.notices != told:
                rules = made.rules = evolve(rules, notices=told)
            return rules

    def on(self, base: Base) -> Projects:
        """The same on another base: of each project what was trusted when it was loaded.

        These stay as they are, for the turns that run.
        """
        new = Projects(base, self._prog, self)
        if not base.config.project_local:
            return new
        with self._lock:
            known, made, seen = dict(self._known), dict(self._made), dict(self._seen)
        for root, each in known.items():
            with each.lock:
                # No stamp: what has become of the files is told to the new turns too.
                new._known[root] = _Known(loaded=each.loaded, place=each.place)
        for roots, other in made.items():
            with other.lock:
                before, projects = other.made, other.projects
            if before is not None and self._all_in_force(projects):
                again = new._made[roots] = _Made(made=before)
                new._load(again, ProjectStack(projects))
        new._seen = seen
        return new

    def loads(self) -> dict[_Roots, Loaded]:
        """What is in force, by the roots of the projects: none for what holds everywhere."""
        with self._lock:
            made = [(roots, each.made, each.projects) for roots, each in self._made.items()]
        in_force = {roots: each for roots, each, of in made if each and self._all_in_force(of)}
        return {(): self._without} | in_force

    def packages(self) -> set[str]:
        """The private packages of all modules in use."""
        with self._lock:
            made = [each.made for each in self._made.values() if each.made is not None]
        return set().union(*(own_packages(each.ended) for each in (self._without, *made)))

    def all(self) -> list[Rules]:
        with self._lock:
            made = [each.rules for each in self._made.values()]
        return [self.everywhere, *(rules for rules in made if rules is not None)]

    def _load(self, made: _Made, stack: ProjectStack) -> Rules:
        with self._lock:
            others = [each.made for each in self._made.values() if each is not made]
        before = [each for each in (*others, made.made) if each is not None]
        made.made = load_projects(self.base, stack, before)
        made.projects = stack.shown
        made.rules = self._rules_of(made.made)
        return made.rules

    def _rules_of(self, loaded: Loaded) -> Rules:
        """All managers of the same projects count failures together."""
        counting = self._managers.setdefault(_roots(loaded.projects), WeakSet())
        rules = rules_of(loaded, next(iter(counting), None))
        counting.add(rules.manager)
        return rules

    def _all_in_force(self, projects: tuple[Verdict, ...]) -> bool:
        """Whether all of these are what is in force of them now."""
        known = ((self._known.get(each.project.root), each) for each in projects)
        return all(one is not None and one.loaded is each for one, each in known)

    def _stack(self, directory: Path | None) -> ProjectStack:
        """The projects there, each as it is in force."""
        if directory is None:
            return NO_PROJECTS
        found = tuple(self._possible_projects(directory))
        if not found:
            return NO_PROJECTS
        looked = [(each, *self._look(each)) for each in found]
        stack = stacked((each, verdict) for each, verdict, _ in looked)
        applied = {id(each) for each in stack.trusted}
        self._seen[directory] = tuple(each for each, v, _ in looked if id(v) in applied)
        on_disk = (now for _, verdict, now in looked if id(verdict) in applied)
        return evolve(stack, drifted=tuple(filter(has_drifted, on_disk)))

    def _possible_projects(self, directory: Path) -> Iterator[PossibleProject]:
        config, home = self.base.config, self.base.home
        if not config.project_local:
            return
        self._listed = listed = Listed.now(home, self._listed)
        found = list(possible_projects(directory, listed, home=home, global_dir=config.global_dir))
        yield from found
        # Somebody may have taken the folder away that a trusted extension came from.
        roots = {each.project.root for each in found}
        yield from (e for e in self._seen.get(directory, ()) if e.project.root not in roots)

    def _look(self, possible: PossibleProject) -> tuple[Verdict, Verdict]:
        """The verdict on a project that is in force, and the one on what is on the disk."""
        project, home = possible.project, self.base.home
        with self._lock:
            known = self._known.setdefault(project.root, _Known())
        with known.lock:
            place = signature(str(project.root))[1:3]  # its number and device, () where it is gone
            if place and place != known.place:  # another folder of its name is another project
                known.place, known.now, known.loaded = place, None, None
            like = possible.trusted_like
            if known.now is None or (like, stamp_now(project, home)) != known.stamp:
                known.now = judge(project, home, like)
                known.stamp = like, known.now.stamp
                known.loaded = self._in_force(known.loaded, known.now)
            return known.loaded or known.now, known.now

    def _in_force(self, loaded: Verdict | None, now: Verdict) -> Verdict | None:
        if now.is_trusted:
            return loaded if loaded is not None and _digest(loaded) == _digest(now) else now
        return loaded if loaded is not None and self._still_trusted(loaded) else None

    def _still_trusted(self, loaded: Verdict) -> bool:
        if loaded.pinned:
            return True
        try:
            root = loaded.trusted_at or loaded.project.root
            return is_still_trusted(root, _digest(loaded), self.base.home)
        except ConfigError:  # a store that cannot be read does not say that trust was withdrawn
            return True


def _digest(verdict: Verdict) -> str:
    assert verdict.tree is not None
    return verdict.tree.digest


def _roots(stack: ProjectStack) -> _Roots:
    return tuple(each.project.root for each in stack.shown)


def rules_of(loaded: Loaded, previous: HookManager | None = None) -> Rules:
    """What is in force where these extensions are loaded.

    previous: the manager whose failure counts go on.
    """
    handlers = (*loaded.handlers, *own_guards(loaded))
    packages = {package: name for name, package in loaded.packages.items()}
    return Rules(
        HookManager(handlers, previous, (one.name for one in loaded.records if one.loaded)),
        {command.name: command for command in loaded.commands},
        loaded.records,
        loaded.problems,
        (),
        loaded.refusal,
        loaded.cause,
        owners_of(handlers) | packages,
        loaded.homes,
    )


def own_guards(loaded: Loaded) -> tuple[Handler, ...]:
    """The guard that keeps the agent's tools off the rules, while there are any."""
    in_force = [record for record in loaded.records if record.loaded]
    if not in_force or loaded.base is None:
        return ()
    from hermes_ext.guard.guard import own_guard
    from hermes_ext.guard.places import Protected

    places = [record.path for record in in_force if record.path is not None]
    return (own_guard(Protected.of(loaded.base.home, loaded.config.global_dir, places)),)
