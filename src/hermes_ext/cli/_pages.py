"""What the commands print for people, from the value that `--json` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli._log_pages import log, why
from hermes_ext.cli._page import Page
from hermes_ext.cli._trust_pages import trust, untrust
from hermes_ext.cli._trying_pages import replay, test
from hermes_ext.hooks.source import OWN

_STYLES = {
    "enabled": "green",
    "disabled": "dim",
    "shadowed": "dim",
    "skipped": "yellow",
    "untrusted": "yellow",
    "incompatible": "red",
    "config-error": "red",
    "load-error": "red",
    "not-an-extension": "red",
    "missing": "red",
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
}
_NOT_LOADED = "not loaded yet"
_REFUSED = "Tool calls are refused because "
_STALE = "changed since it was last loaded"
_CHANGED = "changed since: takes effect on the next turn, or after a restart"
_LONGEST = 160  # characters of a setting
_WIDEST = 28  # characters of a column
_BANNER = ("project", "notices", "off", "not_in_force", "old_rules", "next_start")
_NEXT_FAULT = re.compile(r"; (?=(?:/|~|[A-Za-z]:\\)[^;]*\.yaml(?::\d+)?: )")
_COLUMNS = ("name", "version", "source")


def show(command: str, payload: Mapping[str, Any], page: Page) -> None:
    """Writes what a command found or did."""
    _PAGES[command](payload, page)


# -- list -----------------------------------------------------------------------------------------


def _list(payload: Mapping[str, Any], page: Page) -> None:
    extensions = payload["extensions"]
    _banner(payload, page)
    if "order" in payload:
        _order(payload["order"], page)
    else:
        if not payload["readable"]:
            extensions = [*map(_unknown, extensions)]
        _table(extensions, page, told=(payload["project"] or {}).get("reason"))
    _broken(payload, page)
    reasons = "\n".join(extension["reason"] for extension in extensions)
    problems = [each for each in payload["problems"] if _place_and_message(each) not in reasons]
    if problems:
        page.blank()
        page.line(("Problems", "bold"))
        for problem in problems:
            _problem(problem, page)
    if payload["refusal"]:
        page.blank()
        why = payload["refusal"].removeprefix(_REFUSED)
        page.lines(f"Every tool call is refused: {why}", style="red")
        for each in extensions:
            if each["required"] and each["status"] == "disabled":
                page.line(f"To turn it on: {page.prog('enable ' + each['name'])}")
    if payload["failure"]:
        page.blank()
        page.lines(payload["failure"], style="red")
    if payload["failure"] or any(map(_was_stopped, extensions)):
        page.line("If it only takes its time: --deadline SECONDS gives it longer.")
    if "order" not in payload:
        _what_next(payload, page)


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def _banner(payload: Mapping[str, Any], page: Page) -> None:
    """The projects, and what makes every `enabled` below mean less than it says."""
    _trusted(payload, page)
    for text in payload["notices"]:
        page.lines(f"{text[:1].upper()}{text[1:]}", style="yellow")
    if payload["off"]:
        page.line((f"Everything is off: ${payload['off']} is set.", "yellow"))
    if payload["not_in_force"]:
        page.lines(f"Not in force: {payload['not_in_force']}.", style="yellow")
    for each in payload["old_rules"]:
        who = f"A running Hermes (pid {each['pid']}, since {_local(each['since'])})"
        page.lines(f"{who} uses older rules: {each['reason']}", style="yellow")
    if payload.get("next_start"):
        page.lines(f"{_CHANGED}: {payload['next_start']}.", style="yellow")
    if any(payload.get(key) for key in _BANNER):
        page.blank()


def _trusted(payload: Mapping[str, Any], page: Page) -> bool:
    """The projects that apply, the outermost first; whether there are any."""
    trusted = [each for each in payload["projects"] if each["standing"] == "trusted"]
    for project in trusted:
        by = " by $HERMES_EXT_TRUST" if project["pinned"] else ""
        page.line("Project ", (project["root"], "bold"), f" is trusted{by}.")
    return bool(trusted)


def _table(extensions: Sequence[Mapping[str, Any]], page: Page, told: str | None) -> None:
    """What is off comes last. told: why the project is not trusted, which stands above already."""
    widths = [
        min(max([len(printable(each[key] or "-")) for each in extensions] + [1]), _WIDEST)
        for key in _COLUMNS
    ]
    longest = max((len(_status(each)) for each in extensions), default=0)
    if page.width is not None and sum(widths) + 2 * len(widths) + longest > page.width:
        widths = []
    off: set[str] = set()
    for each in sorted(extensions, key=lambda each: bool(each["status"] == "disabled")):
        said = each["status"] == "untrusted" and each["reason"] == told
        if each["status"] == "disabled":  # why, once for all that are off for the same reason
            said = each["reason"] in off
            off.add(each["reason"])
        _row({**each, "reason": ""} if said else each, widths, page)


def _row(extension: Mapping[str, Any], widths: Sequence[int], page: Page) -> None:
    """One extension; without widths its name has a line of its own."""
    name, *others = (printable(extension[key] or "-") for key in _COLUMNS)
    status = (_status(extension), _STYLES.get(extension["status"], ""))
    if widths:
        cells = [cell.ljust(width) for cell, width in zip((name, *others), widths, strict=True)]
        page.line((cells[0], "bold"), "  ", cells[1], "  ", cells[2], "  ", status)
    else:
        page.line((name, "bold"))
        page.line(f"{'  '.join(others)}  ", status, indent=4)
    if extension.get("changed_since"):
        page.line((_CHANGED, "yellow"), indent=4)
    if extension["reason"]:
        page.lines(_by_lines(extension), indent=4)
    if extension["hooks"]:
        page.line(_hooks(extension["hooks"]), indent=4)
    if extension["commands"]:
        page.line(", ".join(f"/{each['name']}" for each in extension["commands"]), indent=4)
    if extension["hooks_off"]:
        page.line(f"off: {', '.join(extension['hooks_off'])}", indent=4)
    for hook in extension["hooks"]:
        if hook["fault"]:
            page.lines(f"error: {hook['handler']}: {hook['fault']}", indent=4, style="red")
    for warning in _warnings(extension):
        page.lines(f"warning: {warning}", indent=4, style="yellow")


def _warnings(extension: Mapping[str, Any]) -> list[str]:
    """Those that do not say the same as its status."""
    return [each for each in extension["warnings"] if each != extension["reason"]]


def _by_lines(extension: Mapping[str, Any]) -> str:
    """Why it has its status: each fault of a file in a line of its own."""
    return _NEXT_FAULT.sub("\n", extension["reason"])


def _status(extension: Mapping[str, Any]) -> str:
    return str(extension["status"]) + (" (required)" if extension["required"] else "")


def _hooks(hooks: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{hook['hook']} {hook['priority']}{' guard' if hook['guard'] else ''}" for hook in hooks
    )


def _problem(problem: Mapping[str, Any], page: Page, indent: int = 4) -> None:
    page.lines(_place_and_message(problem), indent=indent)
    if problem["hint"]:
        page.lines(problem["hint"], indent=indent + 4)


def _place_and_message(problem: Mapping[str, Any]) -> str:
    place = problem["file"] + (f":{problem['line']}" if problem["line"] else "")
    key = f"{problem['key']}: " if problem["key"] else ""
    return f"{place}: {key}{problem['message']}"


def _order(order: Mapping[str, Any], page: Page) -> None:
    page.line((f"{order['hook']}, in the order in which its handlers run", "bold"))
    if not order["handlers"]:
        page.line("No handler that is on is registered for it.", indent=4)
    for number, row in enumerate(order["handlers"], 1):
        if "error" in row:
            page.lines(row["error"], indent=4, style="red")
            continue
        head, why = _order_texts(row)
        page.lines(f"{number}. {head}", indent=4)
        page.lines(why, indent=7)


def _unknown(extension: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is known of an extension while nobody can read what the user says of it."""
    if extension["status"] not in {"enabled", "disabled"}:
        return extension
    return {**extension, "status": "unknown", "reason": "", "hooks": [], "commands": []}


