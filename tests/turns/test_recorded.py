"""Lines with payloads: the events and turns that they tell of can be made again, exactly."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import Approval, HookResult, Runtime, register_hook
from hermes_ext.hooks.handler import Handler
from hermes_ext.turns.decisions.log import DecisionLog
from hermes_ext.turns.decisions.reading import read_decisions
from hermes_ext.turns.decisions.recorded import recorded_context, recorded_event

PARTS = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
MESSAGES = [{"role": "user", "content": PARTS}, {"role": "assistant", "tool_calls": [{"id": "1"}]}]
ARGS = {"path": "a.py", "edits": [{"line": 1, "text": "\u00e4\n\x00"}], "force": None}
TURN = {
    "session_id": "s1",
    "conversation_id": "c1",
    "turn_id": "t1",
    "turn_number": 3,
    "task_id": "k1",
    "platform": "telegram",
    "origin": "api",
    "interactive": False,
    "model": "m1",
    "is_subagent": True,
    "parent_session_id": "s0",
    "sender_id": "u1",
    "chat_id": "g1",
}
seen: list[Any] = []
known: list[dict[str, Any]] = []


@register_hook("transform_user_input", priority=1)
def on_input(event: Any, **named: Any) -> Any:
    noted(event, named)
    return HookResult.rewrite("rewritten")


@register_hook("before_llm_call", priority=1)
def on_request(event: Any, **named: Any) -> Any:
    noted(event, named)
    return HookResult.inject_system("more")


@register_hook("intercept_tool_call", priority=1)
def on_call(event: Any, **named: Any) -> Any:
    noted(event, named)
    return HookResult.rewrite({"path": "rewritten"})


@register_hook("intercept_tool_call", priority=2)
def asking(event: Any) -> Any:
    return HookResult.ask("sure?")


@register_hook("transform_tool_result", priority=1)
def on_result(event: Any, **named: Any) -> Any:
    noted(event, named)
    return HookResult.block("withheld")


HANDLERS = [on_input, on_request, on_call, asking, on_result]
CONTEXT = (*TURN, "cwd", "project_root")


def noted(event: Any, named: dict[str, Any]) -> None:
    seen.append(event)
    known.append({name: named[name] for name in CONTEXT})


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime of these handlers that logs payloads; a person says yes to everything."""
    seen.clear()
    known.clear()
    made = Runtime(HANDLERS, approver=lambda request: Approval(approved=True))
    made.services.log = DecisionLog(tmp_path / "log", "payloads")
    yield made
    made.close()


def play(runtime: Runtime, cwd: Path) -> list[dict[str, Any]]:
    with runtime.turn(**TURN, cwd=cwd, project_root=cwd.parent) as turn:
        turn.transform_user_input("typed")
        turn.transform_user_input(PARTS, text="typed alone", command="skill", origin="steer")
        turn.before_llm_call(MESSAGES, "system", api_call_count=2, request_id="r1", model="m2")
        turn.before_llm_call(MESSAGES)
        turn.intercept_tool_call("patch", ARGS, tool_call_id="call-1")
        judged = turn.judge_tool_call("patch", ARGS, cwd=cwd / "sub")
        turn.settle(judged, "patch", judged.final(ARGS))
        turn.transform_tool_result("patch", ARGS, "done", status="error", duration_ms=7)
        turn.transform_tool_result("patch", {}, "")
    assert runtime.log is not None
    assert runtime.log.flush(30)
    return list(read_decisions(runtime.log.path))


