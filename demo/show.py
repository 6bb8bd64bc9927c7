"""Shows the decision log while it is being written."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.table import Table
from rich.text import Text

Line = dict[str, Any]

_LOOK_EVERY_SECONDS = 0.05
_LABEL_WIDTH = 12


class Decisions:
    """Follows a decision log and prints each line of it as it comes; a context manager.

    lines: what has been read so far; all of it after the end of the context. headings: what is
    printed before which tool call, the first being 1.
    """

    def __init__(
        self, log: Path, console: Console, headings: Mapping[int, str] | None = None
    ) -> None:
        self.lines: list[Line] = []
        self._headings = headings or {}
        self._calls = 0
        self._log = log
        self._console = console
        self._read = 0
        self._told: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._read)
            *whole, _unfinished = file.read().split(b"\n")
        for raw in whole:
            self._read += len(raw) + 1
            self.lines.append(json.loads(raw))
            self._print(self.lines[-1])

    def _print(self, line: Line) -> None:
        if line["hook"] == "intercept_tool_call":
            self._calls += 1
            if self._calls in self._headings:
                self._console.print(Text(f"{self._headings[self._calls]}\n", style="bold"))
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", width=2, style="dim")
        table.add_column(width=_LABEL_WIDTH)
        table.add_column(overflow="fold")
        what, *rows = self._rows(line)
        table.add_row(Text(str(len(self.lines))), *what)
        for row in rows:
            table.add_row("", *row)
        self._console.print(table)
        self._console.print()

    def _rows(self, line: Line) -> list[tuple[Text, Text]]:
        if line["hook"] == "transform_user_input":
            return [_row("input", line["payloads"]["in"]), *_input_rows(line)]
        if line["hook"] == "before_llm_call":
            return [_row("request", "to the model"), *self._request_rows(line)]
        return [_row("tool call", _call(line)), *_call_rows(line)]

    def _request_rows(self, line: Line) -> list[tuple[Text, Text]]:
        added = line.get("injections", {}).get("system", [])
        if not added:
            return [_row("unchanged", "")]
        rows = []
        for each in added:
            text = "the same as before" if each["text"] in self._told else each["text"]
            self._told.add(each["text"])
            rows.append(_row("added", _by(each["extension"], text), "bold blue"))
        return rows


def _input_rows(line: Line) -> list[tuple[Text, Text]]:
    if line["action"] != "rewrite":
        return [_row("unchanged", "this is no request to implement something")]
    by = next(step["extension"] for step in line["steps"] if step.get("changed"))
    return [_row("rewritten", _by(by, line["payloads"]["out"]), "bold magenta")]


def _call_rows(line: Line) -> list[tuple[Text, Text]]:
    if line["action"] == "block":
        return [_row("BLOCKED", _by(line["blocked_by"], line["message"]), "bold red")]
    if line["action"] == "confine":
        why = line["confines"][0]
        return [_row("confined", _by(why["extension"], why["reason"]), "bold yellow")]
    return [_row("allowed", "", "bold green")]


def _call(line: Line) -> str:
    args = line["payloads"]["in"]
    shown = args.get("path") or args.get("command") or json.dumps(args)
    return f"{line.get('tool')} {shown}"


def _by(extension: str, text: str) -> Text:
    return Text.assemble((f"[{extension}] ", "dim"), text)


def _row(label: str, text: str | Text, style: str = "") -> tuple[Text, Text]:
    return Text(label, style=style), Text(text) if isinstance(text, str) else text
