"""Completion in the shell: what argcomplete is answered by the real program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_ext.cli import main
from hermes_ext.turns.decisions.line import DecisionEvent
from hermes_ext.turns.decisions.log import DecisionLog


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one extension of its own, one that is on, and one decision."""
    folder = tmp_path / "extensions" / "quiet-hours"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (tmp_path / "config.yaml").write_text("extensions:\n  on: [workflow-guard]\n")
    log = DecisionLog(tmp_path / "logs" / "extensions.jsonl")
    log.write(DecisionEvent("intercept_tool_call", {}, {}, turn="t-1", session="s-1"))
    assert log.flush()
    return tmp_path


def completed(home: Path, line: str) -> set[str]:
    """What the shell is offered behind a line, asked as the shell asks."""
    answers = home / "answers"
    env = {
        **os.environ,
        "HERMES_HOME": str(home),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    program = "import sys; from hermes_ext.cli import main; sys.argv[0] = 'hermes-ext'; main()"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answers.exists(), run
    return {each.strip() for each in answers.read_text().splitlines()}


def test_what_is_completed(home: Path) -> None:
    """Commands, options, and the names that are there: what the command can do with them."""
    assert {"list", "why", "doctor"} <= completed(home, "hermes-ext ")
    assert completed(home, "hermes-ext disa") == {"disable"}
    assert completed(home, "hermes-ext info qu") == {"quiet-hours"}
    off = completed(home, "hermes-ext enable ")
    assert "budget" in off
    assert not {"workflow-guard", "quiet-hours"} & off
    assert completed(home, "hermes-ext disable ") == {"workflow-guard", "quiet-hours"}
    assert completed(home, "hermes-ext list --order tr") == {
        "transform_user_input",
        "transform_tool_result",
    }
    assert completed(home, "hermes-ext why ") == {"last", "t-1"}
    assert completed(home, "hermes-ext log --session ") == {"s-1"}
    assert completed(home, "hermes-ext completion b") == {"bash"}
    assert completed(home, "hermes-ext test qu") == {"quiet-hours"}
    assert completed(home, "hermes-ext test ./ext") == {"./extensions/"}
    assert completed(home, "hermes-ext replay --turn ") == {"t-1"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh", "powershell"])
def test_what_turns_it_on(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines for each shell name the program, and are printed as they stand."""
    from argcomplete.shell_integration import shellcode

    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out.rstrip() == shellcode(["hermes-ext"], shell=shell).rstrip()


def test_bash_takes_it(home: Path) -> None:
    """A real bash runs the lines, and then knows how to complete the program."""
    lines = subprocess.run(
        [sys.executable, "-m", "hermes_ext.cli", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    told = subprocess.run(
        ["bash", "--norc", "-c", f"{lines}\ncomplete -p hermes-ext"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "_python_argcomplete" in told
