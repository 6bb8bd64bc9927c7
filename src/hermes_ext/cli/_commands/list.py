"""`list`: what is installed, and whether it is on."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._options import add
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import (
    CHANGED,
    STYLES,
    banner,
    place_and_message,
    problem,
    unknown,
    warnings,
)
from hermes_ext.cli._values import hook
from hermes_ext.hooks.source import OWN

if TYPE_CHECKING:
    from hermes_ext.cli._request import Request, Result

_REFUSED = "Tool calls are refused because "
_WIDEST = 28  # characters of a column
_NEXT_FAULT = re.compile(r"; (?=(?:/|~|[A-Za-z]:\\)[^;]*\.yaml(?::\d+)?: )")
_COLUMNS = ("name", "version", "source")


def arguments(command: ArgumentParser) -> None:
    told = "also hidden files, __pycache__, README, LICENSE and CHANGELOG of extensions folders"
    add(command, "--all", told, dest="every")
    add(command, "--load", "load everything in a child process and show what comes of it")
    told = "the handlers of a hook in the order in which they run, and why (implies --load)"
    add(command, "--order HOOK", told, type=hook)
    _options.deadline(command)


def work(request: Request) -> Result:
    """Everything installed; with `load` or `order` as a child process loads it now."""
    from hermes_ext.cli import _listing

    return _listing.list_all(request)


def page(payload: Mapping[str, Any], page: Page) -> None:
    extensions = payload["extensions"]
    banner(payload, page)
    if "order" in payload:
        _order(payload["order"], page)
    else:
        if not payload["readable"]:
            extensions = [*map(unknown, extensions)]
        _table(extensions, page, told=(payload["project"] or {}).get("reason"))
    _broken(payload, page)
    reasons = "\n".join(extension["reason"] for extension in extensions)
    problems = [each for each in payload["problems"] if place_and_message(each) not in reasons]
    if problems:
        page.blank()
        page.line(("Problems", "bold"))
        for each in problems:
            problem(each, page)
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
    late = "the import did not finish within"
    if payload["failure"] or any(str(each["reason"]).startswith(late) for each in extensions):
        page.line("If it only takes its time: --deadline SECONDS gives it longer.")
    if "order" not in payload:
        _what_next(payload, page)


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
    status = (_status(extension), STYLES.get(extension["status"], ""))
    if widths:
        cells = [cell.ljust(width) for cell, width in zip((name, *others), widths, strict=True)]
        page.line((cells[0], "bold"), "  ", cells[1], "  ", cells[2], "  ", status)
    else:
        page.line((name, "bold"))
        page.line(f"{'  '.join(others)}  ", status, indent=4)
    if extension.get("changed_since"):
        page.line((CHANGED, "yellow"), indent=4)
    if extension["reason"]:
        page.lines(_NEXT_FAULT.sub("\n", extension["reason"]), indent=4)
    if extension["hooks"]:
        page.line(_hooks(extension["hooks"]), indent=4)
    if extension["commands"]:
        page.line(", ".join(f"/{each['name']}" for each in extension["commands"]), indent=4)
    if extension["hooks_off"]:
        page.line(f"off: {', '.join(extension['hooks_off'])}", indent=4)
    for each in extension["hooks"]:
        if each["fault"]:
            page.lines(f"error: {each['handler']}: {each['fault']}", indent=4, style="red")
    for warning in warnings(extension):
        page.lines(f"warning: {warning}", indent=4, style="yellow")


def _status(extension: Mapping[str, Any]) -> str:
    return str(extension["status"]) + (" (required)" if extension["required"] else "")


def _hooks(hooks: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{hook['hook']} {hook['priority']}{' guard' if hook['guard'] else ''}" for hook in hooks
    )


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
