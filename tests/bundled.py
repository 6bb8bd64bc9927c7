"""A bundled extension as a user has it on: by its name in `config.yaml`, in its own project."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from hermes_ext import ChainOutcome, Runtime, Turn

ROOT = Path(__file__).resolve().parents[1]


class Bundled:
    """A project folder, a Hermes home, and a runtime in which only this extension is on."""

    def __init__(self, base: Path, name: str, **settings: Any) -> None:
        self.name = name
        self.home = base / "home"
        self.project = base / "project"
        for folder in (self.home, self.project / ".git"):
            folder.mkdir(parents=True, exist_ok=True)
        self.runtime = self.restarted(**settings)

    def restarted(self, **settings: Any) -> Runtime:
        """The runtime of a new process; state that is kept on disk is still there."""
        section = {"on": [self.name], "log": "off", self.name: settings}
        config = json.dumps({"extensions": section}, ensure_ascii=False)
        (self.home / "config.yaml").write_text(config, encoding="utf-8")
        self.runtime = Runtime.from_config(home=self.home, cwd=self.project)
        names = {handler.extension for handler in self.runtime.handlers}
        assert self.name in names, (self.runtime.records, self.runtime.problems)
        return self.runtime

    def without_store(self) -> None:
        """From now on no session state can be read or stored."""
        (self.home / "extensions-state.db").mkdir()

    def write(self, path: str, text: str = "x\n") -> Path:
        """Put a file into the project."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def turn(self, session_id: str = "s1", **turn: Any) -> Turn:
        """A turn; use it in `with`."""
        where = {"cwd": self.project, "project_root": self.project}
        return self.runtime.turn(session_id=session_id, platform="cli", **(where | turn))

    def call(self, tool: str, args: dict[str, Any], **turn: Any) -> ChainOutcome:
        """What becomes of a tool call in a turn of its own, with nobody to ask."""
        with self.turn(**turn) as opened:
            return opened.intercept_tool_call(tool, args)

    def judged(self, tool: str, args: dict[str, Any], **turn: Any) -> ChainOutcome:
        """The same before anybody is asked."""
        with self.turn(**turn) as opened:
            return opened.judge_tool_call(tool, args)

    def shell(self, command: str) -> ChainOutcome:
        """What becomes of a command in the terminal, before anybody is asked."""
        return self.judged("terminal", {"command": command})


def readme_of(name: str) -> str:
    """The page of a bundled extension."""
    return (ROOT / "extensions" / name / "README.md").read_text(encoding="utf-8")


def settings_in(readme: str, name: str) -> dict[str, Any]:
    """The extension's settings in the first YAML block of its page."""
    # YAML 1.2: in 1.1, `on` is a boolean.
    block = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)[0]
    found = YAML(typ="safe").load(block)["extensions"].get(name, {})
    assert isinstance(found, dict)
    return found


def prompt_in(readme: str) -> str:
    """The request of the first `hermes -z "…"` of a page."""
    return re.findall(r'hermes -z "(.*?)"', readme)[0]


def enable_in(readme: str) -> list[str]:
    """The words behind `hermes-ext` of the first `hermes-ext enable …` of a page."""
    found = re.findall(r"^\$? ?hermes-ext (enable .*)$", readme, re.MULTILINE)[0]
    return str(found).split()


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a bundled extension's settings."""
    file = ROOT / "extensions" / name / "extension.yaml"
    found = YAML(typ="safe").load(file.read_text(encoding="utf-8"))["config"]
    assert isinstance(found, dict)
    return found
