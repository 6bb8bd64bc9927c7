"""What is installed, told without running any of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from hermes_ext._install.config import ExtensionsConfig, read_config
from hermes_ext._install.discovery import (
    OFF_IN_VAIN,
    Found,
    discover,
    load_stamp,
    manifest_problems,
    off_in_vain,
    record_of,
    standing,
    unknown_names,
)
from hermes_ext._install.records import ExtensionRecord, Problem, Status
from hermes_ext._install.settings import fault_status, plain_settings
from hermes_ext._install.snapshot import Remembered, key_of, read_snapshot


@frozen
class Inventory:
    """What is installed, without running any of it; hooks are those that the last load recorded."""

    config: ExtensionsConfig
    records: tuple[ExtensionRecord, ...]
    problems: tuple[Problem, ...]


def inventory(home: Path, cwd: Path | None = None) -> Inventory:
    """Records of every extension found or named. Imports nothing of them."""
    config = read_config(home)
    discovery = discover(config, home=home, cwd=cwd)
    remembered = read_snapshot(home)
    problems, missing = unknown_names(config, discovery.found)
    records = [_inventory_record(each, config, remembered) for each in discovery.found]
    told = (*config.problems, *discovery.problems, *manifest_problems(discovery.found), *problems)
    return Inventory(config, (*records, *missing), told)


def _inventory_record(
    found: Found,
    config: ExtensionsConfig,
    remembered: dict[tuple[str, str, str], Remembered],
) -> ExtensionRecord:
    stand = standing(found, config)
    last = remembered.get(key_of(found.source, found.name, found.path))
    off = config.hooks_off(found.name)
    known = () if last is None else last.hooks
    changes: dict[str, Any] = {
        "hooks": tuple(each for each in known if each.hook not in off),
        "turned_off": tuple(each for each in known if each.hook in off),
    }
    if stand.status is not None:
        changes |= {"status": stand.status, "reason": stand.reason}
        return record_of(found, config, configured_on=stand.configured_on, **changes)
    _, problems = plain_settings(found.name, config, found.manifest)
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