def _was_stopped(extension: Mapping[str, Any]) -> bool:
    return str(extension["reason"]).startswith("the import did not finish within")


def _broken(payload: Mapping[str, Any], page: Page) -> None:
    """What is wrong, and so the exit code 1; in full where the page does not show it already."""
    records = [each for each in payload["extensions"] if each["name"] in payload["broken"]]
    if not records:
        return
    page.blank()
    if "order" not in payload:
        names = ", ".join(printable(each["name"]) for each in records)
        page.lines(f"Something is wrong (exit code 1): {names}", style="red")
        return
    page.line(("Something is wrong (exit code 1):", "red"))
    for each in records:
        faults = [hook["fault"] for hook in each["hooks"] if hook["fault"]]
        why = "; ".join([*filter(None, [each["reason"]]), *faults]) or "; ".join(each["warnings"])
        page.lines(f"{each['name']}: {each['status']}: {why}", indent=4)


def _order_texts(row: Mapping[str, Any]) -> tuple[str, str]:
    if row.get("extension") == OWN:
        return (
            f"{OWN} itself  guard, before all others",
            "built in: the agent may not change the rules",
        )
    phase = "guard" if row.get("guard") else "transformer"
    head = f"{row.get('extension')}.{row.get('handler')}  {phase}, priority {row.get('priority')}"
    return head, str(row.get("why") or row.get("reason") or "")


