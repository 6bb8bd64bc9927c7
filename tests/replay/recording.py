"""A home whose decision log has payloads, and its events run again in this process."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes_ext import Runtime
from hermes_ext.replay.replaying import replay
from hermes_ext.settings.config import read_config
from hermes_ext.turns.decisions.reading import read_decisions

HEAD = "from hermes_ext import HookResult, register_hook\n"


class Recording:
    """What happens in it is recorded; `again` says what today's extensions make of it."""

    def __init__(self, base: Path) -> None:
        self.home, self.cwd = base / "home", base / "work"
        self.home.mkdir()
        self.cwd.mkdir()
        self.config()

    @property
    def log(self) -> Path:
        return self.home / "logs" / "extensions.jsonl"

    def config(self, more: str = "", log: str = "payloads") -> Path:
        file = self.home / "config.yaml"
        file.write_text(f"extensions:\n  log: {log}\n{textwrap.indent(more, '  ')}")
        return file

    def add(self, name: str, code: str, manifest: str | None = None) -> Path:
        folder = self.home / "extensions" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(HEAD + textwrap.dedent(code))
        if manifest is not None:
            (folder / "extension.yaml").write_text(manifest)
        return folder

    @contextmanager
    def runtime(self, **more: Any) -> Iterator[Runtime]:
        """The runtime of this home; what it did is in the log afterwards."""
        made = Runtime.from_config(home=self.home, cwd=self.cwd, **more)
        yield made
        made.close()

    def lines(self) -> list[dict[str, Any]]:
        return [*read_decisions(self.log)]

    def again(
        self, chosen: Sequence[int] | None = None, extension: str | None = None
    ) -> dict[str, Any]:
        """What `replay` finds, of all lines or of those with these numbers."""
        lines = self.lines()
        numbers = range(len(lines)) if chosen is None else chosen
        told = replay(
            lines,
            frozenset(numbers),
            extension=extension,
            home=self.home,
            cwd=self.cwd,
            config=read_config(self.home),
            import_seconds=20,
            prog="hermes-ext",
            progress=lambda number, events, label: None,
        )
        json.dumps(told, default=str)
        return told


def actions(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Of each change the actions then and now."""
    return [(each["then"]["action"], each["now"]["action"]) for each in told["changed"]]
