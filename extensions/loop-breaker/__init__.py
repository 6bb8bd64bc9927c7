# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Stops an agent that goes in circles. README.md says when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    ToolCall,
    ToolOutputResult,
    ToolResult,
    register_hook,
)
from hermes_ext.effects import effects_of

from .calls import Calls

_SETTING = "extensions.loop-breaker"
_CALLS = "loop-breaker.calls"
_FAILURES = "loop-breaker.failures"

# How Hermes says of an exit code that it means no failure: that `grep` has found nothing, say.
_NO_FAILURES = ("not an error", "often normal", "may still be valid")


@register_hook("intercept_tool_call", guard=True)
def not_again(
    event: ToolCall,
    tool_name: str,
    tool_args: dict[str, Any],
    tool_call_id: str,
    config: Mapping[str, Any],
    state: Any,
) -> CallVerdict:
    """Refuse a call that was made too often, or after too many that failed."""
    if event.tools.matches(tool_name, config["ignore"]):
        return None
    limit = config["failures_in_a_row"]
    failures = state.get(_FAILURES, 0)
    if limit is not None and failures > limit:
        return _blocked(
            f"{failures} calls in a row have failed, so no more tools run in this turn. Tell the "
            "user what you tried, what failed and what you need.",
            "failures_in_a_row",
        )
    with state.lock:
        calls = state.setdefault(_CALLS, Calls())
        times = calls.add(_digest(tool_name, tool_args), tool_call_id, config["window"])
    if config["same_call"] is not None and times >= config["same_call"]:
        return _blocked(
            f"This is call number {times} of {tool_name} with exactly these arguments, and nothing "
            "was changed in between. It will not give another result. Try something else, or tell "
            "the user what you are stuck with.",
            "same_call",
        )
    return None


@register_hook("transform_tool_result", priority=900)
def tell(
    event: ToolResult,
    tool_call_id: str,
    result: str,
    status: str | None,
    config: Mapping[str, Any],
    state: Any,
) -> ToolOutputResult:
    """Count failures, and tell the model once before calls are refused."""
    if event.tools.matches(event.tool_name, config["ignore"]):
        return None
    failed = _has_failed(result, status)
    effects = effects_of(event)
    digest = _digest(event.tool_name, event.tool_args)
    with state.lock:
        failures = state[_FAILURES] = state.get(_FAILURES, 0) + 1 if failed else 0
        calls = state.setdefault(_CALLS, Calls())
        times = calls.number(digest, tool_call_id)
        # A tool that failed has changed nothing, as far as it is known what it does.
        if effects.may_write and not (failed and effects.exact):
            calls.changed(digest)
    note = setting = ""
    if config["failures_in_a_row"] is not None and failures == config["failures_in_a_row"]:
        setting = "failures_in_a_row"
        note = f"{failures} calls in a row have failed. If the next one fails, no more tools run."
    elif config["same_call"] is not None and 1 < times == config["same_call"] - 1:
        setting = "same_call"
        note = "The same call again will be refused, unless something changes in between."
    if not note:
        return None
    metadata = {"setting": f"{_SETTING}.{setting}"}
    return HookResult.rewrite(f"{result}\n\n[loop-breaker] {note}", metadata=metadata)


def _digest(tool_name: str, tool_args: dict[str, Any]) -> str:
    """What is the same for the same call, however its arguments are ordered."""
    told = json.dumps([tool_name.strip().casefold(), tool_args], sort_keys=True, default=repr)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _has_failed(result: str, status: str | None) -> bool:
    if status not in (None, "ok"):
        return True
    try:
        # Hermes and extensions add notes behind it.
        told, _ = json.JSONDecoder().raw_decode(result.lstrip())
    except ValueError:
        return False
    if not isinstance(told, dict):
        return False
    meaning = str(told.get("exit_code_meaning"))
    if any(each in meaning for each in _NO_FAILURES):
        return False
    return bool(told.get("error")) or told.get("exit_code") not in (None, 0)


def _blocked(told: str, setting: str) -> HookResult[Any]:
    return HookResult.block(told, metadata={"setting": f"{_SETTING}.{setting}"})