def _what_next(payload: Mapping[str, Any], page: Page) -> None:
    extensions = payload["extensions"]
    folder = payload["global_dir"]
    off = [each["name"] for each in extensions if each["status"] == "disabled" and each["source"]]
    if not extensions:
        page.line("There are no extensions yet.")
    elif not any(each["configured_on"] for each in extensions) and not payload["off"]:
        page.blank()
        page.line("None is on.")
    else:
        return
    page.line(f"To add one, put a folder with an __init__.py, or a .py file, into {folder}")
    if off:
        page.line(f"To turn one on: {page.prog(f'enable {off[0]}')}")


# -- enable, disable ------------------------------------------------------------------------------


def _switched(payload: Mapping[str, Any], page: Page, verb: str) -> None:
    name = printable(payload["name"]) + (f", hook {payload['hook']}" if payload["hook"] else "")
    if not payload["changed"]:
        page.line(f"{name} is {verb} already; nothing was changed.")
    else:
        page.line((f"{verb.capitalize()} {name}.", "bold"))
        _changes(payload, page)
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    if payload["not_in_force"]:
        page.lines(f"Not in force: {payload['not_in_force']}.", style="yellow")
    elif payload["changed"]:
        page.line(
            "Takes effect on the next turn. If Hermes is in the middle of a turn, restart it."
        )


def _changes(payload: Mapping[str, Any], page: Page) -> None:
    for change in payload["changes"]:
        for word, preposition in (("added", "to"), ("removed", "from")):
            if change[word]:
                names = ", ".join(change[word])
                page.lines(
                    f"{payload['file']}: {word} {names} {preposition} {change['key']}", indent=4
                )


def _enable(payload: Mapping[str, Any], page: Page) -> None:
    _switched(payload, page, "enabled")


def _disable(payload: Mapping[str, Any], page: Page) -> None:
    _switched(payload, page, "disabled")


# -- info -----------------------------------------------------------------------------------------


def _info(payload: Mapping[str, Any], page: Page) -> None:
    extension, needs = payload["extension"], payload["needs"]
    _banner(payload, page)
    page.line((printable(extension["name"]), "bold"), f"  {printable(extension['version'] or '')}")
    if extension["description"]:
        page.lines(extension["description"], indent=4)
    _info_status(payload, page)
    _fact(page, "source", extension["source"] or "none: the configuration names it")
    if extension["path"]:
        _fact(page, "path", extension["path"])
    for place in extension["also_at"]:
        _fact(page, "also at", place)
    for other in payload["others"]:
        _fact(page, "other", _other(other))
    if extension["required"]:
        _fact(page, "required", "yes: without it every tool call is refused")
    if payload["observed"]:
        _fact(page, "observed", "yes: its verdicts are recorded and change nothing")
    wanted = [
        f"{label} {needs[key]}"
        for key, label in (("hermes_ext", "hermes-ext"), ("hermes_agent", "hermes-agent"))
        if needs[key]
    ]
    if wanted or needs["packages"]:
        _fact(page, "needs", ", ".join([*wanted, *needs["packages"]]))
    for warning in _warnings(extension):
        _fact(page, "warning", warning, "yellow")
    _info_hooks(payload, page)
    _info_commands(extension["commands"], page)
    _info_settings(payload, page)
    for title, key in (("Problems", "problems"), ("Said by the project, and ignored", "ignored")):
        if payload[key]:
            page.line((title, "bold"), indent=4)
        for problem in payload[key]:
            _problem(problem, page, indent=8)


def _info_status(payload: Mapping[str, Any], page: Page) -> None:
    extension = payload["extension"]
    if not payload["readable"]:
        extension = _unknown(extension)
    status, reason = extension["status"], extension["reason"]
    problems = payload["problems"]
    if problems and _place_and_message(problems[0]) in reason:
        reason = f"{_counted(len(problems), 'problem')}, see below"
    told = f"{status}: {reason}" if reason else status
    _fact(page, "status", told, _STYLES.get(status, ""))
    if extension.get("changed_since"):
        page.line((_CHANGED, "yellow"), indent=4)


def _info_commands(commands: Sequence[Mapping[str, Any]], page: Page) -> None:
    if commands:
        page.line(("Slash commands", "bold"), indent=4)
    for each in commands:
        typed = f"/{each['name']} {each['args_hint']}".rstrip()
        told = f"  {each['help']}" if each["help"] else ""
        page.lines(f"{typed}{told}", indent=8)
        page.line((f"{each['file']}:{each['line']}", "dim"), indent=12)


def _other(extension: Mapping[str, Any]) -> str:
    """Another one of the same name."""
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


# -- doctor ---------------------------------------------------------------------------------------


