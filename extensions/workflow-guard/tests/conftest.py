"""The extension as a user has it on, without Hermes; and what starts the real Hermes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import hermes, hermes_start, model_factory

from hermes_ext import ChainOutcome, Runtime, ToolCall
from hermes_ext.confine import Confinement

__all__ = ["guarded", "hermes", "hermes_start", "model_factory"]


class Host:
    """A host that confines what it is asked to."""

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        """Nothing speaks against it."""


class Guarded:
    """A project folder, and a runtime in which only workflow-guard is on.

    root: where the repository begins, if that is not the folder itself. confines: whether the host
    can confine calls.
    """

    def __init__(
        self, base: Path, root: Path | None = None, *, confines: bool = True, **settings: Any
    ) -> None:
        self.home = base / "home"
        self.root = root or base / "project"
        self.cwd = base / "project"
        for folder in (self.home, self.root, self.cwd):
            folder.mkdir(parents=True, exist_ok=True)
        section = {"on": ["workflow-guard"], "log": "off", "workflow-guard": settings}
        config = json.dumps({"extensions": section}, ensure_ascii=False)
        (self.home / "config.yaml").write_text(config, encoding="utf-8")
        host = Host() if confines else None
        self.runtime = Runtime.from_config(home=self.home, cwd=self.cwd, confiner=host)
        assert self.runtime.handlers, (self.runtime.records, self.runtime.problems)

    def write(self, path: str, text: str = "# Plan\n") -> Path:
        """Put a file below the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def call(self, tool: str, args: dict[str, Any], **turn: Any) -> ChainOutcome:
        """What becomes of a tool call in a turn of its own."""
        read_only = turn.pop("read_only", False)
        with self._turn(**turn) as opened:
            return opened.intercept_tool_call(tool, args, tool_call_id="c1", read_only=read_only)

    def input(self, message: Any, command: str | None = None, **turn: Any) -> ChainOutcome:
        """What becomes of a user's message in a turn of its own."""
        with self._turn(**turn) as opened:
            return opened.transform_user_input(message, command=command)

    def instructions(self, **turn: Any) -> tuple[str, ...]:
        """What the system prompt gets."""
        with self._turn(**turn) as opened:
            messages = [{"role": "user", "content": "hello"}]
            return tuple(opened.before_llm_call(messages, "You are helpful.").system_injections)

    def _turn(self, **turn: Any) -> Any:
        where = {"cwd": self.cwd, "project_root": self.root}
        session = turn.pop("session", "s1")
        return self.runtime.turn(session_id=session, platform="cli", **(where | turn))


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Guarded]:
    """Builds a `Guarded` with the given settings; all of a test in one folder."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return lambda **options: Guarded(tmp_path, **options)


@pytest.fixture(scope="module", params=[True, False], ids=["kernel", "no kernel"])
def untouched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    """One with the default settings and without a plan, for tests that change nothing."""
    base = tmp_path_factory.mktemp("untouched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERMES_HOME", str(base / "home"))
        guard = Guarded(base, confines=request.param)
        for folder in ("plans/active", "handoff"):
            (guard.root / folder).mkdir(parents=True)
        yield guard
