"""Each command as a function from what was asked to an exit code and a JSON value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from hermes_ext._text import canonical_name, printable
from hermes_ext.cli._completion import completion
from hermes_ext.cli._examining import doctor
from hermes_ext.cli._live import in_force
from hermes_ext.cli._loading import LOAD_SECONDS, load_in_child
from hermes_ext.cli._log import log, why
from hermes_ext.cli._new import new
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result, not_in_force, projects_of
from hermes_ext.cli._settings import settings_of
from hermes_ext.cli._trusting import trust, untrust
from hermes_ext.cli._trying import replay, test
from hermes_ext.hosts.hermes.home import installing as hermes_home
from hermes_ext.loading import switches
from hermes_ext.loading.finding.discovery import minor_entries, record_of
from hermes_ext.loading.finding.found import Found
from hermes_ext.loading.finding.projects import ProjectStack, notices
from hermes_ext.loading.inventory import Inventory, inventory
from hermes_ext.loading.loader import expected_refusal
from hermes_ext.loading.reloading.not_taken import with_old_rules
from hermes_ext.loading.switches import by_use, unknown_extension
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import OFF_SWITCH, switched_off


def list_all(request: Request) -> Result:
    """Everything installed; with `load` or `order` as a child process loads it now."""
    seen = inventory(request.home, request.cwd)
    payload = _seen(request, seen)
    readable = seen.config.readable
    code = 0 if readable and payload["refusal"] is None else 1
    if request.live is not None:
        payload |= {
            "extensions": in_force(request.live, seen),
            "problems": [problem.to_json() for problem in request.live.problems],
            "refusal": request.live.refusal,
            "loaded": True,
            "broken": [],
            **_from_next_start(payload),
        }
    if request.load or request.order:
        seconds = request.deadline or LOAD_SECONDS
        with patience("Loading the extensions"):
            loading = load_in_child(request.home, request.cwd, seconds, request.prog)
        if loading.failure is None:
            payload |= {key: loading.data[key] for key in ("extensions", "problems", "refusal")}
        else:
            payload["extensions"] = [
                _stopped(record.to_json(), loading.culprit, loading.failure)
                for record in seen.records
            ]
        payload |= {
            "loaded": True,
            "failure": loading.failure,
            "broken": loading.data.get("broken", []),
        }
        broken = loading.failure or loading.data["broken"] or loading.data["refusal"]
        code = 0 if readable and not broken else 1
        if request.order:
            payload["order"] = {
                "hook": request.order,
                "handlers": loading.data.get("orders", {}).get(request.order, []),
                "broken": loading.data.get("broken", []),
            }
    if request.every:
        payload["extensions"] += _minor_rows(seen)
    return Result(code, payload)


def _minor_rows(seen: Inventory) -> list[dict[str, Any]]:
    """Rows of the hidden files, caches and documents in extensions folders."""
    found = minor_entries(seen.config, seen.projects)
    return [
        record_of(each, seen.config, status=each.status, reason=each.reason).to_json()
        for each in found
    ]


def enable(request: Request) -> Result:
    """Turns an extension or one hook of it on."""
    switched = switches.enable(
        request.home, request.cwd, request.name, hook=request.hook, prog=request.prog
    )
    return Result(0, switched.to_json() | {"not_in_force": not_in_force(request)})


def disable(request: Request) -> Result:
    """Turns an extension or one hook of it off."""
    switched = switches.disable(request.home, request.cwd, request.name, hook=request.hook)
    return Result(0, switched.to_json() | {"not_in_force": not_in_force(request)})


def info(request: Request) -> Result:
    """One extension, without running any of it."""
    seen = inventory(request.home, request.cwd)
    wanted = canonical_name(request.name)
    records = [each for each in seen.records if canonical_name(each.name) == wanted]
    if not records:
        raise unknown_extension(seen, request.name)
    record, *others = sorted(records, key=by_use)
    found = next((each for each in seen.found if _is_of(each, record)), None)
    payload = {
        **_place(request, seen),
        "extension": record.to_json(),
        "others": [each.to_json() for each in others],
        "needs": _needs(found),
        **settings_of(record, found, seen),
        "hooks_off": sorted(seen.config.hooks_off(record.name)),
        "observed": seen.config.is_observed(record.name),
    }
    if request.live is not None:
        payload |= _from_next_start(payload)
        shown = record.to_json()
        same = (shown["source"], shown["name"], shown["path"])
        for row in in_force(request.live, seen):
            if (row["source"], row["name"], row["path"]) == same:
                payload |= {"extension": row}
    return Result(0 if seen.config.readable else 1, payload)


def _is_of(found: Found, record: ExtensionRecord) -> bool:
    return (found.source, found.name, found.path) == (record.source, record.name, record.path)


def install(request: Request) -> Result:
    """Puts the plugin into a Hermes home."""
    return Result(0, hermes_home.install(request.home, sentinel=request.sentinel).to_json())


def uninstall(request: Request) -> Result:
    """Takes the plugin out of a Hermes home."""
    return Result(0, hermes_home.uninstall(request.home).to_json())


def _seen(request: Request, seen: Inventory) -> dict[str, Any]:
    return {
        **_place(request, seen),
        "loaded": False,
        "failure": None,
        "refusal": expected_refusal(seen.config, seen.records) if seen.config.readable else None,
        "broken": [],
        "extensions": [record.to_json() for record in seen.records],
        "problems": [problem.to_json() for problem in seen.problems],
    }


def _place(request: Request, seen: Inventory) -> dict[str, Any]:
    """Where was looked, and what there makes every `enabled` mean less than it says."""
    return {
        "home": printable(request.home),
        "file": printable(seen.config.file),
        "global_dir": printable(seen.config.global_dir),
        "readable": seen.config.readable,
        "off": OFF_SWITCH if switched_off() else None,
        "not_in_force": not_in_force(request),
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


def _stopped(record: dict[str, Any], culprit: str | None, failure: str) -> dict[str, Any]:
    if record["name"] == culprit:
        return {**record, "status": str(Status.LOAD_ERROR), "reason": failure}
    return record


def _from_next_start(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What would stop a process that starts now, and does not stop this one."""
    return {"not_in_force": None, "next_start": payload["not_in_force"]}


def _needs(found: Found | None) -> dict[str, Any]:
    manifest = found.manifest if found is not None else None
    return {
        "hermes_ext": manifest.requires_hermes_ext if manifest else None,
        "hermes_agent": manifest.requires_hermes if manifest else None,
        "packages": [*manifest.requires] if manifest else [],
    }


COMMANDS: Mapping[str, Callable[[Request], Result]] = {
    "list": list_all,
    "enable": enable,
    "disable": disable,
    "info": info,
    "doctor": doctor,
    "new": new,
    "test": test,
    "replay": replay,
    "trust": trust,
    "untrust": untrust,
    "why": why,
    "log": log,
    "install": install,
    "uninstall": uninstall,
    "completion": completion,
}
