"""A Hermes home, a repository with rules of its own, and what the guard says of calls there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from hermes_ext import Runtime
from hermes_ext.guard.guard import own_guard
from hermes_ext.guard.places import Protected


@frozen
class Ground:
    """user: `~`. home: the Hermes home, in it. repo: where the agent works; it has a `.hermes`."""

    user: Path
    home: Path
    repo: Path
    runtime: Runtime

    def refusal(self, tool: str, args: dict[str, Any], cwd: Path | None = None) -> str | None:
        """What the model is told; None if the call may run."""
        with self.runtime.turn(session_id="s", cwd=cwd or self.repo) as turn:
            outcome = turn.intercept_tool_call(tool, args)
        assert outcome.errors == (), outcome.errors
        return outcome.message if outcome.blocked else None

    def shell(self, command: str, cwd: Path | None = None) -> str | None:
        return self.refusal("terminal", {"command": command}, cwd)

    def code(self, text: str) -> str | None:
        return self.refusal("execute_code", {"code": text})


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    user = tmp_path / "user"
    home = user / ".hermes"
    repo = user / "work" / "repo"
    for folder in ("extensions/mine", "plugins/p", "extensions-trust", "logs", "cache/hermes-ext"):
        (home / folder).mkdir(parents=True)
    for file in ("config.yaml", ".env", "extensions-trust/trusted.json", "logs/extensions.jsonl"):
        (home / file).write_text("x\n")
    (home / "extensions" / "mine" / "__init__.py").write_text("x\n")
    (repo / ".hermes" / "extensions" / "rule").mkdir(parents=True)
    (repo / ".hermes" / "extensions" / "rule" / "__init__.py").write_text("x\n")
    for repository in (repo, home):
        (repository / ".git").mkdir()
    (repo / "src").mkdir()
    (repo / "src" / "main.py").write_text("x\n")
    (repo / "README.md").write_text("x\n")
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("HERMES_HOME", str(home))
    os.link(home / "config.yaml", repo / "hard")
    (repo / "soft").symlink_to(home / "extensions")
    guard = own_guard(Protected.of(home, home / "extensions", ()))
    return Ground(user, home, repo, Runtime([guard]))
