"""What `trust` and `untrust` print for people."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.filesize import decimal

from hermes_ext._text import printable
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import counted

_MOST = 30  # files, or settings
_MOST_LINES = 120  # of all diffs together
_LONGEST = 300  # characters of a line of a diff
_LONGEST_VALUE = 160
_HEADERS = 2  # lines of a diff that name its file
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_KIND_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}
_STANDINGS = {
    "trusted": ("trusted", "green"),
    "changed": ("not used until you trust it again", "yellow"),
    "untrusted": ("not trusted", "yellow"),
    "refused": ("cannot be used", "red"),
    "gone": ("gone", "dim"),
}
QUESTION = "Trust this? [y/N] "


def trust(payload: Mapping[str, Any], page: Page) -> None:
    """What `trust` found and did, in whichever of its forms."""
    if "projects" in payload:
        _all(payload, page)
    elif "files" not in payload:
        page.source(payload["digest"])
    else:
        if not payload["asked"]:
            what_is_there(payload, page)
        _outcome(payload, page)


def what_is_there(payload: Mapping[str, Any], page: Page) -> None:
    """What is to be trusted, and what changed in it."""
    page.line("Project ", (payload["root"], "bold"))
    _line(page, f"extensions: {', '.join(payload['names']) or 'none'}", indent=4)
    page.line(f"digest: {payload['digest']}", indent=4)
    page.blank()
    _files(payload, page)
    _settings(payload, page)
    for place in payload["same_content_at"]:
        _line(page, f"The very same content is trusted at {place}.")
    if payload["was"] == "changed":
        _since(payload, page)
    elif payload["changes"]:
        page.line(("All that is in it", "bold"))
        _diffs(payload["changes"], page)
    elif payload["was"] == "untrusted" and not payload["recorded"]:
        root = shlex.quote(payload["root"])
        page.line(f"To read all of it first: {page.prog('trust --diff --full')} {root}")


def _files(payload: Mapping[str, Any], page: Page) -> None:
    files = payload["files"]
    count = counted(len(files), "file")
    page.line((f"{count} in {payload['folder']}, {decimal(payload['size'])}", "bold"))
    shown = _first(files, page)
    sizes = [decimal(each["size"]) for each in shown]
    width = max(map(len, sizes), default=0)
    for each, size in zip(shown, sizes, strict=True):
        _line(page, f"{size:>{width}}  {each['path']}", indent=4)
    _rest(files, shown, page)
    page.blank()


def _settings(payload: Mapping[str, Any], page: Page) -> None:
    if payload["settings"]:
        page.line(("extensions.yaml sets, as far as your config.yaml lets it", "bold"))
    shown = _first(payload["settings"], page)
    for each in shown:
        value = json.dumps(each["value"], ensure_ascii=False, default=str)
        value = value if page.full else _cut(value, _LONGEST_VALUE)
        _line(page, f"{each['key']}: {value}", indent=4)
    _rest(payload["settings"], shown, page)
    for problem in payload["problems"]:
        _line(page, f"warning: {_told(problem)}", indent=4, style="yellow")
    if payload["settings"] or payload["problems"]:
        page.blank()


def _told(problem: Mapping[str, Any]) -> str:
    line = "" if problem["line"] is None else f" line {problem['line']}"
    key = f"{problem['key']}: " if problem["key"] else ""
    return f"extensions.yaml{line}: {key}{problem['message']}"


def _since(payload: Mapping[str, Any], page: Page) -> None:
    page.line((f"Changed since you trusted it ({_day(payload['since'])})", "bold"))
    if payload["changes"] is None:
        page.line(
            "What changed cannot be shown: of so large a tree no copy was kept, or it is damaged.",
            indent=4,
        )
        page.blank()
        return
    shown = _first(payload["changes"], page)
    for change in shown:
        kind = change["kind"]
        page.line((f"{kind:<8}", _KIND_STYLES.get(kind, "")), f" {change['path']}", indent=4)
    _rest(payload["changes"], shown, page)
    page.blank()
    _diffs(payload["changes"], page)


def _diffs(changes: Iterable[Mapping[str, Any]], page: Page) -> None:
    """The diffs one after the other, up to so many lines and so long ones."""
    room = _MOST_LINES
    cut = 0
    for change in changes:
        lines = _lines_of(change)
        shown = lines if page.full else lines[:room]
        for number, line in enumerate(shown):
            style = "bold" if number < _HEADERS else _DIFF_STYLES.get(line[:1], "")
            page.source(line if page.full else _cut(line, _LONGEST), style=style)
        room -= len(shown)
        cut += len(lines) - len(shown)
    if cut:
        page.line((f"... {cut} more lines; --full shows all", "yellow"))
    page.blank()


def _lines_of(change: Mapping[str, Any]) -> Sequence[str]:
    if change["diff"] is None:
        return [f"{change['path']}: {change['kind']}; no text, so no lines to show"]
    # Not splitlines(): a form feed within a line must not look like the end of it.
    lines = str(change["diff"]).removesuffix("\n").split("\n")
    return [f"{line[:1]}{line[1:].expandtabs(4)}" for line in lines]


def _outcome(payload: Mapping[str, Any], page: Page) -> None:
    root = shlex.quote(payload["root"])
    if payload["recorded"]:
        page.line(("Trusted.", "bold green"), " Takes effect on the next turn.")
        page.line(f"To take it back: {page.prog('untrust')} {root}")
    elif payload["was"] == "trusted":
        page.line((f"Trusted since {_day(payload['since'])}; nothing has changed.", "green"))
    elif payload["pinned"]:
        page.line(("Trusted, because $HERMES_EXT_TRUST names its digest.", "green"))
    elif payload["asked"]:
        page.line(("Not trusted; nothing was recorded, and nothing of it is used.", "yellow"))
    else:
        told = "Not trusted as it is now." if payload["was"] == "changed" else "Not trusted."
        page.line((told, "yellow"), f" To trust it: {page.prog('trust')} {root}")
    for note in payload["notes"]:
        _line(page, f"Note: {note}", style="yellow")


def _all(payload: Mapping[str, Any], page: Page) -> None:
    for entry in payload["projects"]:
        text, style = _STANDINGS[entry["standing"]]
        if entry["standing"] == "trusted" and not entry["reason"]:
            text += "; nothing has changed"
        page.line((entry["root"], "bold"))
        _line(page, ": ".join(filter(None, (text, entry["reason"]))), indent=4, style=style)
        names = ", ".join(entry["names"]) or "no extension, only settings"
        _line(page, f"since {_day(entry['since'])}: {names}", indent=4)
    if not payload["projects"]:
        page.line("No project is trusted.")
    for pin in payload["pins"]:
        _line(page, f"$HERMES_EXT_TRUST trusts, wherever it lies: {pin}")


def untrust(payload: Mapping[str, Any], page: Page) -> None:
    if payload["removed"]:
        page.line(("No longer trusted: ", "bold"), payload["root"])
        page.line("A running session keeps to that from its next turn on.")
    else:
        _line(page, f"{payload['root']} was not trusted; nothing was changed.")
        page.line(f"What is trusted: {page.prog('trust --list')}")
    for note in payload["notes"]:
        _line(page, f"Note: {note}", style="yellow")


def _line(page: Page, text: str, *, indent: int = 0, style: str = "") -> None:
    """One line, whatever a project has in it: a line of its own would seem to be ours."""
    page.line((printable(text), style), indent=indent)


def _first(items: Sequence[Any], page: Page) -> Sequence[Any]:
    return items if page.full else items[:_MOST]


def _rest(items: Sequence[Any], shown: Sequence[Any], page: Page) -> None:
    if len(shown) < len(items):
        page.line((f"... {len(items) - len(shown)} more; --full shows all", "yellow"), indent=4)


def _day(at: str | None) -> str:
    return printable(at or "")[:10]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} ... (all of it: --full)"
