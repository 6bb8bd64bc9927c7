"""`/plan on`: until `/plan off` the agent may look at everything and change nothing but plans.

It holds over turns, restarts and subagents. Only a person can end it: agents cannot type slash
commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    RequestResult,
    SessionState,
    ToolCall,
    register_command,
    register_hook,
)
from hermes_ext.effects import effects_of


@register_command("plan", args_hint="on|off", help="plan before anything is changed")
def plan(args: str, session_state: SessionState, config: Mapping[str, Any]) -> str:
    """Turn it on or off, or tell which."""
    if args.strip() in ("on", "off"):
        session_state["on"] = args.strip() == "on"
    elif args.strip():
        return "Type /plan on, /plan off, or /plan."
    now = "on: only files below {} may change" if session_state.get("on") else "off"
    return f"Plan mode is {now.format(config['folder'])}."


@register_hook("before_llm_call")
def remind(session_state: SessionState, config: Mapping[str, Any]) -> RequestResult:
    """Say so in each request, in the same words: that keeps the provider's cache."""
    if not session_state.get("on"):
        return None
    return HookResult.inject_system(
        f"Plan mode is on. Look around, then write a plan to {config['folder']}/ and show it to "
        "the user. All other changes are refused until the user has typed /plan off."
    )


@register_hook("intercept_tool_call", guard=True)
def only_plans(
    event: ToolCall,
    session_state: SessionState,
    config: Mapping[str, Any],
    project_root: Path | None,
    cwd: Path | None,
) -> CallVerdict:
    """Refuse what may change anything else."""
    effects, root = effects_of(event), project_root or cwd
    if not session_state.get("on") or not effects.may_write:
        return None
    told = f"Plan mode is on: only plans in {config['folder']}/ may be written."
    if root is None or event.machine is None or not effects.exact:
        return HookResult.block(f"{told} What else this writes is not known.")
    folder = event.machine.resolve(root) / config["folder"]
    # A link in there would lead the next write out of it.
    if any(each.link or not each.path.is_relative_to(folder) for each in effects.changes):
        return HookResult.block(told)
    return None
