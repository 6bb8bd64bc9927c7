"""Plan mode holds until a person ends it, whatever tool is tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import LoadExtension, assert_blocked, assert_injected, assert_passed

EXTENSION = Path(__file__).parents[1]
PLAN = ("write_file", {"path": "plans/plan.md", "content": ""})
CODE = ("write_file", {"path": "a.py", "content": ""})


def test_it_is_on_for_as_many_turns_as_the_user_wants(load_extension: LoadExtension) -> None:
    """And restarts, in this conversation, subagents included, and in no other."""
    extension = load_extension(EXTENSION)
    assert_passed(extension.call(*CODE))
    assert extension.command("plan") == "Plan mode is off."
    assert extension.command("plan", "on") == "Plan mode is on: only files below plans may change."
    for number in range(2):
        with extension.turn() as turn:
            assert_injected(turn.request(), "Plan mode is on", where="system")
            assert_injected(turn.request(), "Plan mode is on", where="system")
            assert_blocked(turn.call(*CODE), by="plan_mode", match="only plans in plans/")
            assert_passed(turn.call(*PLAN))
        if number == 0:
            extension.restart()
    child = {"session_id": "child", "conversation_id": "test", "is_subagent": True}
    assert_blocked(extension.call(*CODE, **child))
    assert_passed(extension.call(*CODE, session_id="other"))
    assert_passed(extension.request(session_id="other"))
    assert "/plan off" in extension.command("plan", "offf")
    assert_blocked(extension.call(*CODE))
    assert extension.command("plan", "off") == "Plan mode is off."
    assert_passed(extension.call(*CODE))
    assert_passed(extension.request())


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": "plans/../a.py", "content": ""}),
        ("write_file", {"path": "plans/out/a.py", "content": ""}),
        ("write_file", {"path": "plansx/a.py", "content": ""}),
        ("patch", {"path": "a.py", "old_string": "a", "new_string": "b"}),
        ("terminal", {"command": "echo x > a.py"}),
        ("terminal", {"command": "ln -s ../a.py plans/x"}),
        ("terminal", {"command": "mv a.py plans/a.py"}),
        ("terminal", {"command": "make"}),
        ("terminal", {"command": "git commit -m x"}),
        ("execute_code", {"code": "open('a.py', 'w')"}),
        ("process", {"action": "submit", "data": "rm a.py"}),
        ("mcp_files_write", {"path": "plans/plan.md"}),
    ],
)
def test_no_other_way_to_write(
    load_extension: LoadExtension, tmp_path: Path, tool: str, args: dict[str, Any]
) -> None:
    """Links, moves, programs, code; what cannot be told is no plan."""
    project = tmp_path / "project"
    (project / "plans").mkdir(parents=True)
    (project / "plans" / "out").symlink_to(tmp_path)
    extension = load_extension(EXTENSION, project_root=project)
    extension.command("plan", "on")
    assert_blocked(extension.call(tool, args), by="plan_mode")


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        PLAN,
        ("terminal", {"command": "mkdir -p plans && echo x > plans/plan.md"}),
        ("terminal", {"command": "git log | head"}),
        ("read_file", {"path": "a.py"}),
        ("search_files", {"pattern": "x"}),
        ("delegate_task", {"goal": "look around"}),
        ("todo", {"todos": []}),
    ],
)
def test_looking_around_and_planning_are_free(
    load_extension: LoadExtension, tool: str, args: dict[str, Any]
) -> None:
    """That is what it is for."""
    extension = load_extension(EXTENSION)
    extension.command("plan", "on")
    assert_passed(extension.call(tool, args))
