"""What `test` and `replay` print for people: values as diffs, verdicts side by side."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hermes_ext._text import printable
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import ACTION_STYLES, cut

_DIFF: Final = {"+": "green", "-": "red", "@": "cyan"}
_LONGEST: Final = 200  # characters of a value in one line
_MOST: Final = 40  # lines of a diff, and changes of a replay
_AROUND: Final = 2  # lines around a change


# -- test -----------------------------------------------------------------------------------------


def test(payload: Mapping[str, Any], page: Page) -> None:
    """What went into each handler and what came out."""
    record = payload["extension"]
    where = f"  {record['path']}" if record["path"] else ""
    with_all = ", with everything else that is on" if payload["chain"] else ""
    page.line(
        (printable(record["name"]), "bold"), printable(f" ({record['source']}){where}"), with_all
    )
    for setting in payload["settings"]:
        value = cut(_json(setting["value"]), _LONGEST)
        page.line(printable(f"{setting['key']} = {value} ({setting['from']})"), indent=2)
    for notice in (*payload["notices"], *filter(None, [payload["refusal"]])):
        page.lines(notice, style="yellow")
    if not record["loaded"]:
        page.lines(f"{record['status']}: {record['reason']}", style="red")
        return
    for event in payload["events"]:
        page.blank()
        _event(event, page)
    for each in payload["not_called"]:
        page.blank()
        page.line(
            (printable(each["handler"]), "bold"),
            printable(f"  was not called: {each['why']}"),
            printable(f" ({', '.join(each['tools'])})" if each["tools"] else ""),
            printable(f"  {each['file']}:{each['line']}"),
        )
    if not payload["events"] and not payload["not_called"]:
        page.blank()
        page.lines("It has no handler for any of these events.", style="yellow")
    page.blank()
    failed = payload["failed"]
    told = f"{_number(len(payload['events']), 'event')}, "
    page.line(
        told, (f"{failed:,} failed" if failed else "no handler failed", "red" if failed else "")
    )


def _event(event: Mapping[str, Any], page: Page) -> None:
    verdict = event["verdict"]
    page.line(
        (printable(event["label"]), "bold"),
        "  ",
        (printable(event["hook"]), "dim"),
        "  ",
        (_action(verdict), ACTION_STYLES.get(verdict["action"], "")),
    )
    if "tool_args" in event:
        page.line(("of   ", "dim"), printable(cut(_json(event["tool_args"]), _LONGEST)), indent=2)
    page.line(("in   ", "dim"), printable(cut(_in_one_line(event["input"]), _LONGEST)), indent=2)
    for handler in event["handlers"]:
        _handler(handler, page)


def _handler(handler: Mapping[str, Any], page: Page) -> None:
    action = handler["action"]
    would = "would have: " if handler.get("observed") else ""
    page.line(
        (printable(f"{handler['extension']}/{handler['handler']}"), "bold"),
        "  ",
        (f"{would}{action}", ACTION_STYLES.get(action, "")),
        "  guard" if handler["guard"] else "",
        f"  {handler.get('duration_ns', 0) / 1e6:.2f} ms",
        (printable(f"  {handler.get('file', '')}:{handler.get('line', 0)}"), "dim"),
        indent=2,
    )
    if handler.get("skipped"):
        page.line(f"was not called ({handler['skipped']})", indent=4)
    if handler.get("reason"):
        page.lines(str(handler["reason"]), indent=4)
    if handler.get("bounds"):
        here = handler["may_change"]
        page.lines(_may_change(handler["bounds"] | {"writable": here["writable"]}), indent=4)
        for each in here["left_out"]:
            page.lines(f"not writable: {each['path']}: {each['why']}", indent=4, style="yellow")
    if handler["setting"]:
        page.line(printable(f"by {', '.join(handler['setting'])}"), indent=4)
    for text in handler["injected"]:
        for line in text.splitlines() or [""]:
            page.line((printable(f"+ {line}"), "green"), indent=4)
    if handler["changed"] and handler["out"] is not None:
        _diff(handler["in"], handler["out"], page, indent=4)
    error = handler.get("error")
    if error:
        page.lines(f"failed: {error['message']}", indent=4, style="red")
        page.lines(error["traceback"], indent=4, style="dim")
    looked = _looked_at(handler["looked_at"])
    if looked:
        page.line((printable(f"looked at {looked}"), "dim"), indent=4)


# -- replay ---------------------------------------------------------------------------------------


def replay(payload: Mapping[str, Any], page: Page) -> None:
    """The verdicts that changed, then and now, and how many did not."""
    for notice in (*payload["notices"], *filter(None, [payload["refusal"]])):
        page.lines(notice, style="yellow")
    if payload["broken"]:
        named = ", ".join(payload["broken"])
        page.lines(f"Not loaded, so without a say here: {named}", style="red")
    shown = payload["changed"] if page.width is None else payload["changed"][-_MOST:]
    for change in shown:
        _change(change, page)
    left = len(payload["changed"]) - len(shown)
    if left:
        page.line(f"… and {left:,} earlier ones; --json has all of them")
    counts = f"{payload['compared']:,} replayed, {payload['unchanged']:,} unchanged"
    page.line(
        f"{counts}, ",
        (f"{len(payload['changed']):,} changed", "bold" if payload["changed"] else ""),
        f", in {payload['seconds']:.1f} s",
    )
    disk = payload["looked_at_the_disk"]
    if disk:
        page.lines(f"{disk:,} were judged by what is on the disk now, not by what was there then.")
    for each in payload["not_replayable"]:
        page.lines(f"{each['count']:,} cannot be replayed: {each['reason']}", style="yellow")
    if payload["note"]:
        page.lines(payload["note"])


def _change(change: Mapping[str, Any], page: Page) -> None:
    then, now = change["then"], change["now"]
    page.line(
        (printable(str(change["time"])), "dim"),
        (printable(f"  {change['hook']}"), "bold"),
        printable(f"  {change['tool']}" if change["tool"] else ""),
        (printable(f"  turn {str(change['turn'])[:8]}"), "dim"),
    )
    page.line(("on    ", "dim"), printable(cut(_in_one_line(change["input"]), _LONGEST)), indent=2)
    for label, verdict in (("then  ", then), ("now   ", now)):
        where = f"  {verdict['file']}:{verdict['line']}" if verdict["file"] else ""
        page.line(
            (label, "dim"),
            (_in_words(verdict), ACTION_STYLES.get(verdict["action"], "")),
            (printable(where), "dim"),
            indent=2,
        )
    before, after = _value(then, change), _value(now, change)
    if before != after and "block" not in (then["action"], now["action"]):
        _diff(before, after, page, indent=8)
    looked = _looked_at(change["looked_at"])
    if looked:
        page.line((printable(f"this depends on {looked}, as it is now"), "yellow"), indent=2)
    if change["needs_past"]:
        told = "this depends on session state from before these events, which is not in the log"
        page.line((told, "yellow"), indent=2)
    page.blank()


def _value(verdict: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
    return change["input"] if verdict["value"] is None else verdict["value"]


def _action(verdict: Mapping[str, Any]) -> str:
    by = f" by {verdict['extension']}" if verdict["extension"] else ""
    return printable(f"{verdict['action']}{by}")


def _in_words(verdict: Mapping[str, Any]) -> str:
    """The action, who, why, by which setting."""
    told = _action(verdict)
    if verdict["failure"]:
        told += f" (its handler failed: {verdict['failure']})"
    if verdict["message"]:
        told += f": {verdict['message']}"
    if verdict["setting"]:
        told += f" [{', '.join(map(str, verdict['setting']))}]"
    for each in verdict["confines"]:
        # The one who decided has just been named.
        who = "" if each["extension"] == verdict["extension"] else f"{each['extension']}: "
        told += f"; {who}{_may_change(each)}"
    told += "".join(
        f"; {each['extension']} adds {cut(_in_one_line(each['text']), 60)}"
        for each in verdict["injections"]
    )
    told += "".join(
        f"; {each['extension']} would have: {each['action']}"
        + (f" ({each['reason']})" if each["reason"] else "")
        for each in verdict["would_have"]
    )
    return printable(told)


def _may_change(bounds: Mapping[str, Any]) -> str:
    """What a confined call may change, in words."""
    told = f"may change {', '.join(bounds['writable'] or ()) or 'nothing'}"
    return f"{told}, without a network" if bounds["network"] == "none" else told


# -- values ---------------------------------------------------------------------------------------


def _diff(before: Any, after: Any, page: Page, *, indent: int) -> None:
    lines = [*diff(before, after)]
    for line in lines[:_MOST]:
        page.source(line, indent=indent, style=_DIFF.get(line[:1], ""))
    if len(lines) > _MOST:
        page.line(f"… {len(lines) - _MOST:,} more lines", indent=indent)
    if not lines:
        page.line("(differs only in what is left out here)", indent=indent)


def diff(before: Any, after: Any) -> Iterator[str]:
    """The difference of two values: of mappings by key, of lists by member, of texts by line."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _of_mappings(before, after)
    elif isinstance(before, Sequence) and not isinstance(before, str):
        yield from _unified(_members(before), _members(after))
    else:
        yield from _unified(_in_lines(before), _in_lines(after))


