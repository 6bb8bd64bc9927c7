"""What the model says in a canary's turn, and what came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_ext._values import frozen
from hermes_ext.confine import support
from hermes_ext.hosts.hermes.canary import marks
from hermes_ext.hosts.hermes.facts.tools import TOOLS
from hermes_ext.testing.model_server import ModelRequest, Reply, ToolUse

LAST_WORDS = "The canary is done."


def calls_in(project: Path) -> tuple[ToolUse, ...]:
    """One call of each way that a tool can take through Hermes, and one that is refused.

    Where this machine can confine, there is a command too, which tries what is not allowed to it.
    """
    todo = {"id": "1", "content": f"{marks.ASKED}{marks.RAW}", "status": "pending"}
    blocked = {"path": str(project / marks.BLOCKED_FILE), "content": "x"}
    held = f"echo x > '{project / marks.CONFINED_FILE}' || echo {marks.HELD}{marks.RAW}"
    confined = ToolUse("terminal", {"command": held}, "canary-confined")
    return (
        ToolUse("read_file", {"path": str(project / marks.ASKED_FILE)}, "canary-read"),
        ToolUse("todo", {"todos": [todo]}, "canary-todo"),
        ToolUse("write_file", blocked, "canary-write"),
        *([confined] if support().rung is not None else []),
    )


def furnish(project: Path) -> None:
    """The files that the calls are about."""
    for name, text in ((marks.ASKED_FILE, marks.ASKED), (marks.GIVEN_FILE, marks.GIVEN)):
        (project / name).write_text(f"{text}{marks.RAW}\n", encoding="utf-8")


class Player:
    """The model: one call for each request, of those tools that Hermes offers."""

    def __init__(self, project: Path) -> None:
        self._calls = calls_in(project)
        self.made: list[ToolUse] = []
        self.finished = False

    def __call__(self, request: ModelRequest) -> Reply:
        answered = {call_id for call_id, _ in request.tool_results}
        for each in self._calls:
            names = (each.name, *TOOLS[each.name].aliases)
            name = next((name for name in names if name in request.tool_names), each.name)
            call = replace(each, name=name)
            if call.id not in answered and call.name in request.tool_names:
                if call not in self.made:
                    self.made.append(call)
                return Reply(tool_calls=(call,))
        self.finished = True
        return Reply(LAST_WORDS)


@frozen
class Seen:
    """What came of one turn.

    fired: how often each hook fired, by hook and event. requests: what the model was asked. made:
    its calls. written: whether the refused call ran. seams: how the wraps stood at the turn's end.
    plugins: the loaded ones. failure: why the model did not come to its last words, None if it did.
    late: whether that is because it took too long. escaped: whether the confined command wrote.
    """

    fired: Mapping[tuple[str, str], int]
    requests: tuple[ModelRequest, ...]
    made: tuple[ToolUse, ...]
    written: bool
    seams: tuple[Mapping[str, Any], ...]
    plugins: tuple[str, ...]
    failure: str | None
    late: bool = False
    escaped: bool = False

    def results(self) -> dict[str, str]:
        """The text that the model saw for each of its calls."""
        return {call: text for request in self.requests for call, text in request.tool_results}


def records_in(file: Path) -> Counter[tuple[str, str]]:
    """How often each hook fired, by hook and event."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    rows = map(json.loads, text.splitlines())
    return Counter((row["hook"], row["event"]) for row in rows)


def standing_in(file: Path) -> dict[str, Any]:
    """What the canary's plugin told, if it came to that."""
    if not file.exists():
        return {"seams": [], "plugins": []}
    told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return told
