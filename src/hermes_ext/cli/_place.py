"""Where was looked, as `list` and `info` say it, and what runs in this process. Loads nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from hermes_ext._text import printable
from hermes_ext.cli._request import Request, not_in_force, projects_of
from hermes_ext.loading.finding.projects import ProjectStack, notices
from hermes_ext.loading.inventory import Inventory
from hermes_ext.loading.reloading.not_taken import with_old_rules
from hermes_ext.records import ExtensionRecord, HookInfo, Status
from hermes_ext.settings.config import OFF_SWITCH, switched_off

if TYPE_CHECKING:
    from hermes_ext.rules import Rules

_NEVER_LOADED = frozenset(
    {Status.DISABLED, Status.SHADOWED, Status.MISSING, Status.UNTRUSTED, Status.NOT_AN_EXTENSION}
)
_NOT_LOADED = "not loaded"


def place(request: Request, seen: Inventory) -> dict[str, Any]:
    """Where was looked, and what there makes every `enabled` mean less than it says."""
    return {
        "home": printable(request.home),
        "file": printable(seen.config.file),
        "global_dir": printable(seen.config.global_dir),
        "readable": seen.config.readable,
        "off": OFF_SWITCH if switched_off() else None,
        "not_in_force": not_in_force(request, seen.config),
        **projects_of(seen.projects),
        "notices": _notices(request, seen.projects),
        "old_rules": _old_rules(request),
    }


def _notices(request: Request, stack: ProjectStack) -> list[str]:
    if request.live is not None:
        return [text for text in (*request.live.notices, request.not_taken) if text]
    return [*notices(stack, request.prog)]


def _old_rules(request: Request) -> list[dict[str, Any]]:
    """The running processes that have not taken a change; this one says so in its notices."""
    own = os.getpid() if request.live is not None else None
    return [each.to_json() for each in with_old_rules(request.home) if each.pid != own]


def from_next_start(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What would stop a process that starts now, and does not stop this one."""
    return {"not_in_force": None, "next_start": payload["not_in_force"]}


def in_force(live: Rules, seen: Inventory) -> Iterator[dict[str, Any]]:
    """A row for each extension as the runtime has it; `changed_since` where the files differ."""
    in_files = {_key(record): record for record in seen.records}
    for record in live.records:
        filed = in_files.pop(_key(record), None)
        yield record.to_json() | {"changed_since": filed is None or _differ(record, filed)}
    for record in in_files.values():
        row = record.to_json()
        if record.status in _NEVER_LOADED:
            yield row | {"changed_since": False}
        else:
            yield row | {
                "status": _NOT_LOADED,
                "reason": "",
                "loaded": False,
                # Without any record the runtime itself failed, as its refusal tells.
                "changed_since": bool(live.records),
            }


def _key(record: ExtensionRecord) -> tuple[Any, ...]:
    return record.source, record.name, record.path


def _differ(running: ExtensionRecord, filed: ExtensionRecord) -> bool:
    if (running.status, running.hooks_off, running.required) != (
        filed.status,
        filed.hooks_off,
        filed.required,
    ):
        return True
    if running.status is not Status.ENABLED or filed.reason == "not loaded yet":
        return False
    # The reason says that the code changed; another process may have loaded what it is now.
    return (
        bool(filed.reason)
        or set(map(_plain, running.hooks)) != set(map(_plain, filed.hooks))
        or set(running.commands) != set(filed.commands)
    )


def _plain(hook: HookInfo) -> HookInfo:
    return evolve(hook, fault=None)