def _doctor(payload: Mapping[str, Any], page: Page) -> None:
    if _trusted(payload, page):
        page.blank()
    for severity in ("error", "warning", "note"):
        found = [each for each in payload["findings"] if each["severity"] == severity]
        if found:
            page.line((_counted(len(found), severity), f"bold {_STYLES[severity]}"))
            for finding in found:
                _finding(finding, page)
            page.blank()
    _canary(payload["canary"], page)
    name, version = payload["hermes_distribution"], payload["hermes_agent"]
    host = f"{printable(name)} {printable(version)}" if name else "no hermes-agent here"
    about = f"{_counted(payload['checked'], 'extension')} checked, {host}."
    if payload["errors"]:
        page.line((f"Something is wrong. {about}", "red"))
    else:
        page.line((f"No errors. {about}", "green"))


def _finding(finding: Mapping[str, Any], page: Page) -> None:
    who = f"{printable(finding['extension'])}: " if finding["extension"] else ""
    page.line((who, "bold"), (finding["code"], ""), indent=4)
    page.lines(finding["message"], indent=8)
    if finding["where"]:
        page.lines(f"at {finding['where']}", indent=8, style="dim")
    if finding["hint"]:
        page.lines(finding["hint"], indent=8)


def _canary(canary: Mapping[str, Any] | None, page: Page) -> None:
    """A line for each hook, with what came of it on each surface."""
    if canary is None:
        return
    if canary["why_not"]:
        page.lines(f"The hooks were not tried in Hermes: {canary['why_not']}.", style="yellow")
        page.blank()
        return
    with_plugins = f", with {', '.join(canary['plugins'])}" if canary["plugins"] else ""
    page.line(("Tried in Hermes", "bold"), printable(with_plugins))
    for hook in dict.fromkeys(proof["hook"] for proof in canary["proofs"]):
        cells: list[str | tuple[str, str]] = [f"{hook:<22}"]
        for proof in canary["proofs"]:
            if proof["hook"] == hook:
                cells += [f"  {proof['surface']} ", _came_to(proof)]
        page.line(*cells, indent=4)
    for reason in dict.fromkeys(
        proof["detail"] for proof in canary["proofs"] if proof["status"] == "skipped"
    ):
        page.lines(f"Skipped: {reason}.", indent=4)
    page.blank()


def _came_to(proof: Mapping[str, Any]) -> tuple[str, str]:
    status = proof["status"]
    if status in {"ok", "skipped"}:
        return status, "green" if status == "ok" else "dim"
    if status == "repeated":
        return f"fired {proof['fired']} times, not {proof['events']}", "red"
    return status.replace("-", " "), "red"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# -- install, uninstall ---------------------------------------------------------------------------


def _new(payload: Mapping[str, Any], page: Page) -> None:
    page.line((f"Made {payload['name']}.", "bold"))
    page.lines(payload["folder"], indent=4)
    for file in payload["files"]:
        page.line(file, indent=6)
    if payload["not_in_force"]:
        page.lines(f"Not in force: {payload['not_in_force']}.", style="yellow")
    elif payload["scope"] == "global":
        page.line(
            "Takes effect on the next turn. If Hermes is in the middle of a turn, restart it."
        )
    page.line("What next:")
    for step in payload["next"]:
        page.line(f"{step['what']}: {step['command']}", indent=4)


def _install(payload: Mapping[str, Any], page: Page) -> None:
    if payload["changed"]:
        page.line(("Installed.", "bold"))
        _changes(payload, page)
        if payload["folder_made"]:
            page.lines(f"made the folder {payload['folder']}", indent=4)
        if payload["sentinel_changed"]:
            told = "refuses tools if this package is gone; to remove it, delete it"
            page.lines(f"wrote the sentinel {payload['sentinel']}, which {told}", indent=4)
    else:
        page.line("Installed already; nothing was changed.")
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    page.line("What next:")
    page.lines(f"put an extension into {payload['folder']}", indent=4)
    page.line(f"see what is there: {page.prog('list')}", indent=4)
    page.line(f"check that all is well: {page.prog('doctor')}", indent=4)


def _uninstall(payload: Mapping[str, Any], page: Page) -> None:
    if payload["changed"]:
        page.line(("Uninstalled.", "bold"))
        _changes(payload, page)
        if payload["sentinel_changed"]:
            page.line("removed the sentinel", indent=4)
    else:
        page.line("Not installed; nothing was changed.")
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    page.lines(f"Your extensions in {payload['folder']} and their settings stay as they are.")


def _completion(payload: Mapping[str, Any], page: Page) -> None:
    page.verbatim(payload["code"])


_PAGES: Mapping[str, Callable[[Mapping[str, Any], Page], None]] = {
    "list": _list,
    "enable": _enable,
    "disable": _disable,
    "info": _info,
    "doctor": _doctor,
    "new": _new,
    "test": test,
    "replay": replay,
    "trust": trust,
    "untrust": untrust,
    "why": why,
    "log": log,
    "install": _install,
    "uninstall": _uninstall,
    "completion": _completion,
}
