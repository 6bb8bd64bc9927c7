"""What is installed, told without running any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from hermes_ext._problems import Problem
from hermes_ext._text import canonical_name
from hermes_ext._values import evolve, frozen
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import (
    OFF_IN_VAIN,
    discover,
    fault_status,
    load_stamp,
    off_in_vain,
    problems_of,
    record_of,
    standing,
)
from hermes_ext.loading.finding.projects import (
    NO_PROJECTS,
    ProjectStack,
    kept_from,
    replaced_by,
    settings_of,
)
from hermes_ext.loading.finding.snapshot import Remembered, key_of, read_snapshot
from hermes_ext.records import BROKEN, ExtensionRecord, HookInfo, Status
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.merging import Merged, merged_through
from hermes_ext.settings.project_settings import ProjectSettings


@frozen
class Inventory:
    """What is installed, without running any of it; hooks are those that the last load recorded.

    projects: what is to be thought of the projects. settings: of the trusted ones' own files, by
    the root of the project, the outermost first. found: what the records are of.
    """

    config: ExtensionsConfig
    records: tuple[ExtensionRecord, ...]
    problems: tuple[Problem, ...]
    projects: ProjectStack = NO_PROJECTS
    settings: Mapping[Path, ProjectSettings] = MappingProxyType({})
    found: tuple[Candidate, ...] = ()

    def found_of(self, record: ExtensionRecord) -> Candidate | None:
        """What a record is of."""
        same = (record.source, record.name, record.path)
        return next((e for e in self.found if (e.source, e.name, e.path) == same), None)

    def merged(self, record: ExtensionRecord, candidate: Candidate) -> Merged:
        """What all files say of an extension, each as far as it may."""
        guard = _may_guard(record.known_hooks)
        return merged_of(candidate, self.config, self.settings, guard=guard)


def inventory(home: Path, cwd: Path | None = None) -> Inventory:
    """Records of every extension found or named. Imports nothing of them."""
    config = read_config(home)
    discovery = discover(config, home=home, cwd=cwd)
    remembered = read_snapshot(home)
    settings = _settings_of(discovery.projects)
    found = discovery.found
    told, missing = problems_of(config, home, discovery, found, settings.values())
    records = _with_places_taken(
        [(each, _inventory_record(each, config, remembered, settings)) for each in found],
        config,
        discovery.projects,
    )
    return Inventory(config, (*records, *missing), told, discovery.projects, settings, found)


def merged_of(
    candidate: Candidate,
    config: ExtensionsConfig,
    settings: Mapping[Path, ProjectSettings],
    *,
    guard: bool,
) -> Merged:
    """The settings of an extension. settings, guard: as of `Inventory` and `merged_settings`."""
    home = None if candidate.tree is None else candidate.tree.root
    projects = ((each, root == home) for root, each in settings.items())
    return merged_through(candidate.name, config, candidate.manifest, projects, guard=guard)


def _settings_of(stack: ProjectStack) -> Mapping[Path, ProjectSettings]:
    read = ((each.project.root, settings_of(each)) for each in stack.trusted)
    return MappingProxyType({root: settings for root, settings in read if settings is not None})


_Row: TypeAlias = tuple[Candidate, ExtensionRecord]


def _with_places_taken(
    rows: Sequence[_Row], config: ExtensionsConfig, stack: ProjectStack
) -> Iterator[ExtensionRecord]:
    """The records, with what projects' extensions would replace, and what they may not."""
    order = {id(each.tree): depth for depth, each in enumerate(stack.trusted)}
    places: dict[str, _Row] = {}
    changed: dict[int, str] = {}
    # Of one place, what is enabled last: what is not an extension takes nobody's name.
    by_place = sorted(rows, key=lambda row: row[1].status is Status.ENABLED)
    for row in sorted(by_place, key=lambda row: order.get(id(row[0].tree), -1)):
        found, record = row
        name = canonical_name(found.name)
        holder = places.get(name)
        if not _on(record):
            continue
        if holder is None or found.source is not Source.PROJECT:
            places[name] = row
        elif record.status is Status.ENABLED:
            why = _kept_from(*holder, config)
            if why is not None:
                changed[id(found)] = why
                continue
            if holder[1].status is Status.ENABLED:
                changed[id(holder[0])] = replaced_by(found)
            places[name] = row
    for found, record in rows:
        why = changed.get(id(found))
        yield record if why is None else _shadowed(record, why)


def _kept_from(
    candidate: Candidate, record: ExtensionRecord, config: ExtensionsConfig
) -> str | None:
    guard = record.status is not Status.ENABLED or _may_guard(record.known_hooks)
    return kept_from(candidate, guard=guard, config=config)


def _shadowed(record: ExtensionRecord, why: str) -> ExtensionRecord:
    off: dict[str, Any] = {"configured_on": False, "hooks": (), "turned_off": ()}
    return evolve(record, status=Status.SHADOWED, reason=why, **off)


def _on(record: ExtensionRecord) -> bool:
    return record.status is Status.ENABLED or (record.configured_on and record.status in BROKEN)


def _may_guard(hooks: Sequence[HookInfo]) -> bool:
    """Whether one of them is a guard; as long as nobody knows any, it may be."""
    return not hooks or any(hook.guard for hook in hooks)


def _inventory_record(
    candidate: Candidate,
    config: ExtensionsConfig,
    remembered: dict[tuple[str, str, str], Remembered],
    settings: Mapping[Path, ProjectSettings],
) -> ExtensionRecord:
    stand = standing(candidate, config)
    last = remembered.get(key_of(candidate.source, candidate.name, candidate.path))
    off = config.hooks_off(candidate.name)
    known = () if last is None else last.hooks
    changes: dict[str, Any] = {
        "hooks": tuple(each for each in known if each.hook not in off),
        "turned_off": tuple(each for each in known if each.hook in off),
        "commands": () if last is None else last.commands,
    }
    if stand.status is not None:
        changes |= {"status": stand.status, "reason": stand.reason}
        return record_of(candidate, config, configured_on=stand.configured_on, **changes)
    problems = merged_of(candidate, config, settings, guard=_may_guard(known)).problems
    changes |= {"status": Status.ENABLED, "reason": "not loaded yet"}
    if problems:
        changes["status"] = fault_status(problems, config)
        changes["reason"] = "; ".join(map(str, problems))
    elif last is not None and last.stamp != load_stamp(candidate, config, last.status):
        changes["reason"] = "changed since it was last loaded"
    elif last is not None:
        changes |= {"status": last.status, "reason": last.reason}
        vain = off_in_vain(config, candidate.name, {each.hook for each in known})
        told = {*candidate.warnings, *vain}
        changes["warnings"] = (
            *(w for w in last.warnings if w not in told and not w.startswith(OFF_IN_VAIN)),
            *(vain if last.status is Status.ENABLED else ()),
        )
    return record_of(candidate, config, configured_on=True, **changes)
