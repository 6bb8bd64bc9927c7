"""What the commands print for people, from the value that `--json` prints.

Every text that an extension, a path or a file brings goes through `printable`, and none is parsed
as markup, so that none can colour, move or clear anything.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from hermes_ext._hooks.text import printable
from hermes_ext._install.records import Prog

_STYLES = {
    "enabled": "green",
    "disabled": "dim",
    "shadowed": "dim",
    "skipped": "yellow",
    "untrusted": "yellow",
    "incompatible": "red",
    "config-error": "red",
    "load-error": "red",
    "missing": "red",
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
}
_NOT_LOADED = "not loaded yet"
_CHANGED = "changed since: counts from the next start"
_LONGEST = 160  # characters of a setting


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would end the process here, with exit code 1.
        raise BrokenPipeError


class Page:
    """Lines for a terminal, wrapped at its width; not wrapped where they go to a file or a pipe."""

    def __init__(self, file: TextIO, *, prog: Prog, width: int | None = None) -> None:
        self.prog = prog
        self._file = file
        self._console = _Console(
            file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False
        )
        self._wraps = width is not None or self._console.is_terminal or "COLUMNS" in os.environ

    @property
    def text(self) -> str:
        """All that was written, where it went to a `StringIO`."""
        return self._file.getvalue() if isinstance(self._file, io.StringIO) else ""

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One line of texts, or of (text, style)."""
        text = Text.assemble(*((part, "") if isinstance(part, str) else part for part in parts))
        width = max(self._console.width - indent, 20)
        lines = text.wrap(self._console, width, overflow="fold") if self._wraps else [text]
        for each in lines:
            each.rstrip()
            self._console.print(Text(" " * indent) + each, soft_wrap=True)

    def lines(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """A text of an extension or a file, whatever is in it."""
        for line in text.splitlines() or [""]:
            self.line((printable(line), style), indent=indent)

    def blank(self) -> None:
        """An empty line."""
        self._console.print()


def show(command: str, payload: Mapping[str, Any], page: Page) -> None:
    """Writes what a command found or did."""
    _PAGES[command](payload, page)


# -- list -----------------------------------------------------------------------------------------


def _list(payload: Mapping[str, Any], page: Page) -> None:
    extensions = payload["extensions"]
    _banner(payload, page)
    if "order" in payload:
        _order(payload["order"], page)
        _broken(payload, page)
    else:
        widths = [
            max([len(extension[key] or "-") for extension in extensions] + [1])
            for key in ("name", "version", "source")
        ]
        for extension in extensions:
            _row(extension, [min(width, 28) for width in widths], page)
    reasons = "\n".join(extension["reason"] for extension in extensions)
    problems = [each for each in payload["problems"] if _place_and_message(each) not in reasons]
    if problems:
        page.blank()
        page.line(("Problems", "bold"))
        for problem in problems:
            _problem(problem, page)
    if payload["refusal"]:
        page.blank()
        page.lines(f"Every tool call is refused: {payload['refusal']}", style="red")
    if payload["failure"]:
        page.blank()
        page.lines(payload["failure"], style="red")
    if "order" not in payload:
        _what_next(payload, page)


def _banner(payload: Mapping[str, Any], page: Page) -> None:
    """What makes every `enabled` below mean less than it says."""
    if payload["off"]:
        page.line((f"Everything is off: ${payload['off']} is set.", "yellow"))
    if payload["not_in_force"]:
        page.lines(f"Not in force: {payload['not_in_force']}.", style="yellow")
    if payload.get("next_start"):
        page.lines(f"{_CHANGED}: {payload['next_start']}.", style="yellow")
    if payload["off"] or payload["not_in_force"] or payload.get("next_start"):
        page.blank()


def _row(extension: Mapping[str, Any], widths: Iterable[int], page: Page) -> None:
    status = extension["status"]
    cells = [
        printable(extension[key] or "-").ljust(width)
        for key, width in zip(("name", "version", "source"), widths, strict=True)
    ]
    required = " (required)" if extension["required"] else ""
    page.line(
        (cells[0], "bold"), "  ", cells[1], "  ", cells[2], "  ",
        (status + required, _STYLES.get(status, "")),
    )  # fmt: skip
    if extension.get("changed_since"):
        page.line((_CHANGED, "yellow"), indent=4)
    if extension["reason"]:
        page.lines(extension["reason"], indent=4)
    if extension["hooks"]:
        page.line(_hooks(extension["hooks"]), indent=4)
    if extension["hooks_off"]:
        page.line(f"off: {', '.join(extension['hooks_off'])}", indent=4)
    for hook in extension["hooks"]:
        if hook["fault"]:
            page.lines(f"error: {hook['handler']}: {hook['fault']}", indent=4, style="red")
    for warning in extension["warnings"]:
        page.lines(f"warning: {warning}", indent=4, style="yellow")


def _hooks(hooks: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{hook['hook']} {hook['priority']}{' guard' if hook['guard'] else ''}" for hook in hooks
    )


def _problem(problem: Mapping[str, Any], page: Page) -> None:
    page.lines(_place_and_message(problem), indent=4)
    if problem["hint"]:
        page.lines(problem["hint"], indent=8)


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


def _broken(payload: Mapping[str, Any], page: Page) -> None:
    """What is wrong, and so the exit code 1, though the order does not show it."""
    records = [each for each in payload["extensions"] if each["name"] in payload["order"]["broken"]]
    if not records:
        return
    page.blank()
    page.line(("Something is wrong (exit code 1):", "red"))
    for each in records:
        faults = [hook["fault"] for hook in each["hooks"] if hook["fault"]]
        why = "; ".join([*filter(None, [each["reason"]]), *faults]) or "; ".join(each["warnings"])
        page.lines(f"{each['name']}: {each['status']}: {why}", indent=4)


def _order_texts(row: Mapping[str, Any]) -> tuple[str, str]:
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
        page.line("It counts for what starts from now on: a new session, a restarted gateway.")


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
    status = extension["status"]
    _banner(payload, page)
    page.line((printable(extension["name"]), "bold"), f"  {printable(extension['version'] or '')}")
    if extension["description"]:
        page.lines(extension["description"], indent=4)
    reason = f": {extension['reason']}" if extension["reason"] else ""
    _fact(page, "status", f"{status}{reason}", _STYLES.get(status, ""))
    if extension.get("changed_since"):
        page.line((_CHANGED, "yellow"), indent=4)
    _fact(page, "source", extension["source"] or "none: the configuration names it")
    if extension["path"]:
        _fact(page, "path", extension["path"])
    for place in extension["also_at"]:
        _fact(page, "also at", place)
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
    for warning in extension["warnings"]:
        _fact(page, "warning", warning, "yellow")
    _info_hooks(payload, page)
    _info_settings(payload, page)
    if payload["problems"]:
        page.line(("Problems", "bold"), indent=4)
        for problem in payload["problems"]:
            _problem(problem, page)


def _fact(page: Page, label: str, text: str, style: str = "") -> None:
    page.lines(f"{label + ':':<10}{text}", indent=4, style=style)


def _info_hooks(payload: Mapping[str, Any], page: Page) -> None:
    hooks = payload["extension"]["hooks"]
    page.line(("Registers", "bold"), indent=4)
    if payload["extension"]["reason"] == _NOT_LOADED:
        page.line(f"{_NOT_LOADED}; {page.prog('list --load')} loads it", indent=8)
    elif not hooks:
        page.line("nothing that is on", indent=8)
    if payload["hooks_off"]:
        page.line(f"off: {', '.join(payload['hooks_off'])}", indent=8)
    for hook in hooks:
        kind = "guard, " if hook["guard"] else ""
        tools = f", tools {', '.join(hook['tools'])}" if hook["tools"] is not None else ""
        page.lines(
            f"{hook['hook']}: {hook['handler']} ({kind}priority {hook['priority']}, "
            f"on failure {hook['on_error']}{tools})",
            indent=8,
        )
        page.lines(f"{hook['file']}:{hook['line']}", indent=12, style="dim")


def _info_settings(payload: Mapping[str, Any], page: Page) -> None:
    page.line(("Settings", "bold"), indent=4)
    if not payload["settings"]:
        page.line("none", indent=8)
    for setting in payload["settings"]:
        value = json.dumps(setting["value"], ensure_ascii=False, default=str)
        shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]} ... (all of it: --json)"
        page.lines(f"{setting['key']}: {shown}", indent=8)
        page.lines(f"from {setting['from']}", indent=12, style="dim")


