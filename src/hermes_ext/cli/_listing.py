"""What `list` finds: the inventory, or what a child process made of it."""

from __future__ import annotations

from typing import Any

from hermes_ext.cli._options import LOAD_SECONDS
from hermes_ext.cli._patience import patience
from hermes_ext.cli._place import from_next_start, in_force, place
from hermes_ext.cli._request import Request, Result
from hermes_ext.loading.finding.discovery import minor_entries, record_of
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.refusal import expected_refusal
from hermes_ext.records import Status


def list_all(request: Request) -> Result:
    seen = inventory(request.home, request.cwd)
    readable = seen.config.readable
    payload = {
        **place(request, seen),
        "loaded": False,
        "failure": None,
        "refusal": expected_refusal(seen.config, seen.records) if readable else None,
        "broken": [],
        "extensions": [record.to_json() for record in seen.records],
        "problems": [each.to_json() for each in seen.problems],
    }
    code = 0 if readable and payload["refusal"] is None else 1
    if request.live is not None:
        payload |= {
            "extensions": [*in_force(request.live, seen)],
            "problems": [each.to_json() for each in request.live.problems],
            "refusal": request.live.refusal,
            "loaded": True,
            "broken": [],
            **from_next_start(payload),
        }
    if request.load or request.order:
        from hermes_ext.cli._loading import load_in_child

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
    if request.every:  # the hidden files, caches and documents in extensions folders, too
        payload["extensions"] += [
            record_of(each, seen.config, status=each.status, reason=each.reason).to_json()
            for each in minor_entries(seen.config, seen.projects)
        ]
    return Result(code, payload)


def _stopped(record: dict[str, Any], culprit: str | None, failure: str) -> dict[str, Any]:
    if record["name"] == culprit:
        return {**record, "status": str(Status.LOAD_ERROR), "reason": failure}
    return record
