"""Another host brings its tools; no room of the package is changed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext import Runtime
from hermes_ext.effects import Machine, Tool, ToolTable
from hermes_ext.effects.readings import reads, runs_shell, writes

TOOLS = ToolTable(
    (
        Tool("put", writes(paths="where")),
        Tool("look", reads(paths="where")),
        Tool("sh", runs_shell()),
    )
)
GUARD = """\
from hermes_ext import HookResult, register_hook
from hermes_ext.effects import effects_of

@register_hook("intercept_tool_call", guard=True)
def keeps_the_secret(event):
    effects = effects_of(event)
    if not effects.exact or any(path.name == "secret" for path in effects.writes):
        return HookResult.block("not the secret")
"""


@pytest.mark.parametrize(
    ("tool", "args", "blocked_by"),
    [
        ("put", {"where": "notes", "text": "x"}, None),
        ("put", {"where": "secret", "text": "x"}, "keep"),
        ("look", {"where": "secret"}, None),
        ("sh", {"command": "echo x > secret"}, "keep"),
        ("sh", {"command": "echo x > notes"}, None),
        ("put", {"where": "../home/extensions/keep.py", "text": "x"}, "hermes-ext"),
    ],
)
def test_guards_read_the_calls_of_another_host(
    tmp_path: Path, tool: str, args: dict[str, str], blocked_by: str | None
) -> None:
    """An extension's guard and the package's own judge by the table that the host gives."""
    home, work = tmp_path / "home", tmp_path / "work"
    (home / "extensions").mkdir(parents=True)
    (home / "extensions" / "keep.py").write_text(GUARD, encoding="utf-8")
    work.mkdir()
    runtime = Runtime.from_config(home=home, cwd=work)
    runtime.machine = Machine(tools=TOOLS)
    with runtime.turn(session_id="s1", cwd=work) as turn:
        assert turn.intercept_tool_call(tool, args).blocked_by == blocked_by
