"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hermes_ext.testing import ModelRequest, Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
ENABLE, RUN = re.findall(r"\$ hermes (.*)", README)
# YAML 1.2: in 1.1, `on` is a boolean.
TURN_ON = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[0])
PROMPT = shlex.split(RUN)[1]
# What the README says that the model gets.
PROMISED = [
    " ".join(told.split())
    for told in re.findall(r"`(\[workflow-guard\] There.*?) …`", README, re.DOTALL)
]

BUGGY = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
FIX = ToolUse(
    "patch",
    {"mode": "replace", "path": "app.py", "old_string": "a - b", "new_string": "a + b"},
)
LOOK = ToolUse("terminal", {"command": "git status; grep -rn add ."})
SED = ToolUse("terminal", {"command": "sed -i s/-/+/ app.py"})
PLAN = ToolUse("write_file", {"path": "plans/active/plan.md", "content": "# Plan\n\nUse +.\n"})

# Hermes asks the model to test what it has edited before it may end; that is another story.
NO_NUDGES = {"agent": {"verify_on_stop": False}}

Factory = Callable[..., Any]


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command: request rewritten, edits blocked, plan written, edit made."""
    seen: list[str] = []
    replies = iter(Reply(tool_calls=(call,)) for call in (LOOK, FIX, SED, PLAN, FIX))

    def script(_request: ModelRequest) -> Reply:
        seen.append((session.project / "app.py").read_text(encoding="utf-8"))
        return next(replies, Reply("Fixed."))

    session = hermes_session(script=script, hermes_config=NO_NUDGES)
    session.hermes(*ENABLE.split()).check()
    section = YAML(typ="safe").load(session.home / "config.yaml")["extensions"]
    assert section["on"] == TURN_ON["extensions"]["on"]
    (session.project / "app.py").write_text(BUGGY, encoding="utf-8")
    run = session.run(PROMPT)
    assert run.answer == "Fixed.", run

    requests = run.requests
    assert requests[0].last_user == f"/start-feature {PROMPT}"
    for request in requests[:4]:
        assert request.system.count("There is no plan for this project yet") == 1
        assert "There is a plan" not in request.system
    for request in requests[4:]:
        assert request.system.count("There is a plan: plans/active/plan.md") == 1
        assert "There is no plan" not in request.system
    looked, *blocked, _, _ = run.tool_results
    assert "return a - b" not in looked
    assert "def add(a, b)" in looked
    errors = [json.loads(text)["error"] for text in blocked]
    assert len(errors) == len(PROMISED) == 2
    for error, promised in zip(errors, PROMISED, strict=True):
        assert error.startswith(promised)
    assert "error" not in json.loads(run.tool_results[-1])
    assert seen == [*[BUGGY] * 5, FIXED]


def test_a_skill_named_by_the_command_is_expanded(model_factory: Factory, hermes: Factory) -> None:
    """A skill called start-feature is expanded for the rewritten request, as if typed."""
    model = model_factory([Reply("Planned.")])
    home = hermes(model, extensions=TURN_ON["extensions"], config=NO_NUDGES)
    skill = home.home / "skills/start-feature/SKILL.md"
    skill.parent.mkdir(parents=True)
    head = "---\nname: start-feature\ndescription: Plans a feature.\n---\n"
    skill.write_text(f"{head}Think of the zebra before you plan.\n", encoding="utf-8")
    home.oneshot(PROMPT).check()
    told = model.main_requests[0].last_user
    assert "Think of the zebra" in told
    assert PROMPT in told


def test_a_subagent_is_held_to_the_same_rules(model_factory: Factory, hermes: Factory) -> None:
    """delegate_task passes without a plan, and what the subagent would write is blocked."""
    goal = "zebra: write app.py"
    write = ToolUse("write_file", {"path": "app.py", "content": "x"})
    delegate = ToolUse("delegate_task", {"goal": goal})

    def script(request: ModelRequest) -> Reply:
        by_child = request.last_user.startswith("zebra")
        if request.tool_results:
            return Reply("Done.")
        return Reply(tool_calls=(write if by_child else delegate,))

    model = model_factory(script)
    home = hermes(model, extensions=TURN_ON["extensions"])
    home.oneshot(PROMPT).check()
    child = [request for request in model.main_requests if request.last_user == goal]
    assert len(child) == 2
    assert "There is no plan for this project yet" in child[0].system
    assert "[workflow-guard] There is no plan yet" in child[1].tool_results[0][1]
    assert list(home.project.iterdir()) == []


def test_allowed_commands_run_unconfined(hermes_session: StartSession) -> None:
    """They change what they change; with anything else in the call, nothing changes."""
    commands = ("sh fix.sh; sh other.sh", "sh other.sh", "sh fix.sh")
    seen: list[str] = []
    replies = iter(Reply(tool_calls=(ToolUse("terminal", {"command": each}),)) for each in commands)

    def script(_request: ModelRequest) -> Reply:
        seen.append(session.read("app.py"))
        return next(replies, Reply("Done."))

    session = hermes_session(
        script=script,
        extensions=["workflow-guard"],
        config={"workflow-guard": {"allowed_commands": ["sh fix.sh"]}},
        hermes_config=NO_NUDGES,
    )
    session.write("app.py", BUGGY)
    session.write("fix.sh", "sed -i s/-/+/ app.py && echo fixed\n")
    session.write("other.sh", "sed -i s/-/x/ app.py\n")
    run = session.run(PROMPT)
    assert seen == [BUGGY, BUGGY, BUGGY, FIXED]
    *confined, unconfined = run.tool_results
    for each in confined:
        assert "[workflow-guard] this command ran with the project read-only: no plan yet" in each
    assert json.loads(unconfined)["output"] == "fixed"


def test_the_readmes_settings_are_shown(hermes: Factory) -> None:
    """`info` shows the settings."""
    home = hermes(None, extensions=TURN_ON["extensions"])
    shown = home.cli("extensions", "info", "workflow-guard").check().stdout
    for name in ("plan_path", "allowed_paths", "blocked_tools", "allowed_tools", "plan_command"):
        assert name in shown
