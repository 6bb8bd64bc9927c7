"""What may be delegated: how deep, how much in a conversation, and which goals.

Agents that are started as programs (`hermes -z`, `acp_command`) are refused: nobody counts those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hermes_ext import CallVerdict, HookResult, SessionState, ToolCall, register_hook
from hermes_ext.effects import effects_of


@register_hook("intercept_tool_call", guard=True)
def no_other_agents(event: ToolCall, config: Mapping[str, Any]) -> CallVerdict:
    """Refuse agents that are started in another way."""
    for command in effects_of(event).commands:
        if command.name in config["programs"]:
            return blocked("programs", f"{command.name} is an agent. Use delegate_task.")
    return None


@register_hook("intercept_tool_call", guard=True, tools=["delegate_task"])
def policy(
    tool_args: dict[str, Any],
    config: Mapping[str, Any],
    session_id: str,
    is_subagent: bool | None,
    parent_session_id: str | None,
    session_state: SessionState,
) -> CallVerdict:
    """Judge the tasks of one call."""
    # Subagents share the conversation's state, and who has children was here before them.
    depth = 0
    if is_subagent:
        depth = session_state.get(f"depth {parent_session_id}", config["depth"]) + 1
    session_state[f"depth {session_id}"] = depth
    if depth >= config["depth"]:
        return blocked("depth", "Subagents delegate no further here. Do it yourself.")
    tasks = tool_args.get("tasks") or [tool_args]
    if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
        return blocked("goals", "`tasks` has to be a list of objects.")
    for task in tasks:
        goal = str(task.get("goal") or "")
        if len(goal) < config["goal_length"]:
            return blocked("goal_length", f"Say more of the goal {goal!r}: what, where, and why.")
    for pattern in config["refused"]:
        if re.search(pattern, str(tool_args), re.IGNORECASE):  # goals, contexts, all there is
            return blocked("refused", f"Tasks like {pattern!r} are not delegated.")
    # Last, so that what is refused for its words is not counted.
    if session_state.count("tasks", by=len(tasks)) > config["tasks"]:
        return blocked("tasks", f"No more than {config['tasks']} tasks in a conversation.")
    return None


def blocked(setting: str, told: str) -> HookResult[Any]:
    return HookResult.block(told, metadata={"setting": f"extensions.delegate_policy.{setting}"})
