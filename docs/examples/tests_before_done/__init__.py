"""No commit, no push and no `kanban_complete` until the tests have run since the last write.

They count if they run alone, as the setting says, and end with 0. A script can hide a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    SessionState,
    ToolCall,
    ToolResult,
    TurnState,
    register_hook,
)
from hermes_ext.effects import Effects, effects_of

DONE, BOOKKEEPING = {"commit", "push"}, {"commit", "push", "add", "fetch", "tag"}


@register_hook("intercept_tool_call", guard=True)
def tests_first(
    event: ToolCall,
    tool_call_id: str,
    config: Mapping[str, Any],
    state: TurnState,
    session_state: SessionState,
    project_root: Path | None,
) -> CallVerdict:
    """Count writes, and refuse what ends the work while there are untested ones."""
    effects, key = effects_of(event), f"tests_before_done.{tool_call_id}"
    if is_tests(event, config["tests"], project_root):
        state[key] = session_state.get("writes", 0)  # those that come later are not tested
        return None
    writes = effects.may_write and not is_bookkeeping(effects)
    if event.tool_name in config["done_tools"] or any(
        each.name in ("git", None) and any(arg is None or arg in DONE for arg in each.args)
        for each in effects.commands
    ):
        if writes:
            return HookResult.block("This does more than git commit or push: take it apart.")
        if session_state.get("tested", 0) != session_state.get("writes", 0):
            tests = "`, or `".join(config["tests"])
            return HookResult.block(f"Files were changed and not tested since: run `{tests}`.")
    if writes:
        state[key] = None
        session_state.count("writes")
    return None


@register_hook("transform_tool_result", priority=900)
def notice(
    event: ToolResult, tool_call_id: str, state: TurnState, session_state: SessionState
) -> None:
    """A write counts again when it ends: tests that ran beside it have not seen it."""
    begun = state.pop(f"tests_before_done.{tool_call_id}", -1)
    if begun is None:
        session_state.count("writes")
    elif begun >= 0 and event.exit_code == 0:
        session_state["tested"] = max(begun, session_state.get("tested", 0))


def is_tests(event: ToolCall, tests: list[str], root: Path | None) -> bool:
    args, machine = event.tool_args, event.machine
    if event.tool_name != "terminal" or machine is None or root is None:
        return False
    there = machine.resolve(args.get("workdir") or args.get("cwd") or ".") == machine.resolve(root)
    return there and not args.get("background") and str(args.get("command")).strip() in tests


def is_bookkeeping(effects: Effects) -> bool:
    called = {each.args[0] if each.name == "git" and each.args else "" for each in effects.commands}
    inside = all(".git" in change.path.parts for change in effects.changes)
    return inside and bool(called) and called <= BOOKKEEPING
