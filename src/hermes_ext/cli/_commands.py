"""Each command as a function from what was asked to an exit code and a JSON value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from hermes_ext._hooks.text import printable
from hermes_ext._install import hermes_home, switches
from hermes_ext._install.config import OFF_SWITCH, ExtensionsConfig, switched_off
from hermes_ext._install.discovery import Found, discover
from hermes_ext._install.doctor import Finding, Severity, advice_on, examine, in_order
from hermes_ext._install.hermes_home import hermes_agent_version, plugin_off
from hermes_ext._install.inventory import Inventory, inventory
from hermes_ext._install.records import ExtensionRecord, Prog, Status, canonical_name
from hermes_ext._install.settings import plain_settings
from hermes_ext._install.switches import unknown_extension
from hermes_ext.cli._live import in_force
from hermes_ext.cli._loading import LOAD_SECONDS, load_in_child, look_at_host

if TYPE_CHECKING:
    from hermes_ext.runtime import Runtime

_SECRET = re.compile(r"token|secret|passw|credential|api_?key|private_?key", re.IGNORECASE)


@frozen
class Request:
    """What was asked. cwd: None where there is no directory. prog: what the user calls.

    live: the runtime of this process, if what it has loaded is to be shown.
    """

    home: Path
    cwd: Path | None
    prog: Prog
    name: str = ""
    hook: str | None = None
    order: str | None = None
    load: bool = False
    deadline: float = LOAD_SECONDS
    live: Runtime | None = None


@frozen
class Result:
    """exit_code: 0, 1 (something wrong was found) or 2 (usage). payload: what `--json` prints."""

    exit_code: int
    payload: dict[str, Any]


def list_all(request: Request) -> Result:
    """Everything installed; with `load` or `order` as a child process loads it now."""
    seen = inventory(request.home, request.cwd)
    payload = _seen(request, seen)
    code = 0 if seen.config.readable else 1
    if request.live is not None:
        payload |= {
            "extensions": in_force(request.live, seen),
            "problems": [problem.to_json() for problem in request.live.problems],
            "refusal": request.live.refusal,
            "loaded": True,
            **_from_next_start(payload),
        }
    if request.load or request.order:
        loading = load_in_child(request.home, request.cwd, request.deadline, request.prog)
        if loading.failure is None:
            payload |= {key: loading.data[key] for key in ("extensions", "problems", "refusal")}
        else:
            payload["extensions"] = [
                _stopped(record.to_json(), loading.culprit, loading.failure)
                for record in seen.records
            ]
        payload |= {"loaded": True, "failure": loading.failure}
        broken = loading.failure or loading.data["broken"] or loading.data["refusal"]
        code = 1 if broken else code
        if request.order:
            payload["order"] = {
                "hook": request.order,
                "handlers": loading.data.get("orders", {}).get(request.order, []),
                "broken": loading.data.get("broken", []),
            }
    return Result(code, payload)


def enable(request: Request) -> Result:
    """Turns an extension or one hook of it on."""
    switched = switches.enable(
        request.home, request.cwd, request.name, hook=request.hook, prog=request.prog
    )
    return Result(0, switched.to_json() | {"not_in_force": _not_in_force(request)})


def disable(request: Request) -> Result:
    """Turns an extension or one hook of it off."""
    switched = switches.disable(request.home, request.cwd, request.name, hook=request.hook)
    return Result(0, switched.to_json() | {"not_in_force": _not_in_force(request)})


def info(request: Request) -> Result:
    """One extension, without running any of it."""
    seen = inventory(request.home, request.cwd)
    wanted = canonical_name(request.name)
    records = [each for each in seen.records if canonical_name(each.name) == wanted]
    if not records:
        raise unknown_extension(seen, request.name)
    records.sort(key=lambda record: record.status is Status.SHADOWED)
    record, *others = records
    discovery = discover(seen.config, home=request.home, cwd=request.cwd)
    found = next(
        (
            each
            for each in discovery.found
            if (each.source, each.name, each.path) == (record.source, record.name, record.path)
        ),
        None,
    )
    settings, problems = _settings(record, found, seen.config)
    payload = {
        "extension": record.to_json(),
        "others": [each.to_json() for each in others],
        "needs": _needs(found),
        "settings": settings,
        "problems": problems,
        "hooks_off": sorted(seen.config.hooks_off(record.name)),
        "observed": seen.config.is_observed(record.name),
        "off": OFF_SWITCH if switched_off() else None,
        "not_in_force": _not_in_force(request),
    }
    if request.live is not None:
        shown = record.to_json()
        same = (shown["source"], shown["name"], shown["path"])
        for row in in_force(request.live, seen):
            if (row["source"], row["name"], row["path"]) == same:
                payload |= {"extension": row, **_from_next_start(payload)}
    return Result(0 if seen.config.readable else 1, payload)


def doctor(request: Request) -> Result:
    """Loads everything in a child process and examines it, the configuration and the host."""
    host = look_at_host(request.home)
    loading = load_in_child(request.home, request.cwd, request.deadline, request.prog, host=host)
    if loading.failure is None:
        findings = loading.data["findings"]
    else:
        stopped = Finding(
            Severity.ERROR,
            "load-stopped",
            loading.culprit,
            None,
            loading.failure,
            _advice_on(request, loading.culprit)
            if loading.culprit
            else "Turn extensions off one by one to find the one that does it",
        )
        rest = examine(
            request.home,
            request.cwd,
            seams=host.statuses,
            needed_seams=host.needed,
            seams_failure=host.failure,
            prog=request.prog,
        )
        findings = [finding.to_json() for finding in in_order([stopped, *rest])]
    counts = {
        f"{severity}s": sum(finding["severity"] == severity for finding in findings)
        for severity in Severity
    }
    payload = {
        "home": printable(request.home),
        "hermes_agent": hermes_agent_version(),
        "checked": loading.data.get("checked", 0),
        "findings": findings,
        **counts,
    }
    return Result(1 if counts["errors"] else 0, payload)


def install(request: Request) -> Result:
    """Puts the plugin into a Hermes home."""
    return Result(0, hermes_home.install(request.home).to_json())


def uninstall(request: Request) -> Result:
    """Takes the plugin out of a Hermes home."""
    return Result(0, hermes_home.uninstall(request.home).to_json())


def _seen(request: Request, seen: Inventory) -> dict[str, Any]:
    return {
        "home": printable(request.home),
        "file": printable(seen.config.file),
        "global_dir": printable(seen.config.global_dir),
        "off": OFF_SWITCH if switched_off() else None,
        "not_in_force": _not_in_force(request),
        "loaded": False,
        "failure": None,
        "refusal": None,
        "extensions": [record.to_json() for record in seen.records],
        "problems": [problem.to_json() for problem in seen.problems],
    }


def _not_in_force(request: Request) -> str | None:
    """Why no extension of this home is in force in Hermes; None without Hermes here, since
    another host may be the one that runs them.
    """
    off = None if hermes_agent_version() is None else plugin_off(request.home)
    if off is None:
        return None
    return f"{off}; run {request.prog('install')}" if off.hint is None else str(off)


def _stopped(record: dict[str, Any], culprit: str | None, failure: str) -> dict[str, Any]:
    if record["name"] == culprit:
        return {**record, "status": str(Status.LOAD_ERROR), "reason": failure}
    return record


def _from_next_start(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What would stop a process that starts now, and does not stop this one."""
    return {"not_in_force": None, "next_start": payload["not_in_force"]}