def _of_mappings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if key in before and key in after and old == new:
            continue
        if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
            yield f"@ {key}"
            yield from _unified(_in_lines(old), _in_lines(new))
            continue
        if key in before:
            yield f"- {key}: {_json(old)}"
        if key in after:
            yield f"+ {key}: {_json(new)}"


def _unified(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    found = difflib.unified_diff(before, after, lineterm="", n=_AROUND)
    for number, line in enumerate(found):
        if number > 1:  # the names of two files come first
            yield line


def _members(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return _in_lines(value)
    return [_json(each) for each in value]


def _in_lines(value: Any) -> list[str]:
    return value.splitlines() if isinstance(value, str) else [_json(value)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _in_one_line(value: Any) -> str:
    if isinstance(value, Mapping):  # each key is seen, however long a file's content is
        told = ", ".join(f"{_json(key)}: {cut(_json(each), 80)}" for key, each in value.items())
        return f"{{{told}}}"
    return " ⏎ ".join(value.splitlines()) if isinstance(value, str) else _json(value)


def _looked_at(looked: Mapping[str, Sequence[str]]) -> str:
    told = [*looked["files"]]
    told += [f"the program {each}" for each in looked["programs"]]
    told += [f"the network ({each})" for each in looked["network"]]
    more = len(told) - 4
    return ", ".join(told[:4]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
