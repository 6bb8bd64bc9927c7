"""Files of events, and the samples: what is one, and what is told of what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.replay.recording import Recording

from hermes_ext import LLMRequest, ToolCall, ToolResult, UserInput
from hermes_ext.hooks.table import HookName
from hermes_ext.replay.events import EventError, of_file, samples


def test_the_samples_are_of_every_hook() -> None:
    """In turns of their own, so that none meets what another left."""
    assert {each.event.hook for each in samples()} == {*HookName}
    turns = [each.context["turn_id"] for each in samples()]
    assert len(set(turns)) == len(turns)


def test_every_key_arrives(tmp_path: Path) -> None:
    """In YAML and in JSON, one event or a list; what the turn knows stands beside it."""
    args = {"path": "a", "n": [1, None, 1.5]}
    told = [
        {"hook": "intercept-tool-call", "tool_name": "t", "tool_args": args, "tool_call_id": "c"},
        {"hook": "intercept_tool_call", "tool_name": "t", "tool_args": {}, "read_only": True},
        {"hook": "transform_tool_result", "tool_name": "t", "result": "r", "status": "error",
         "duration_ms": 3, "tool_args": None},
        {"hook": "transform_user_input", "user_message": "m", "command": "skill", "cwd": "/x",
         "interactive": False, "turn_number": 2, "session_id": "s", "turn_id": "own"},
        {"hook": "transform_user_input", "user_content": [{"type": "text", "text": "part"}]},
        {"hook": "before_llm_call", "messages": [], "system_prompt": "s", "api_call_count": 2,
         "request_id": "r"},
    ]  # fmt: skip
    file = tmp_path / "events.json"
    file.write_text(json.dumps(told, indent=1))

    events = of_file(file)

    assert [each.event for each in events] == [
        ToolCall("t", args, "c"),
        ToolCall("t", {}, read_only=True),
        ToolResult("t", {}, "", "r", "error", 3),
        UserInput("m", None, "skill"),
        UserInput("part", [{"type": "text", "text": "part"}]),
        LLMRequest([], "s", 2, "r"),
    ]
    own = {"interactive": False, "turn_number": 2, "session_id": "s", "turn_id": "own"}
    assert events[3].context == {"cwd": Path("/x"), **own}
    assert {each.context["turn_id"] for each in events} == {"own", "events of events.json"}
    file.write_text(json.dumps(told[0]))
    assert [each.event for each in of_file(file)] == [events[0].event]


def test_a_line_of_the_log_is_an_event(recording: Recording, tmp_path: Path) -> None:
    """As it stands in the file."""
    recording.add("rules", '@register_hook("intercept_tool_call")\ndef f(): return None\n')
    with recording.runtime() as runtime, runtime.turn(session_id="s1", turn_id="t9") as turn:
        turn.intercept_tool_call("jot", {"n": 1}, tool_call_id="c1")

    (event,) = of_file(recording.log)

    assert event.event == ToolCall("jot", {"n": 1}, "c1")
    assert event.context["turn_id"] == "t9"


WRONG: dict[str, tuple[str, Any, str]] = {
    "[]": ("has no event", None, 'Write one as {"hook"'),
    "": ("has no event", None, "Write one as"),
    "- 1": ("expected a mapping", 1, "Write one as"),
    "- hook: a\n - b": ("not valid YAML", 2, ""),
    "- tool_name: x": ("is missing", 1, "Hooks: transform_user_input"),
    "\n- hook: intercept_tool_cal": ("no hook is called", 2, '"intercept_tool_call"'),
    "hook: intercept_tool_call\ntool_nam: x": ("is not a key", 2, '"tool_name"'),
    "hook: intercept_tool_call\ntool_name: x\nresult: y": ("is not a key", 3, "tool_args"),
    "hook: intercept_tool_call\ntool_name: x\ntool_args: [y]": ("expected a mapping", 3, ""),
    "hook: intercept_tool_call\ntool_name: x\nread_only: 1": ("true or false", 3, ""),
    "hook: transform_tool_result\nresult: x\nread_only: true": ("is not a key", 3, "status"),
    "hook: intercept_tool_call": ("is needed", 1, ""),
    "hook: transform_tool_result\ntool_name: x": ("is needed", 1, ""),
    "hook: transform_user_input": ("or user_content", 1, ""),
    "hook: before_llm_call\nmessages: [a]": ("a list of mappings", 2, ""),
    "hook: before_llm_call\nmessages: []\napi_call_count: true": ("a whole number", 3, ""),
    '{"hook": "before_llm_call", "digests": {}, "payloads": {}}': ("written without", 1, ""),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_event_is_told_with_its_line(text: str, tmp_path: Path) -> None:
    """File, line, key, and what was probably meant."""
    file = tmp_path / "events.yaml"
    file.write_text(text)
    message, line, hint = WRONG[text]

    with pytest.raises(EventError) as told:
        of_file(file)

    assert message in told.value.message
    assert (told.value.path, told.value.line) == (file, line)
    assert hint in (told.value.hint or "")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="there is no such file"):
        of_file(tmp_path / "none.yaml")
