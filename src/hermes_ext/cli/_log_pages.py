"""What `log` and `why` print for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from hermes_ext._text import printable
from hermes_ext.cli._decisions import when
from hermes_ext.cli._explaining import confining, done, observed_in, says, was_answered
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import ACTION_STYLES, cut
from hermes_ext.hooks.table import ENDING

_LONGEST: Final = 160  # characters of a reason in a table, and of a setting's value
_CALL: Final = 60  # characters of a command, or of a change, in a table
_LABEL: Final = 14
_NARROW: Final = 40  # characters that a reason needs beside the rest
_ID: Final = 8  # characters of a turn's id


def log(payload: Mapping[str, Any], page: Page) -> None:
    if payload["note"]:
        page.lines(payload["note"], style="yellow")
    for line in payload["lines"]:
        row(line, page)


def row(line: Mapping[str, Any], page: Page) -> None:
    time = f"{_moment(line):%m-%d %H:%M:%S}"
    if "dropped" in line:
        page.line(f"{time}  ", (f"{line['dropped']} decisions could not be written", "yellow"))
        return
    if "action" not in line:
        page.line(f"{time}  ", (printable(str(line.get("error", line))), "yellow"))
        return
    action = "ask" if was_answered(line) else str(line["action"])
    told = " — ".join(filter(None, [cut(_what(line), _CALL), _who_and_why(line)]))
    cells = [
        (f"{time}  ", ""),
        (f"{printable(str(line.get('turn', '-'))[:_ID]):<{_ID}}  ", "dim"),
        (f"{printable(action):<13}  ", ACTION_STYLES.get(action, "")),
        (f"{printable(str(line.get('hook', '-'))):<21}  ", ""),
        (f"{printable(str(line.get('tool', '-'))):<12}  ", ""),
    ]
    left = None if page.width is None else page.width - sum(len(text) for text, _ in cells)
    if left is None or left >= _NARROW:
        page.line(*cells, cut(told, min(left or _LONGEST, _LONGEST)))
        return
    page.line(*cells)
    if told:
        page.line(cut(told, _LONGEST), indent=4)


def _who_and_why(line: Mapping[str, Any]) -> str:
    who = line.get("extension") or line.get("blocked_by")
    if who is None:
        observed = any(each.get("action") != "pass" for each in observed_in(line))
        return printable(says(line)) if observed else ""
    answered = was_answered(line)
    wanted = (line.get("asks") if answered else line.get("confines")) or ()
    reasons = dict.fromkeys(str(each.get("reason")) for each in wanted)
    told = line.get("message") or "; ".join(reasons)
    if answered and line.get("approved"):
        told = f"{told} (approved)"
    if not told and line.get("failure"):
        told = f"failed ({line['failure']})"
    return printable(f"{who}: {told}" if told else str(who))


def _what(line: Mapping[str, Any]) -> str:
    """From what to what it was changed, else the command."""
    changes = "; ".join(map(_changed, line.get("change") or ()))
    return printable(" ".join((changes or str(line.get("call") or "")).split()))


def _changed(change: Mapping[str, Any]) -> str:
    """One change in words: `command: ls → ls -l`."""
    if "more" in change:
        return f"and {change['more']} more"
    where = f"{change['argument']}: " if "argument" in change else ""
    if "from" in change or "to" in change:
        return f"{where}{change.get('from', '(nothing)')} → {change.get('to', '(nothing)')}"
    number = change.get("removed")
    removed = f"[{number} character{'' if number == 1 else 's'} removed]" if number else ""
    added = f"added {json.dumps(change['added'], ensure_ascii=False)}" if "added" in change else ""
    return where + ", ".join(filter(None, [removed, added]))


def why(payload: Mapping[str, Any], page: Page) -> None:
    """The last decision, or each of a turn with what every handler did; one fact in a line."""
    if payload["note"]:
        page.lines(payload["note"], style="yellow")
    decisions = payload["decisions"]
    if payload["turn"] is None:
        _one(decisions[0], page)
        return
    _turn(payload["turn"], decisions, page)


def _one(told: Mapping[str, Any], page: Page) -> None:
    line = told["decision"]
    page.line((printable(told["says"]), "bold"))
    _facts(told, page)
    _fact("Time", f"{_moment(line):%Y-%m-%d %H:%M:%S}", page)
    for label, key in (("Turn", "turn"), ("Session", "session"), ("Directory", "cwd")):
        if line.get(key):
            _fact(label, str(line[key]), page)
    if told["advice"]:
        _fact("To change it", told["advice"], page)
    if told["to_change"]:
        page.line("To change it:")
        for command in told["to_change"]:
            page.source(command, indent=2)


def _facts(told: Mapping[str, Any], page: Page, indent: int = 0) -> None:
    """Who decided what and why, by which settings; each value alone on its line, to be copied."""
    line = told["decision"]
    if told["extension"]:
        observed = line.get("extension") is None and line.get("blocked_by") is None
        _fact("Observed" if observed else "Decided by", told["extension"], page, indent)
    for label, text in (("Because", told["reason"]), ("Failure", line.get("failure"))):
        if text:
            page.fact(label, str(text), indent=indent, width=_LABEL)
    for label, text in _of_the_line(told):
        _fact(label, text, page, indent)
    if told["file"]:
        _fact("File", f"{told['file']}:{told['line']}", page, indent)
    for setting in told["settings"]:
        _setting(setting, page, indent)


def _of_the_line(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    line = told["decision"]
    for each in told["asked"]:
        label = "Asked too" if was_answered(line) else "Asked before"
        yield label, f"{each['extension']}/{each['handler']}: {each['reason']}"
    for each in line.get("missing") or ():
        yield "Missing", each
    yield from confining(line)
    if line.get("call"):
        yield "Call", line["call"]
    for change in line.get("change") or ():
        yield "Change", _changed(change)
    if line.get("too_long"):
        yield "Left out", f"the line has {line['too_long']} bytes, of which only the begin was read"
    if told["handler"]:
        yield "Handler", told["handler"]


def _setting(setting: Mapping[str, Any], page: Page, indent: int) -> None:
    _fact("Setting", setting["key"], page, indent)
    place = setting["file"] or setting["from"]
    if place or setting["value"] is not None:  # of ask_without_human the value alone is known
        _fact("Value", _value(setting), page, indent)
        if place:
            _fact("Set in", place, page, indent)
    elif setting["today"] is not None:
        _fact("Value", "not in this line, which an earlier version wrote", page, indent)
    today = setting["today"]
    if today is not None:
        _fact("Value today", _value(today), page, indent)
        _fact("Set today in", today["file"] or today["from"], page, indent)


def _value(setting: Mapping[str, Any]) -> str:
    return cut(json.dumps(setting["value"], ensure_ascii=False, default=str), _LONGEST)


def _fact(label: str, text: str, page: Page, indent: int = 0) -> None:
    """One fact in one line, however long it is."""
    page.source(f"{label + ':':<{_LABEL}}{text}", indent=indent)


def _turn(turn: str, decisions: Sequence[Mapping[str, Any]], page: Page) -> None:
    first = decisions[0]["decision"]
    session = printable(str(first.get("session", "-")))
    page.line(("Turn ", ""), (turn, "bold"), f", session {session}")
    if first.get("cwd"):
        page.line("in ", printable(str(first["cwd"])))
    for told in decisions:
        line = told["decision"]
        page.blank()
        action = "ask" if was_answered(line) else str(line.get("action"))
        page.line(
            (f"{_moment(line):%H:%M:%S}  ", "dim"),
            (printable(str(line.get("hook"))), "bold"),
            "  ",
            (printable(told["says"]), ACTION_STYLES.get(action, "")),
        )
        _facts(told, page, indent=10)
        steps = line.get("steps") or _known_steps(line)
        for number, step in enumerate(steps, 1):
            _step(step, page, last=number == len(steps))
    if not any(told["decision"].get("steps") for told in decisions):
        page.blank()
        page.lines(
            "Handlers that passed are not in the log. To log them, set extensions.log to steps.",
            style="dim",
        )


def _known_steps(line: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The handlers that did something; who ended the chain is the last one.

    None where the decider was the only one: the facts above say all of it.
    """
    before = line.get("by") or []
    if not before or not line.get("handler"):
        return before
    keys = ("extension", "handler", "file", "line", "changed")
    action = "ask" if was_answered(line) else line.get("action")
    decider = {key: line[key] for key in keys if key in line} | {"action": action}
    ends = line.get("action") in ENDING
    return [*before, decider] if ends else [decider, *before]


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
        (printable(", ".join(marks)), ACTION_STYLES.get(action, "")),
        f"  {printable(str(step['file']))}:{step.get('line')}" if step.get("file") else "",
        indent=10,
    )
    error = step.get("error")
    if isinstance(error, Mapping):
        page.lines(f"failed: {error.get('message') or error.get('kind')}", indent=13, style="red")


def _moment(line: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(when(line))
