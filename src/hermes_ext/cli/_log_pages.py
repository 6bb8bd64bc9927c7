"""What `log` and `why` print for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from hermes_ext._hooks.text import printable
from hermes_ext.cli._decisions import when
from hermes_ext.cli._explaining import done, says
from hermes_ext.cli._page import Page

_STYLES: Final = {
    "block": "red",
    "answer": "yellow",
    "ask": "yellow",
    "rewrite": "magenta",
    "inject_system": "cyan",
    "inject_user": "cyan",
    "pass": "dim",
}
_LONGEST: Final = 160  # characters of a reason in a table, and of a setting's value
_NARROW: Final = 40  # characters that a reason needs beside the rest
_ID: Final = 8  # characters of a turn's id


def log(payload: Mapping[str, Any], page: Page) -> None:
    """The lines, one for each decision."""
    if payload["note"]:
        page.lines(payload["note"], style="yellow")
    for line in payload["lines"]:
        row(line, page)


def row(line: Mapping[str, Any], page: Page) -> None:
    """One line of the log."""
    time = f"{_moment(line):%m-%d %H:%M:%S}"
    if "dropped" in line:
        page.line(f"{time}  ", (f"{line['dropped']} decisions could not be written", "yellow"))
        return
    if "action" not in line:
        page.line(f"{time}  ", (printable(str(line.get("error", line))), "yellow"))
        return
    action = "ask" if line.get("asks") else str(line["action"])
    told = _who_and_why(line)
    cells = [
        (f"{time}  ", ""),
        (f"{printable(str(line.get('turn', '-'))[:_ID]):<{_ID}}  ", "dim"),
        (f"{printable(action):<13}  ", _STYLES.get(action, "")),
        (f"{printable(str(line.get('hook', '-'))):<21}  ", ""),
        (f"{printable(str(line.get('tool', '-'))):<12}  ", ""),
    ]
    left = None if page.width is None else page.width - sum(len(text) for text, _ in cells)
    if left is None or left >= _NARROW:
        page.line(*cells, _cut(told, min(left or _LONGEST, _LONGEST)))
        return
    page.line(*cells)
    if told:
        page.line(_cut(told, _LONGEST), indent=4)


def _who_and_why(line: Mapping[str, Any]) -> str:
    who = line.get("extension") or line.get("blocked_by")
    if who is None:
        return printable(says(line)) if _is_observed(line) else ""
    told = line.get("message") or "; ".join(
        str(each.get("reason")) for each in line.get("asks") or ()
    )
    if line.get("asks") and line.get("action") != "block":
        told = f"{told} (approved)"
    return printable(f"{who}: {told}" if told else str(who))


def _is_observed(line: Mapping[str, Any]) -> bool:
    others = [*(line.get("by") or ()), *(line.get("steps") or ())]
    return any(each.get("observed") and each.get("action") != "pass" for each in others)


def why(payload: Mapping[str, Any], page: Page) -> None:
    """The last decision in two lines, or each of a turn with what every handler did."""
    if payload["note"]:
        page.lines(payload["note"], style="yellow")
    decisions = payload["decisions"]
    if payload["turn"] is None:
        _in_two_lines(decisions[0], page)
        return
    _turn(payload["turn"], decisions, page)


def _in_two_lines(told: Mapping[str, Any], page: Page) -> None:
    line = told["decision"]
    reason = f": {told['reason']}" if told["reason"] else ""
    moment = f" ({_moment(line):%Y-%m-%d %H:%M:%S}, turn {str(line.get('turn', '-'))[:_ID]})"
    page.line((printable(told["says"]), "bold"), printable(f"{reason}{moment}"))
    page.line(printable("; ".join(_by(told))))


def _by(told: Mapping[str, Any]) -> Iterator[str]:
    settings = [*map(_setting, told["settings"])]
    if settings:
        yield f"Setting{'s' if len(settings) > 1 else ''} {', '.join(settings)}"
    else:
        yield "No setting is named"
    if told["handler"]:
        place = f"{told['file']}:{told['line']}" if told["file"] else "a place that is not known"
        yield f"{told['handler']} in {place}"
    if told["to_change"]:
        yield f"to change it: {', or '.join(told['to_change'])}"


def _setting(setting: Mapping[str, Any]) -> str:
    if setting["from"] is None:
        return str(setting["key"])
    value = _cut(json.dumps(setting["value"], ensure_ascii=False, default=str), _LONGEST)
    return f"{setting['key']} = {value} ({setting['from']})"


def _turn(turn: str, decisions: Sequence[Mapping[str, Any]], page: Page) -> None:
    first = decisions[0]["decision"]
    session = printable(str(first.get("session", "-")))
    page.line(("Turn ", ""), (turn, "bold"), f", session {session}")
    if first.get("cwd"):
        page.line("in ", printable(str(first["cwd"])))
    for told in decisions:
        line = told["decision"]
        page.blank()
        action = "ask" if line.get("asks") else str(line.get("action"))
        page.line(
            (f"{_moment(line):%H:%M:%S}  ", "dim"),
            (printable(str(line.get("hook"))), "bold"),
            "  ",
            (printable(told["says"]), _STYLES.get(action, "")),
        )
        if told["reason"]:
            page.lines(told["reason"], indent=10)
        steps = line.get("steps") or [*_known_steps(line)]
        for number, step in enumerate(steps, 1):
            _step(step, page, last=number == len(steps))
        for setting in told["settings"]:
            page.line(f"setting {printable(_setting(setting))}", indent=10)
    if not any(told["decision"].get("steps") for told in decisions):
        page.blank()
        page.lines(
            "Handlers that let pass are not in the log; with extensions.log: steps they are.",
            style="dim",
        )


def _known_steps(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if line.get("handler"):
        keys = ("extension", "handler", "file", "line", "changed")
        action = "ask" if line.get("asks") else line.get("action")
        yield {key: line[key] for key in keys if key in line} | {"action": action}
    yield from line.get("by") or ()


def _step(step: Mapping[str, Any], page: Page, *, last: bool) -> None:
    action = str(step.get("action"))
    told = action if not step.get("observed") else f"would have {done(action, '').strip()}"
    marks = [
        f"was not called ({step['skipped']})" if step.get("skipped") else told,
        *(["guard"] if step.get("guard") else []),
        *(["changed the value"] if step.get("changed") else []),
    ]
    page.line(
        "└─ " if last else "├─ ",
        (printable(f"{step.get('extension')}/{step.get('handler')}"), "bold"),
        "  ",
        (printable(", ".join(marks)), _STYLES.get(action, "")),
        f"  {printable(str(step['file']))}:{step.get('line')}" if step.get("file") else "",
        indent=10,
    )
    error = step.get("error")
    if isinstance(error, Mapping):
        page.lines(f"failed: {error.get('message') or error.get('kind')}", indent=13, style="red")


def _moment(line: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(when(line))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
