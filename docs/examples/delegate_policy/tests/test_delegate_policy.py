"""Depth, number and goals of what is delegated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import LoadExtension, assert_blocked, assert_passed

EXTENSION = Path(__file__).parents[1]
GOAL = "Find out why the tests of the parser fail on Windows"
TASK = ("delegate_task", {"goal": GOAL})


def child(number: int, parent: str) -> dict[str, Any]:
    return {
        "session_id": f"child{number}",
        "conversation_id": "test",
        "parent_session_id": parent,
        "is_subagent": True,
        "origin": "subagent",
    }


def test_subagents_go_as_deep_as_is_set(load_extension: LoadExtension) -> None:
    """A child whose parent nobody has seen counts as too deep."""
    extension = load_extension(EXTENSION, config={"depth": 2})
    assert_passed(extension.call(*TASK))
    assert_passed(extension.call(*TASK, **child(1, "test")))
    assert_blocked(extension.call(*TASK, **child(2, "child1")), match="delegate no further")
    assert_blocked(extension.call(*TASK, **child(3, "unheard-of")), match="delegate no further")
    extension.restart(config={"depth": 1})
    assert_blocked(extension.call(*TASK, **child(1, "test")))
    extension.restart(config={"depth": 0})
    assert_blocked(extension.call(*TASK))


def test_tasks_are_counted(load_extension: LoadExtension) -> None:
    """Each of a list, in parallel calls, over turns, in each conversation by itself."""
    extension = load_extension(EXTENSION, config={"tasks": 4})
    three = ("delegate_task", {"tasks": [{"goal": GOAL}] * 3})
    with extension.turn() as turn:
        blocked = [each.blocked for each in turn.parallel([three, three])]
        assert sorted(blocked) == [False, True]
    assert_blocked(extension.call(*TASK), match="No more than 4 tasks")
    assert_passed(extension.call(*three, session_id="other"))
    assert_passed(extension.call(*TASK, session_id="other"))
    assert_blocked(extension.call(*TASK, session_id="other"))


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"goal": "Fix it"}, "Say more of the goal"),
        ({}, "Say more of the goal"),
        ({"goal": GOAL, "tasks": [{"goal": "x"}]}, "Say more of the goal"),
        ({"tasks": [{"goal": GOAL}, {"context": GOAL}]}, "Say more of the goal"),
        ({"tasks": "all of them"}, "list of objects"),
        ({"tasks": [GOAL]}, "list of objects"),
        ({"goal": f"{GOAL}, then Deploy it"}, "not delegated"),
        ({"goal": GOAL, "context": "force push if need be"}, "not delegated"),
        ({"tasks": [{"goal": GOAL}, {"goal": f"{GOAL} and publish"}]}, "not delegated"),
        ({"goal": GOAL, "acp_command": "claude"}, "claude is an agent"),
    ],
)
def test_goals(load_extension: LoadExtension, args: dict[str, Any], told: str) -> None:
    """Too short ones and refused ones, wherever they stand; they are not counted."""
    extension = load_extension(EXTENSION, config={"tasks": 1})
    assert_blocked(extension.call("delegate_task", args), by="delegate_policy", match=told)
    assert_passed(extension.call(*TASK))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("terminal", {"command": "cd /tmp && hermes -z 'do it'"}),
        ("terminal", {"command": "nohup claude -p 'do it' &"}),
        ("execute_code", {"code": "import subprocess\nsubprocess.run(['codex', 'exec', 'x'])"}),
    ],
)
def test_agents_that_are_programs(
    load_extension: LoadExtension, tool: str, args: dict[str, Any]
) -> None:
    """They would delegate past the policy."""
    extension = load_extension(EXTENSION)
    assert_blocked(extension.call(tool, args), by="delegate_policy", match="is an agent")
    assert_passed(extension.call("terminal", {"command": "grep -r hermes ."}))
