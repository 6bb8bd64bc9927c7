"""`info`: one extension, without running any of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import (
    CHANGED,
    STYLES,
    banner,
    counted,
    place_and_message,
    problem,
    unknown,
    warnings,
)
from hermes_ext.cli._place import from_next_start, in_force, place
from hermes_ext.cli._request import Request, Result
from hermes_ext.cli._settings import settings_of
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.switches import named, unknown_extension
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import ExtensionsConfig

_NOT_LOADED = "not loaded yet"
_STALE = "changed since it was last loaded"
_LONGEST = 160  # characters of a setting


arguments = _options.name


def work(request: Request) -> Result:
    seen = inventory(request.home, request.cwd)
    records = named(seen, request.name)
    if not records:
        raise unknown_extension(seen, request.name)
    record, *others = records
    found = seen.found_of(record)
    payload = {
        **place(request, seen),
        "extension": record.to_json(),
        "others": [each.to_json() for each in others],
        "needs": _needs(found),
        **settings_of(record, found, seen),
        "hooks_off": sorted(seen.config.hooks_off(record.name)),
        "observed": seen.config.is_observed(record.name),
        "unconfined": _unconfined(record, seen.config),
    }
    if request.live is not None:
        payload |= from_next_start(payload)
        shown = record.to_json()
        same = (shown["source"], shown["name"], shown["path"])
        for row in in_force(request.live, seen):
            if (row["source"], row["name"], row["path"]) == same:
                payload |= {"extension": row}
    return Result(0 if seen.config.readable else 1, payload)


def _unconfined(record: ExtensionRecord, config: ExtensionsConfig) -> str | None:
    if record.status is not Status.ENABLED:
        return None
    # Not at the top: it takes a quarter of the time of this command.
    from hermes_ext.hosts.hermes.checks import unconfined

    return unconfined(record, config)


def _needs(candidate: Candidate | None) -> dict[str, Any]:
    manifest = candidate.manifest if candidate is not None else None
    return {
        "hermes_ext": manifest.requires_hermes_ext if manifest else None,
        "hermes_agent": manifest.requires_hermes if manifest else None,
        "packages": [*manifest.requires] if manifest else [],
    }


def page(payload: Mapping[str, Any], page: Page) -> None:
    extension, needs = payload["extension"], payload["needs"]
    banner(payload, page)
    page.line((printable(extension["name"]), "bold"), f"  {printable(extension['version'] or '')}")
    if extension["description"]:
        page.lines(extension["description"], indent=4)
    _info_status(payload, page)
    _fact(page, "source", extension["source"] or "none: the configuration names it")
    if extension["path"]:
        _fact(page, "path", extension["path"])
    for other_place in extension["also_at"]:
        _fact(page, "also at", other_place)
    for other in payload["others"]:
        _fact(page, "other", _other(other))
    if extension["required"]:
        _fact(page, "required", "yes: without it every tool call is refused")
    if payload["observed"]:
        _fact(page, "observed", "yes: its verdicts are recorded and change nothing")
    if payload["unconfined"]:
        _fact(page, "warning", payload["unconfined"], "yellow")
    wanted = [
        f"{label} {needs[key]}"
        for key, label in (("hermes_ext", "hermes-ext"), ("hermes_agent", "hermes-agent"))
        if needs[key]
    ]
    if wanted or needs["packages"]:
        _fact(page, "needs", ", ".join([*wanted, *needs["packages"]]))
    for warning in warnings(extension):
        _fact(page, "warning", warning, "yellow")
    _info_hooks(payload, page)
    _info_commands(extension["commands"], page)
    _info_settings(payload, page)
    for title, key in (("Problems", "problems"), ("Said by the project, and ignored", "ignored")):
        if payload[key]:
            page.line((title, "bold"), indent=4)
        for each in payload[key]:
            problem(each, page, indent=8)


def _info_status(payload: Mapping[str, Any], page: Page) -> None:
    extension = payload["extension"]
    if not payload["readable"]:
        extension = unknown(extension)
    status, reason = extension["status"], extension["reason"]
    problems = payload["problems"]
    if problems and place_and_message(problems[0]) in reason:
        reason = f"{counted(len(problems), 'problem')}, see below"
    told = f"{status}: {reason}" if reason else status
    _fact(page, "status", told, STYLES.get(status, ""))
    if extension.get("changed_since"):
        page.line((CHANGED, "yellow"), indent=4)


def _info_commands(commands: Sequence[Mapping[str, Any]], page: Page) -> None:
    if commands:
        page.line(("Slash commands", "bold"), indent=4)
    for each in commands:
        typed = f"/{each['name']} {each['args_hint']}".rstrip()
        told = f"  {each['help']}" if each["help"] else ""
        page.lines(f"{typed}{told}", indent=8)
        page.line((f"{each['file']}:{each['line']}", "dim"), indent=12)


def _other(extension: Mapping[str, Any]) -> str:
    reason = f": {extension['reason']}" if extension["reason"] else ""
    place = f" at {extension['path']}" if extension["path"] else ""
    return f"{extension['source']}{place}, {extension['status']}{reason}"


def _fact(page: Page, label: str, text: str, style: str = "") -> None:
    page.fact(label, text, indent=4, style=style)


def _info_hooks(payload: Mapping[str, Any], page: Page) -> None:
    hooks = payload["extension"]["hooks"]
    page.line(("Registers", "bold"), indent=4)
    if payload["extension"]["status"] == "untrusted":
        page.line("unknown: nothing of it is read before you trust it", indent=8)
    elif payload["extension"]["reason"] == _NOT_LOADED:
        page.line(f"{_NOT_LOADED}; {page.prog('list --load')} loads it", indent=8)
    elif not hooks:
        page.line("nothing that is on", indent=8)
    if hooks and payload["extension"]["reason"].startswith(_STALE):
        page.line("as it was last loaded, before it changed:", indent=8)
    elif hooks and payload["extension"]["status"] == "untrusted":
        page.line("when it was last trusted and loaded:", indent=8)
    if payload["hooks_off"]:
        page.line(f"off: {', '.join(payload['hooks_off'])}", indent=8)
    for hook in hooks:
        kind = "guard, " if hook["guard"] else ""
        tools = f", tools {', '.join(hook['tools'])}" if hook["tools"] is not None else ""
        away = hook.get("on_store_error")
        store = f", without session state {away}" if away is not None else ""
        page.lines(
            f"{hook['hook']}: {hook['handler']} ({kind}priority {hook['priority']}, "
            f"on failure {hook['on_error']}{store}{tools})",
            indent=8,
        )
        page.lines(f"{hook['file']}:{hook['line']}", indent=12, style="dim")


def _info_settings(payload: Mapping[str, Any], page: Page) -> None:
    page.line(("Settings", "bold"), indent=4)
    if not payload["settings"]:
        page.line("none", indent=8)
    for setting in payload["settings"]:
        if setting["from"].startswith("missing"):
            page.lines(f"{setting['key']}: {setting['from']}", indent=8, style="red")
            continue
        value = json.dumps(setting["value"], ensure_ascii=False, default=str)
        shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]} ... (all of it: --json)"
        page.lines(f"{setting['key']}: {shown}", indent=8)
        page.lines(f"from {setting['from']}", indent=12, style="dim")