# -- doctor ---------------------------------------------------------------------------------------


def _doctor(payload: Mapping[str, Any], page: Page) -> None:
    for severity in ("error", "warning", "note"):
        found = [each for each in payload["findings"] if each["severity"] == severity]
        if found:
            page.line((_counted(len(found), severity), f"bold {_STYLES[severity]}"))
            for finding in found:
                _finding(finding, page)
            page.blank()
    host = payload["hermes_agent"]
    checked = _counted(payload["checked"], "extension")
    about = f"{checked} checked, {f'hermes-agent {host}' if host else 'no hermes-agent here'}."
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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# -- install, uninstall ---------------------------------------------------------------------------


def _install(payload: Mapping[str, Any], page: Page) -> None:
    if payload["changed"]:
        page.line(("Installed.", "bold"))
        _changes(payload, page)
        if payload["folder_made"]:
            page.lines(f"made the folder {payload['folder']}", indent=4)
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
    else:
        page.line("Not installed; nothing was changed.")
    page.lines(f"Your extensions in {payload['folder']} and their settings stay as they are.")


_PAGES: Mapping[str, Callable[[Mapping[str, Any], Page], None]] = {
    "list": _list,
    "enable": _enable,
    "disable": _disable,
    "info": _info,
    "doctor": _doctor,
    "install": _install,
    "uninstall": _uninstall,
}
