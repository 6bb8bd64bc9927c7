"""Circles are stopped, and only circles."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.bundled import Bundled, readme_of, schema_of

from hermes_ext import ChainOutcome, Turn

READ = {"path": "a.py", "offset": 1}


@pytest.fixture
def on(tmp_path: Path) -> Bundled:
    return Bundled(tmp_path, "loop-breaker")


def calls(turn: Turn, count: int, args: dict[str, object] = READ) -> list[ChainOutcome]:
    return [turn.intercept_tool_call("read_file", dict(args)) for _ in range(count)]


def test_the_third_identical_call_is_refused(on: Bundled) -> None:
    """Whatever the order of the arguments and the spelling of the tool; others are free."""
    with on.turn() as turn:
        assert not turn.intercept_tool_call("read_file", {"path": "a.py", "offset": 1}).blocked
        assert not turn.intercept_tool_call(" Read_File", {"offset": 1, "path": "a.py"}).blocked
        assert not turn.intercept_tool_call("read_file", {"path": "b.py", "offset": 1}).blocked
        refused = turn.intercept_tool_call("read_file", {"offset": 1, "path": "a.py"})
        assert refused.blocked_by == "loop-breaker"
        assert "call number 3" in str(refused.message)
        assert not turn.intercept_tool_call("read_file", {"path": "a.py", "offset": 2}).blocked


def test_the_next_turn_begins_at_zero(on: Bundled) -> None:
    for _ in range(2):
        with on.turn() as turn:
            assert [each.blocked for each in calls(turn, 3)] == [False, False, True]


def test_sessions_do_not_share_counts(on: Bundled) -> None:
    """Twenty turns at once, and two of one session: each has its own counts."""

    def one(number: int) -> list[bool]:
        with on.turn(session_id=f"s{number % 10}", turn_id=f"t{number}") as turn:
            return [each.blocked for each in calls(turn, 4)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(20))) == [[False, False, True, True]] * 20


def test_parallel_calls_are_counted_exactly(on: Bundled) -> None:
    with on.turn() as turn, ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: calls(turn, 1)[0].blocked, range(40)))
    assert outcomes.count(False) == 2


def test_the_model_is_told_once_before(on: Bundled) -> None:
    with on.turn() as turn:
        told = []
        for _ in range(2):
            calls(turn, 1)
            outcome = turn.transform_tool_result("read_file", dict(READ), "text")
            told.append(outcome.final("text"))
    assert told[0] == "text"
    assert told[1].startswith("text\n\n[loop-breaker] The same call again will be refused")


def test_a_change_in_between_starts_anew(on: Bundled) -> None:
    """Tests that run again after an edit are no loop; the edit itself is, if repeated."""
    write = {"path": "a.py", "content": "x"}
    with on.turn() as turn:
        for _ in range(4):
            for _ in range(2):
                assert not turn.intercept_tool_call("terminal", {"command": "pytest"}).blocked
                turn.transform_tool_result("terminal", {"command": "pytest"}, "ok")
            blocked = turn.intercept_tool_call("write_file", dict(write)).blocked
            turn.transform_tool_result("write_file", dict(write), "ok")
        assert blocked


def test_failures_in_a_row(on: Bundled) -> None:
    """Told after six, refused after the seventh; a success in between starts anew."""
    failing = json.dumps({"output": "", "exit_code": 2})
    with on.turn() as turn:
        for number in range(5):
            turn.transform_tool_result("terminal", {"command": f"a{number}"}, failing)
        turn.transform_tool_result("terminal", {"command": "fine"}, json.dumps({"exit_code": 0}))
        results = [
            turn.transform_tool_result("terminal", {"command": f"b{number}"}, failing)
            for number in range(7)
        ]
        noted = [number for number, each in enumerate(results) if "in a row" in each.final("")]
        assert noted == [5]
        refused = turn.intercept_tool_call("terminal", {"command": "c"})
        assert refused.blocked
        assert "7 calls in a row" in str(refused.message)


@pytest.mark.parametrize(
    ("result", "status"),
    [("x", "error"), ('{"error": "no"}', "ok"), ('{"exit_code": 1}', "ok")],
)
def test_what_counts_as_failing(tmp_path: Path, result: str, status: str) -> None:
    on = Bundled(tmp_path, "loop-breaker", failures_in_a_row=2)
    with on.turn() as turn:
        for number in range(3):
            turn.transform_tool_result("x", {"n": number}, result, status=status)
        assert turn.intercept_tool_call("x", {}).blocked


def test_settings(tmp_path: Path) -> None:
    """Limits can be moved and turned off, and tools left out; a poll is no loop."""
    on = Bundled(tmp_path, "loop-breaker", same_call=None)
    with on.turn() as turn:
        assert not any(each.blocked for each in calls(turn, 10))
    on.restarted(same_call=2, ignore=["mcp_*_poll"])
    with on.turn() as turn:
        assert [each.blocked for each in calls(turn, 2)] == [False, True]
        polls = [turn.intercept_tool_call("mcp_x_poll", {}) for _ in range(5)]
        assert not any(each.blocked for each in polls)


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("loop-breaker")["properties"].items():
        assert f"`{name}`" in readme_of("loop-breaker")
        assert "default" in setting
        assert setting["description"]
