"""Commands that developers type to look at things are seen to change nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Machine, effects_of

_LIST = Path(__file__).with_name("read_only_commands.txt")
_COMMANDS = [line for line in _LIST.read_text().splitlines() if line and line[:2] != "# "]
_MOST = 0.02
_FILES = (
    "README.md",
    "package.json",
    "pyproject.toml",
    "a.txt",
    "app.db",
    "names.txt",
    "setup.py",
    "src/app.py",
    "src/index.js",
    "logs/app.log",
    "logs/app.log.1.gz",
    ".github/workflows/ci.yml",
    "dist/app-1.0-py3-none-any.whl",
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A project where the patterns of the commands match something."""
    for name in _FILES:
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    subprocess.run(["git", "init", "-q", str(tmp_path / "project")], check=True)
    return Machine(cwd=tmp_path / "project", homes=(str(tmp_path),))


def test_the_list_is_long_and_says_nothing_twice() -> None:
    """There are 300 commands or more, each another one."""
    assert len(set(_COMMANDS)) == len(_COMMANDS) >= 300


def test_usual_read_only_commands_are_not_taken_for_writes(machine: Machine) -> None:
    """At most two in a hundred commands of the list come out as `may_write`."""
    refused = {}
    for command in _COMMANDS:
        effects = effects_of(ToolCall("terminal", {"command": command}), machine=machine)
        if effects.may_write:
            refused[command] = [*effects.unknown, *(str(change) for change in effects.changes)]
    shown = "\n".join(f"{command}\n    {'; '.join(why)}" for command, why in refused.items())
    print(f"{len(refused)} of {len(_COMMANDS)} may write:\n{shown}")
    assert len(refused) <= _MOST * len(_COMMANDS), f"{len(refused)} may write:\n{shown}"
