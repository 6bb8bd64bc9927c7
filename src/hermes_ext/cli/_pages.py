"""What several commands print, from the value that `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hermes_ext.cli._page import Page
from hermes_ext.hooks.table import ACTIONS

_OF_STATUSES: Final = {
    "green": "enabled",
    "dim": "disabled shadowed",
    "yellow": "skipped untrusted warning",
    "red": "incompatible config-error load-error not-an-extension missing error",
    "cyan": "note",
}
STYLES: Final = {name: style for style, names in _OF_STATUSES.items() for name in names.split()}
ACTION_STYLES: Final = {action.value: row.style for action, row in ACTIONS.items()}
CHANGED = "changed since: takes effect on the next turn, or after a restart"
_BANNER = ("project", "notices", "off", "not_in_force", "old_rules", "next_start")


def banner(payload: Mapping[str, Any], page: Page) -> None:
    """The projects, and what makes every `enabled` below mean less than it says."""
    trusted(payload, page)
    for text in payload["notices"]:
        page.lines(f"{text[:1].upper()}{text[1:]}", style="yellow")
    if payload["off"]:
        page.line((f"Everything is off: ${payload['off']} is set.", "yellow"))
    in_force(payload, page, takes_effect=False)
    for each in payload["old_rules"]:
        since = datetime.fromisoformat(each["since"]).astimezone()
        who = f"A running Hermes (pid {each['pid']}, since {since:%Y-%m-%d %H:%M})"
        page.lines(f"{who} uses older rules: {each['reason']}", style="yellow")
    if payload.get("next_start"):
        page.lines(f"{CHANGED}: {payload['next_start']}.", style="yellow")
    if any(payload.get(key) for key in _BANNER):
        page.blank()


def trusted(payload: Mapping[str, Any], page: Page) -> bool:
    """The projects that apply, the outermost first; whether there are any."""
    trusted = [each for each in payload["projects"] if each["standing"] == "trusted"]
    for project in trusted:
        by = " by $HERMES_EXT_TRUST" if project["pinned"] else ""
        page.line("Project ", (project["root"], "bold"), f" is trusted{by}.")
    return bool(trusted)


def warnings(extension: Mapping[str, Any]) -> list[str]:
    """Those that do not say the same as its status."""
    return [each for each in extension["warnings"] if each != extension["reason"]]


def problem(problem: Mapping[str, Any], page: Page, indent: int = 4) -> None:
    page.lines(place_and_message(problem), indent=indent)
    if problem["hint"]:
        page.lines(problem["hint"], indent=indent + 4)


def place_and_message(problem: Mapping[str, Any]) -> str:
    place = problem["file"] + (f":{problem['line']}" if problem["line"] else "")
    key = f"{problem['key']}: " if problem["key"] else ""
    return f"{place}: {key}{problem['message']}"


def unknown(extension: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is known of an extension while nobody can read what the user says of it."""
    if extension["status"] not in {"enabled", "disabled"}:
        return extension
    return {**extension, "status": "unknown", "reason": "", "hooks": [], "commands": []}


def changes(payload: Mapping[str, Any], page: Page) -> None:
    for change in payload["changes"]:
        for word, preposition in (("added", "to"), ("removed", "from")):
            if change[word]:
                names = ", ".join(change[word])
                page.lines(
                    f"{payload['file']}: {word} {names} {preposition} {change['key']}", indent=4
                )


def in_force(payload: Mapping[str, Any], page: Page, *, takes_effect: bool) -> None:
    """Why nothing of it is in force, else when what was changed takes effect."""
    if payload["not_in_force"]:
        page.lines(f"Not in force: {payload['not_in_force']}.", style="yellow")
    elif takes_effect:
        told = "Takes effect on the next turn. If Hermes is in the middle of a turn, restart it."
        page.line(told)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