def _advice_on(request: Request, name: str) -> str:
    required = inventory(request.home, request.cwd).config.is_required(name)
    return advice_on(name, request.prog, required=required)


def _needs(found: Found | None) -> dict[str, Any]:
    manifest = found.manifest if found is not None else None
    return {
        "hermes_ext": manifest.requires_hermes_ext if manifest else None,
        "hermes_agent": manifest.requires_hermes if manifest else None,
        "packages": [*manifest.requires] if manifest else [],
    }


def _settings(
    record: ExtensionRecord, found: Found | None, config: ExtensionsConfig
) -> tuple[Any, Any]:
    """Each setting with its value and where it comes from; and what is wrong with them."""
    manifest = found.manifest if found is not None else None
    values, problems = plain_settings(record.name, config, manifest)
    written = config.settings_of(record.name)
    given = written if isinstance(written, Mapping) else {}
    spelled = config.written(record.name) or record.name
    settings = [
        {
            "key": str(key),
            "value": _without_secrets(str(key), value),
            "from": f"{printable(config.file)}:{config.line_of(spelled, key)}"
            if key in given
            else "default",
        }
        for key, value in values.items()
    ]
    return settings, [problem.to_json() for problem in problems]


def _without_secrets(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _without_secrets(str(name), each) for name, each in value.items()}
    return "(hidden)" if value and _SECRET.search(key) else value


COMMANDS: Mapping[str, Callable[[Request], Result]] = {
    "list": list_all,
    "enable": enable,
    "disable": disable,
    "info": info,
    "doctor": doctor,
    "install": install,
    "uninstall": uninstall,
}