def test_each_event_comes_back_as_the_first_handler_saw_it(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Of every hook, with parts, messages and arguments before anybody changed them, and of calls
    that a person was asked about.
    """
    lines = play(runtime, tmp_path)

    assert [line["hook"] for line in lines] == [event.hook.value for event in seen]
    assert [recorded_event(line) for line in lines] == seen


def test_each_turn_comes_back_as_the_handlers_knew_it(runtime: Runtime, tmp_path: Path) -> None:
    """`Runtime.turn` gets what it had; a call's own directory is in the line."""
    lines = play(runtime, tmp_path)

    own = []
    for line, told in zip(lines, known, strict=True):
        context = recorded_context(line)
        own.append(Path(line["context"]["cwd"]))
        assert {**context, "cwd": own[-1]} == told
        assert context["cwd"] == tmp_path
        with runtime.turn(**context) as turn:
            assert turn.directory == tmp_path
    assert own == [tmp_path] * 5 + [tmp_path / "sub"] + [tmp_path] * 2


def test_run_again_it_comes_to_the_same(runtime: Runtime, tmp_path: Path) -> None:
    """The recorded call, judged again by the same handlers, has the same digests and steps."""
    first = play(runtime, tmp_path)
    line = next(line for line in first if line["hook"] == "intercept_tool_call")
    event = recorded_event(line)
    with runtime.turn(**recorded_context(line)) as turn:
        turn.intercept_tool_call(event.tool_name, event.tool_args, tool_call_id=event.tool_call_id)
    assert runtime.log is not None
    assert runtime.log.flush(30)
    again = list(read_decisions(runtime.log.path))[-1]

    for key in ("digests", "payloads", "steps", "action", "asks", "approved", "event", "context"):
        assert json.dumps(again[key]) == json.dumps(line[key])


@pytest.mark.parametrize("depth", [10, 550, 5_000, 200_000])
def test_what_is_nested_deeply(runtime: Runtime, tmp_path: Path, depth: int) -> None:
    """It comes back too; where it is deeper than Python reads, that is said."""
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    with runtime.turn(session_id="s1") as turn:
        turn.transform_tool_result("x", {"deep": deep}, "done")
    assert runtime.log is not None
    assert runtime.log.flush(30)
    (line,) = read_decisions(runtime.log.path)

    if depth > 1_000 and not is_read_back(line):
        with pytest.raises(ValueError, match="nested too deeply"):
            recorded_event(line)
        return
    assert depth < 200_000
    found = recorded_event(line).tool_args["deep"]
    for _ in range(depth):  # Python compares no deeper than it recurses
        (found,) = found
    assert found == 1


def is_read_back(line: Any) -> bool:
    """Whether this Python reads what is nested so deeply: 3.13 goes deeper than 3.11 and 3.12."""
    with contextlib.suppress(ValueError):
        return bool(recorded_event(line))
    return False


def test_a_line_without_payloads_says_so(runtime: Runtime, tmp_path: Path) -> None:
    """Nothing is made up for what was not written."""
    runtime.services.log = DecisionLog(tmp_path / "other", "steps")
    line = play(runtime, tmp_path)[0]

    for rebuild in (recorded_event, recorded_context):
        with pytest.raises(ValueError, match="written without payloads"):
            rebuild(line)


def test_who_decided_is_the_handler_that_did(runtime: Runtime, tmp_path: Path) -> None:
    """Not who named a setting in passing; others that did something stand beside it."""

    @register_hook("intercept_tool_call", priority=1)
    def passing() -> Any:
        return HookResult.pass_(metadata={"setting": "one.key"})

    @register_hook("intercept_tool_call", guard=True)
    def blocking() -> Any:
        return HookResult.block("no")

    made = Runtime([passing, blocking])
    assert all(isinstance(each, Handler) for each in made.handlers)
    made.services.log = DecisionLog(tmp_path / "third")
    with made.turn(session_id="s1") as turn:
        outcome = turn.intercept_tool_call("x", {})
    made.close()
    (line,) = read_decisions(tmp_path / "third")

    assert (line["handler"], line["file"]) == ("blocking", __file__)
    assert "setting" not in line
    assert [step.setting for step in outcome.steps] == [("one.key",), ()]
    (other,) = line["by"]
    assert (other["handler"], other["action"], other["setting"]) == ("passing", "pass", ["one.key"])
