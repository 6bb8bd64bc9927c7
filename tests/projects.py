"""A Hermes home and a project with extensions of its own, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes_ext.trust.place import find_project
from hermes_ext.trust.store import TrustStore
from hermes_ext.trust.tree import read_tree

GOOD = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call")
def check(tool_args, config):
    return HookResult.block("from the project") if tool_args.get("stop") else None
"""

GUARD = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args, config):
    return HookResult.block("from the guard") if tool_args.get("stop") else None
"""


class Place:
    """`home/` (a Hermes home) and `repo/` (a repository) below `base`."""

    def __init__(self, base: Path, name: str = "repo", home: Path | None = None) -> None:
        self.home = home or base / "home"
        self.root = base / name
        self.hermes = self.root / ".hermes"
        (self.home / "extensions").mkdir(parents=True, exist_ok=True)
        (self.root / ".git").mkdir(parents=True)

    def config(self, text: str) -> None:
        """Write the user's `extensions` section."""
        (self.home / "config.yaml").write_text(f"extensions:\n{text}", encoding="utf-8")

    def settings(self, text: str) -> None:
        """Write the project's `extensions.yaml`."""
        self.hermes.mkdir(parents=True, exist_ok=True)
        (self.hermes / "extensions.yaml").write_text(text, encoding="utf-8")

    def add(
        self, name: str, source: str | Mapping[str, str] = GOOD, *, to_home: bool = False
    ) -> Path:
        """An extension of the project, or of the home: `__init__.py`, or the files given."""
        root = self.home if to_home else self.hermes
        folder = root / "extensions" / name
        files = {"__init__.py": source} if isinstance(source, str) else source
        for relative, text in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    def trust(self) -> str:
        """Trust the project as it is now; returns its digest."""
        project = find_project(self.root, home=self.home, global_dir=self.home / "extensions")
        assert project is not None
        return TrustStore(self.home).trust(read_tree(project)).digest

    def untrust(self) -> None:
        """Withdraw it."""
        assert TrustStore(self.home).untrust(self.root.resolve()) is not None
