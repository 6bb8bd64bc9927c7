"""What runs in this process, beside what the files say by now. Loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import evolve

from hermes_ext.records import ExtensionRecord, HookInfo, Status

if TYPE_CHECKING:
    from hermes_ext.loading.inventory import Inventory
    from hermes_ext.rules import Rules

_NEVER_LOADED = frozenset(
    {
        Status.DISABLED,
        Status.SHADOWED,
        Status.MISSING,
        Status.UNTRUSTED,
        Status.NOT_AN_EXTENSION,
    }
)
_NOT_LOADED = "not loaded"


def in_force(live: Rules, seen: Inventory) -> list[dict[str, Any]]:
    """A row for each extension as the runtime has it; `changed_since` where the files differ."""
    return list(_rows(live, seen))


def _rows(live: Rules, seen: Inventory) -> Iterator[dict[str, Any]]:
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
