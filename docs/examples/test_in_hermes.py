"""The examples in the real Hermes, all of them at once: what each refuses, changes or notes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.terminal import ENTER, terminal

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, StartSession, ToolUse

pytestmark = pytest.mark.hermes

HERE = Path(__file__).parent
EXAMPLES = sorted(each.parent for each in HERE.glob("*/__init__.py"))
SETTINGS = {
    "answer_without_model": {"answers": {"Who are you?": "The agent of the build team."}},
    "folder_rules": {"rules": [{"folder": "vendor", "do": "block"}], "unknown": "pass"},
    "working_hours": {"days": []},
    "turn_reminder": {"text": "Keep it short."},
}


def write(path: str, content: str = "by the agent\n") -> ToolUse:
    return ToolUse("write_file", {"path": path, "content": content})


def shell(command: str) -> ToolUse:
    return ToolUse("terminal", {"command": command})


STEPS: list[tuple[ToolUse, str]] = [
    (write("old.txt"), r"[read_before_write] Read"),
    (ToolUse("read_file", {"path": "old.txt"}), "by the user"),
    (write("old.txt"), ""),
    (write("vendor/x.txt"), "[folder_rules] The rule for vendor is: block."),
    (shell("git commit -qam x"), "[tests_before_done] Files were changed and not tested"),
    (shell("./run-tests"), '"exit_code": 0'),
    (shell("git add -A && git commit -qm x"), '"exit_code": 0'),
    (shell("git log --format=%s"), "filtered"),
    (shell("echo hi | mail -s hi ann@example.com"), "[working_hours] Messages are sent"),
    (ToolUse("delegate_task", {"goal": "Fix it"}), "[delegate_policy] Say more of the goal"),
    (write("new.txt"), "[dirty_repository]"),
]
"""What the model does, and what it sees of it."""


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def program(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_all_at_once(hermes_session: StartSession, tmp_path: Path) -> None:
    """One turn in which most of them have something to say, and a question for none."""
    program(tmp_path / "rtk", 'echo filtered; exec "$@"')
    steps: Iterator[tuple[ToolUse, str]] = iter(STEPS)

    def script(request: ModelRequest) -> Reply:
        call, _ = next(steps, (None, ""))
        if call is None:
            return Reply("Done.")
        if call is STEPS[-1][0]:
            session.write("users.txt")
        return Reply(tool_calls=(call,))

    session = hermes_session(
        script=script,
        extensions=EXAMPLES,
        config={**SETTINGS, "tests_before_done": {"tests": ["./run-tests"]}},
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    # Hermes' terminal has the PATH that a login shell has.
    profile = session.home.parent / "user" / ".bash_profile"
    profile.write_text(f"PATH={tmp_path}:$PATH\n", encoding="utf-8")
    for name, value in (("user.name", "x"), ("user.email", "x@example.com")):
        git(session.project, "config", name, value)
    session.write("old.txt", "by the user\n")
    program(session.project / "run-tests", "exit 0")
    git(session.project, "add", "-A")
    git(session.project, "commit", "-qm", "x")

    run = session.run("Do it")
    assert len(run.tool_results) == len(STEPS)
    for (call, told), seen in zip(STEPS, run.tool_results, strict=True):
        assert told in seen, call
    assert "Keep it short." in str(run.requests[0].messages)
    assert session.read("old.txt") == "by the agent\n"
    (checkpoint,) = git(session.project, "for-each-ref", "refs/checkpoints").splitlines()
    ref = checkpoint.split()[-1]
    assert git(session.project, "show", f"{ref}:old.txt") == "by the user\n"
    audit = (session.home / "logs" / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    seen = [json.loads(line)["what"] for line in audit]
    assert seen.count("asked") == len(STEPS)
    assert seen.count("runs") == seen.count("result") == 5

    known = session.run("who are you")
    assert (known.answer, known.requests) == ("The agent of the build team.", ())


def test_plan_mode_is_typed_by_a_person(
    hermes: Callable[..., HermesHome], model_factory: Callable[..., ScriptedModel]
) -> None:
    """It is on from the next turn on, until it is typed again."""

    def script(request: ModelRequest) -> Reply:
        if request.messages[-1]["role"] == "user":
            return Reply(tool_calls=(write("a.txt"),))
        ((_, result),) = request.tool_results[-1:]
        return Reply("It was refused." if "[plan_mode]" in result else "It is written.")

    home = hermes(model_factory(script), config={"display": {"tool_progress": "off"}}, git=True)
    home.install_extension(HERE / "plan_mode")
    with terminal((*hermes_command(), "chat"), home.project, home.env()) as person:
        person.wait("Type your message")
        for typed, shown in (
            ("/plan on", "Plan mode is on"),
            ("write it", "It was refused."),
            ("/plan off", "Plan mode is off."),
            ("write it now", "It is written."),
        ):
            person.press(typed)
            person.press(ENTER)
            person.wait(shown)
    assert (home.project / "a.txt").read_text() == "by the agent\n"
