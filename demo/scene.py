"""The scene: a project with a bug, the script that the model plays, and a scratch Hermes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.harness.home import HermesHome, Run

from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse

PROMPT = "Fix the bug in app.py"
PLAN = "plans/active/plan.md"

BUGGY = """\
def total(prices):
    result = 0
    for price in prices:
        result -= price
    return result
"""
FIXED = BUGGY.replace("-=", "+=")
TEST = """\
import unittest

from app import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([2, 3]), 5)
"""

_FIX = {"path": "app.py", "old_string": "result -= price", "new_string": "result += price"}
SHELL = "sed -i s/-=/+=/ app.py"
LOOK = "cat app.py | head -n 20"
SCRIPT = (
    Reply("I see the bug.", (ToolUse("patch", {"mode": "replace", **_FIX}),)),
    Reply("Then I change it in the shell.", (ToolUse("terminal", {"command": SHELL}),)),
    Reply("What is in the file?", (ToolUse("terminal", {"command": LOOK}),)),
    Reply(
        "I write the plan first.",
        (
            ToolUse(
                "write_file",
                {
                    "path": PLAN,
                    "content": "# Fix total()\n\nIt subtracts: change -= to += in app.py. "
                    "test_app.py has to pass.\n",
                },
            ),
        ),
    ),
    Reply("Now the fix.", (ToolUse("patch", {"mode": "replace", **_FIX}),)),
    Reply("Fixed: total() adds up again. The plan is in plans/active/plan.md."),
)


SCENES = {1: "1. An edit", 2: "2. The shell way around", 4: "3. The plan, then the edit"}
"""What begins with which tool call."""


class Scene:
    """The folders, the model and Hermes; a context manager.

    states: what was in app.py when each of the model's requests came.
    """

    def __init__(
        self, folder: Path, *, extensions: Mapping[str, Any], config: Mapping[str, Any]
    ) -> None:
        self.states: list[str] = []
        self.model = ScriptedModel(self._reply)
        self._folder, self._extensions, self._config = folder, extensions, config

    def __enter__(self) -> Self:
        self.model.__enter__()
        # `hermes -z` ends without a farewell, and leaves the folder of confined calls there.
        temporary = self._folder / "tmp"
        temporary.mkdir()
        self.hermes = HermesHome(
            self._folder,
            self.model,
            extra_env={"TMPDIR": str(temporary)},
            extensions=self._extensions,
            config=self._config,
            git=True,
        )
        (self.project / "app.py").write_text(BUGGY, encoding="utf-8")
        (self.project / "test_app.py").write_text(TEST, encoding="utf-8")
        self.before = self.files()
        self.failed_before = not self.test_passes()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.model.__exit__(kind, error, trace)

    @property
    def project(self) -> Path:
        """The project's folder."""
        return self.hermes.project

    @property
    def decision_log(self) -> Path:
        """Where the decisions are logged."""
        return self.hermes.home / "logs" / "extensions.jsonl"

    def run(self, prompt: str, seconds: float) -> Run:
        """The real `hermes -z`; raises TimeoutError with its output if it is late."""
        return self.hermes.oneshot(prompt, timeout=seconds)

    def files(self) -> dict[str, str]:
        """Digests of the project's files by relative path, without git's own."""
        paths = (path for path in self.project.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.project)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
            if path.relative_to(self.project).parts[0] != ".git"
        }

    def test_passes(self) -> bool:
        """Whether the project's own test passes."""
        # -B: the tests must leave nothing behind that looks like a change.
        command = (sys.executable, "-B", "-m", "unittest", "-q", "test_app")
        done = subprocess.run(
            command, cwd=self.project, env=self.hermes.env(), capture_output=True, check=False
        )
        return done.returncode == 0

    def _reply(self, _request: ModelRequest) -> Reply:
        self.states.append((self.project / "app.py").read_text(encoding="utf-8"))
        return SCRIPT[min(len(self.states), len(SCRIPT)) - 1]
