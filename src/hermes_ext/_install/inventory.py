"""What is installed, told without running any of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from hermes_ext._hooks.source import Source
from hermes_ext._install.config import ExtensionsConfig, read_config
from hermes_ext._install.discovery import (
    OFF_IN_VAIN,
    discover,
    load_stamp,
    manifest_problems,
    off_in_vain,
    record_of,
    standing,
    trusted_names,
    unknown_names,
)
from hermes_ext._install.found import Found
from hermes_ext._install.project_settings import ProjectSettings
from hermes_ext._install.projects import kept_from, replaced_by, settings_of
from hermes_ext._install.records import (
    BROKEN,
    ExtensionRecord,
    HookInfo,
    Problem,
    Status,
    canonical_name,
)
from hermes_ext._install.settings import fault_status, merged_settings
from hermes_ext._install.snapshot import Remembered, key_of, read_snapshot
from hermes_ext._trust.store import Verdict


@frozen
class Inventory:
    """What is installed, without running any of it; hooks are those that the last load recorded.

    project: what is to be thought of the project, None without one. settings: of the project's
    own file, None where it has none or is not trusted. found: what the records are of.
    """

    config: ExtensionsConfig
    records: tuple[ExtensionRecord, ...]
    problems: tuple[Problem, ...]
    project: Verdict | None = None
    settings: ProjectSettings | None = None
    found: tuple[Found, ...] = ()


def inventory(home: Path, cwd: Path | None = None) -> Inventory:
    """Records of every extension found or named. Imports nothing of them."""
    config = read_config(home)
    discovery = discover(config, home=home, cwd=cwd)
    remembered = read_snapshot(home)
    settings = settings_of(discovery.project)
    problems, missing = unknown_names(
        config, discovery.found, trusted_names(home), discovery.problems
    )
    own = () if settings is None else settings.problems
    records = _with_places_taken(
        [(each, _inventory_record(each, config, remembered, settings)) for each in discovery.found],
        config,
    )
    told = (
        *config.problems,
        *discovery.problems,
        *manifest_problems(discovery.found),
        *problems,
        *own,
        *(() if settings is None else settings.unknown(each.name for each in discovery.found)),
    )
    found = discovery.found
    return Inventory(config, (*records, *missing), told, discovery.project, settings, found)


def _with_places_taken(
    rows: list[tuple[Found, ExtensionRecord]], config: ExtensionsConfig
) -> Iterator[ExtensionRecord]:
    """The records, with what a project's extensions would replace, and what they may not."""
    in_order = sorted(rows, key=lambda row: row[1].status is Status.ENABLED)
    places = {canonical_name(f.name): (f, record) for f, record in in_order if _on(record)}
    own = {
        canonical_name(found.name): found
        for found, record in rows
        if found.source is Source.PROJECT and record.status is Status.ENABLED
    }
    for found, record in rows:
        name = canonical_name(found.name)
        other, holder = places.get(name, (None, None))
        if name not in own or other is None or holder is None:
            yield record
            continue
        # Not loaded yet: as long as nobody knows, it may be a guard.
        known = bool(_hooks(holder)) and holder.status is Status.ENABLED
        guard = not known or any(map(_is_guard, _hooks(holder)))
        why = kept_from(other, guard=guard, config=config)
        if found is own[name] and why is not None:
            yield evolve(record, status=Status.SHADOWED, reason=why, configured_on=False)
        elif found is other and why is None and holder.status is Status.ENABLED:
            yield evolve(
                record,
                status=Status.SHADOWED,
                reason=replaced_by(own[name]),
                configured_on=False,
                hooks=(),
                turned_off=(),
            )
        else:
            yield record


def _on(record: ExtensionRecord) -> bool:
    on = record.status is Status.ENABLED or (record.configured_on and record.status in BROKEN)
    return record.source is not Source.PROJECT and on


def _hooks(record: ExtensionRecord) -> tuple[HookInfo, ...]:
    return (*record.hooks, *record.turned_off)


def _is_guard(hook: HookInfo) -> bool:
    return hook.guard


def _inventory_record(
    found: Found,
    config: ExtensionsConfig,
    remembered: dict[tuple[str, str, str], Remembered],
    settings: ProjectSettings | None,
) -> ExtensionRecord:
    stand = standing(found, config)
    last = remembered.get(key_of(found.source, found.name, found.path))
    off = config.hooks_off(found.name)
    known = () if last is None else last.hooks
    changes: dict[str, Any] = {
        "hooks": tuple(each for each in known if each.hook not in off),
        "turned_off": tuple(each for each in known if each.hook in off),
        "commands": () if last is None else last.commands,
    }
    if stand.status is not None:
        changes |= {"status": stand.status, "reason": stand.reason}
        return record_of(found, config, configured_on=stand.configured_on, **changes)
    own = found.source is Source.PROJECT
    guard = not known or any(map(_is_guard, known))
    problems = merged_settings(
        found.name, config, found.manifest, settings, own=own, guard=guard
    ).problems
    changes |= {"status": Status.ENABLED, "reason": "not loaded yet"}
    if problems:
        changes["status"] = fault_status(problems, config)
        changes["reason"] = "; ".join(map(str, problems))
    elif last is not None and last.stamp != load_stamp(found, config, last.status):
        changes["reason"] = "changed since it was last loaded"
    elif last is not None:
        changes |= {"status": last.status, "reason": last.reason}
        vain = off_in_vain(config, found.name, {each.hook for each in known})
        told = {*found.warnings, *vain}
        changes["warnings"] = (
            *(w for w in last.warnings if w not in told and not w.startswith(OFF_IN_VAIN)),
            *(vain if last.status is Status.ENABLED else ()),
        )
    return record_of(found, config, configured_on=True, **changes)
