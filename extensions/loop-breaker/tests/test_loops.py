"""Circles are stopped, and only circles."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from tests.bundled import Bundled, readme_of, schema_of

from hermes_ext import ChainOutcome, Turn

IDS = count()
READ = {"path": "a.py", "offset": 1}


@pytest.fixture
def on(tmp_path: Path) -> Bundled:
    return Bundled(tmp_path, "loop-breaker")


def calls(turn: Turn, times: int, args: dict[str, object] = READ) -> list[ChainOutcome]:
    return [turn.intercept_tool_call("read_file", dict(args)) for _ in range(times)]


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


def made(turn: Turn, call_id: str, tool: str, args: dict[str, object], result: str = "ok") -> str:
    """What the model gets for a call: its result, or why it is refused."""
    outcome = turn.intercept_tool_call(tool, dict(args), tool_call_id=call_id)
    if outcome.blocked:
        return f"refused: {outcome.message}"
    return str(
        turn.transform_tool_result(tool, dict(args), result, tool_call_id=call_id).final(result)
    )


def run(turn: Turn, *commands: str) -> list[str]:
    """What becomes of commands in the terminal, one word each: ran, told or refused."""
    words = []
    for command in commands:
        told = made(turn, f"run-{next(IDS)}", "terminal", {"command": command})
        told_of = "told" if "again will be refused" in told else "ran"
        words.append("refused" if told.startswith("refused") else told_of)
    return words


def test_the_model_is_told_once_before(on: Bundled) -> None:
    """At the last call that runs; with a limit of two there is nothing to say that is not known."""
    with on.turn() as turn:
        told = [made(turn, f"c{number}", "read_file", READ) for number in range(3)]
    assert told[0] == "ok"
    assert told[1].startswith("ok\n\n[loop-breaker] The same call again will be refused")
    assert "call number 3 of read_file" in told[2]
    on.restarted(same_call=2)
    with on.turn() as turn:
        assert run(turn, "ls", "ls") == ["ran", "refused"]


def test_a_call_that_is_judged_twice_keeps_its_number(on: Bundled) -> None:
    """Also when others were judged in between."""
    with on.turn() as turn:
        for call_id in ("c1", "c2", "c1", "c2", "c1"):
            assert not turn.intercept_tool_call(
                "read_file", dict(READ), tool_call_id=call_id
            ).blocked
        assert turn.intercept_tool_call("read_file", dict(READ), tool_call_id="c3").blocked
        assert not turn.intercept_tool_call("read_file", dict(READ), tool_call_id="c1").blocked


def test_a_call_that_gets_other_arguments_counts_as_what_it_is_then(on: Bundled) -> None:
    """Not as what it was as well."""
    with on.turn() as turn:
        for number in range(4):
            call_id = f"c{number}"
            assert not turn.intercept_tool_call("read_file", READ, tool_call_id=call_id).blocked
            other = {"path": f"{number}.py"}
            assert not turn.intercept_tool_call("read_file", other, tool_call_id=call_id).blocked


def test_a_change_in_between_starts_anew(on: Bundled) -> None:
    """Tests that run again after an edit are no loop, whatever makes the edit."""
    with on.turn() as turn:
        for number in range(4):
            assert run(turn, "ls src", "ls src") == ["ran", "told"]
            made(turn, f"w{number}", "write_file", {"path": "a.py", "content": f"x{number}"})
            assert run(turn, "ls src", f"sed -i s/a/{number}/ a.py") == ["ran", "ran"]
            assert run(turn, "ls src", f"./mend {number}") == ["ran", "ran"]


def test_the_same_changes_again_and_again_are_a_loop(on: Bundled) -> None:
    """Of calls that take turns, and may change something each time, each is refused."""
    with on.turn() as turn:
        assert run(turn, *["make a", "make b"] * 4)[-2:] == ["refused", "refused"]
        edits = ["sed -i s/x/y/ a", "pytest", "sed -i s/y/x/ a", "pytest"]
        assert run(turn, *edits * 3)[-1] == "refused"


def test_what_changes_nothing_does_not_start_anew(on: Bundled) -> None:
    """Reading, and an edit that failed."""
    failed = '{"error": "no match"}'
    with on.turn() as turn:
        assert run(turn, "cat a", "cat b", "cat a", "cat c") == ["ran", "ran", "told", "ran"]
        made(turn, "p", "write_file", {"path": "a", "content": "x"}, failed)
        assert run(turn, "cat a") == ["refused"]


def test_a_window(tmp_path: Path) -> None:
    """Calls before it are not compared."""
    on = Bundled(tmp_path, "loop-breaker", window=3)
    with on.turn() as turn:
        assert run(turn, "ls", "ls", "pwd", "ls") == ["ran", "told", "ran", "told"]
        assert run(turn, "ls") == ["told"]
        assert run(turn, "ls") == ["refused"]


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
    [
        ("x", "error"),
        ('{"error": "no"}', "ok"),
        ('{"exit_code": 1}', "ok"),
        ('{"exit_code": 1}\n\n[a note]', "ok"),
    ],
)
def test_what_counts_as_failing(tmp_path: Path, result: str, status: str) -> None:
    on = Bundled(tmp_path, "loop-breaker", failures_in_a_row=2)
    with on.turn() as turn:
        for number in range(3):
            turn.transform_tool_result("x", {"n": number}, result, status=status)
        assert turn.intercept_tool_call("x", {}).blocked


@pytest.mark.parametrize(
    "result",
    [
        "x",
        "[1]",
        '{"error": null, "exit_code": 0}',
        '{"exit_code": 1, "error": null, "exit_code_meaning": "No matches found (not an error)"}',
    ],
)
def test_what_does_not(tmp_path: Path, result: str) -> None:
    on = Bundled(tmp_path, "loop-breaker", failures_in_a_row=2)
    with on.turn() as turn:
        for number in range(4):
            turn.transform_tool_result("x", {"n": number}, result, status="ok")
        assert not turn.intercept_tool_call("x", {}).blocked


def test_waiting_is_no_loop(on: Bundled) -> None:
    """What polls, or acts on a screen, is left out by default, under every name that it has."""
    with on.turn() as turn:
        for tool in ("process", "process_manage", "todo", "browser_scroll", "kanban_heartbeat"):
            assert not any(turn.intercept_tool_call(tool, {"a": 1}).blocked for _ in range(5))


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
