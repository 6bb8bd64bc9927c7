"""What counts as tested, and what ends the work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import DrivenTurn, LoadExtension, assert_blocked, assert_passed

EXTENSION = Path(__file__).parents[1]
COMMIT = ("terminal", {"command": "git add -A && git commit -m x"})


def do(turn: DrivenTurn, tool: str, args: dict[str, Any], code: int = 0) -> None:
    """A call that is allowed, with its result."""
    call_id = f"c{len(turn.outcomes)}"
    assert_passed(turn.call(tool, args, tool_call_id=call_id))
    turn.result(tool, args, json.dumps({"output": "", "exit_code": code}), tool_call_id=call_id)


def shell(turn: DrivenTurn, command: str, code: int = 0, **args: Any) -> None:
    do(turn, "terminal", {"command": command, **args}, code)


def write(turn: DrivenTurn) -> None:
    do(turn, "write_file", {"path": "a.py", "content": ""})


def test_a_commit_comes_after_the_tests(load_extension: LoadExtension) -> None:
    """Over turns and restarts; a commit is no write that has to be tested before the push."""
    extension = load_extension(EXTENSION)
    with extension.turn() as turn:
        assert_passed(turn.call(*COMMIT))
        write(turn)
        assert_blocked(turn.call(*COMMIT), by="tests_before_done", match="`pytest`, or `make test`")
    extension.restart()
    with extension.turn() as turn:
        assert_blocked(turn.call("kanban_complete", {"task_id": "t"}), match="not tested")
        shell(turn, "pytest")
        do(turn, *COMMIT)
        shell(turn, "git push")
        do(turn, "kanban_complete", {"task_id": "t"})
        write(turn)
        assert_blocked(turn.call(*COMMIT))


@pytest.mark.parametrize(
    ("command", "code", "args"),
    [
        ("pytest", 1, {}),
        ("pytest || true", 0, {}),
        ("pytest; true", 0, {}),
        ("pytest --collect-only", 0, {}),
        ("pytest -k nothing | tail", 0, {}),
        ("PYTEST_ADDOPTS=--co pytest", 0, {}),
        ("cd /tmp && pytest", 0, {}),
        ("pytest &", 0, {}),
        ("pytest", 0, {"background": True}),
        ("pytest", 0, {"workdir": "/tmp"}),
        ("echo pytest", 0, {}),
    ],
)
def test_what_is_no_run_of_the_tests(
    load_extension: LoadExtension, command: str, code: int, args: dict[str, Any]
) -> None:
    """Tests that fail, or run otherwise, in the background, in another place."""
    extension = load_extension(EXTENSION)
    with extension.turn() as turn:
        write(turn)
        shell(turn, command, code, **args)
        assert_blocked(turn.call(*COMMIT))
        shell(turn, "make test")
        assert_passed(turn.call(*COMMIT))


def test_tests_of_a_folder(load_extension: LoadExtension) -> None:
    """The command may say where they are; the call itself begins in the project."""
    extension = load_extension(EXTENSION, config={"tests": ["cd app && pytest -q"]})
    with extension.turn() as turn:
        write(turn)
        shell(turn, "cd app && pytest -q", workdir=str(extension.project / "app"))
        assert_blocked(turn.call(*COMMIT))
        shell(turn, " cd app && pytest -q ", workdir=str(extension.project))
        assert_passed(turn.call(*COMMIT))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("terminal", {"command": "git push origin main"}),
        ("terminal", {"command": "bash -c 'git commit -m x'"}),
        ("terminal", {"command": "git -C . commit -m x"}),
        ("terminal", {"command": "$g push"}),
        ("terminal", {"command": "git $sub"}),
        ("execute_code", {"code": "import subprocess\nsubprocess.run(['git', 'commit'])"}),
        ("execute_code", {"code": "from hermes_tools import terminal\nterminal('git push')"}),
    ],
)
def test_the_ways_to_be_done(
    load_extension: LoadExtension, tool: str, args: dict[str, Any]
) -> None:
    """Each is refused after a write, also one of a subagent."""
    extension = load_extension(EXTENSION)
    with extension.turn("child", conversation_id="whole", is_subagent=True) as turn:
        write(turn)
    assert_blocked(extension.call(tool, args, session_id="whole"), by="tests_before_done")
    assert_passed(extension.call("terminal", {"command": "git log"}, session_id="whole"))
    assert_passed(extension.call(*COMMIT, session_id="other"))


def test_what_is_written_in_the_call_that_commits_is_not_tested(
    load_extension: LoadExtension,
) -> None:
    """It is refused as a whole, and has changed nothing then."""
    extension = load_extension(EXTENSION)
    with extension.turn() as turn:
        told = {"command": "echo x > a.py && git commit -am x"}
        assert_blocked(turn.call("terminal", told), match="take it apart")
        assert_blocked(turn.call("terminal", {"command": "git commit -m x > a.py"}))
        assert_passed(turn.call(*COMMIT))


def test_a_write_that_ends_beside_the_tests_is_not_tested(load_extension: LoadExtension) -> None:
    """Whether it began before them or while they ran; nothing is committed while it runs."""
    extension = load_extension(EXTENSION)
    ok, args = json.dumps({"exit_code": 0}), {"path": "a.py", "content": ""}
    tests = {"command": "pytest"}
    for first, second in (("write_file", "terminal"), ("terminal", "write_file")):
        with extension.turn() as turn:
            for tool in (first, second):
                turn.call(tool, tests if tool == "terminal" else args, tool_call_id=tool)
            assert_blocked(turn.call(*COMMIT))
            turn.result("write_file", args, ok, tool_call_id="write_file")
            turn.result("terminal", tests, ok, tool_call_id="terminal")
            assert_blocked(turn.call(*COMMIT))
            shell(turn, "pytest")
            assert_passed(turn.call(*COMMIT))
