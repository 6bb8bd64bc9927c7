# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Stops an agent that goes in circles. README.md says when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, MutableMapping
from fnmatch import fnmatchcase
from typing import Any

from hermes_ext import CallVerdict, HookResult, ToolOutputResult, ToolResult, register_hook
from hermes_ext.effects import effects_of

_SETTING = "extensions.loop-breaker"
_CHANGES = "loop-breaker.changes"
_FAILURES = "loop-breaker.failures"


@register_hook("intercept_tool_call", guard=True)
def not_again(
    tool_name: str, tool_args: dict[str, Any], config: Mapping[str, Any], state: Any
) -> CallVerdict:
    """Refuse a call that was made too often, or after too many that failed."""
    if _is_ignored(tool_name, config["ignore"]):
        return None
    limit = config["failures_in_a_row"]
    failures = state.get(_FAILURES, 0)
    if limit is not None and failures > limit:
        return _blocked(
            f"{failures} calls in a row have failed, so no more tools run in this turn. Tell the "
            "user what you tried, what failed and what you need.",
            "failures_in_a_row",
        )
    times = state.count(_key(tool_name, tool_args, state))
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
    tool_name: str,
    tool_args: dict[str, Any],
    result: str,
    status: str | None,
    config: Mapping[str, Any],
    state: Any,
) -> ToolOutputResult:
    """Count failures, and tell the model once before calls are refused."""
    if _is_ignored(tool_name, config["ignore"]):
        return None
    failed = _has_failed(result, status)
    failures = _in_a_row(failed, state)
    note = ""
    if config["failures_in_a_row"] is not None and failures == config["failures_in_a_row"]:
        note = f"{failures} calls in a row have failed. If the next one fails, no more tools run."
    times = state.get(_key(tool_name, tool_args, state), 0)
    if config["same_call"] is not None and times == config["same_call"] - 1:
        note = note or "The same call again will be refused, unless something changes in between."
    if not failed and effects_of(event).changes:
        # What was the same call before may give another result now; this one is not that.
        state.count(_CHANGES)
        state[_key(tool_name, tool_args, state)] = times
    return HookResult.rewrite(f"{result}\n\n[loop-breaker] {note}") if note else None


def _key(tool_name: str, tool_args: dict[str, Any], state: MutableMapping[str, Any]) -> str:
    """What is the same for the same call, however its arguments are ordered, until a change."""
    told = json.dumps([tool_name.strip().casefold(), tool_args], sort_keys=True, default=repr)
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"loop-breaker.{state.get(_CHANGES, 0)}.{digest}"


def _in_a_row(failed: bool, state: Any) -> int:
    with state.lock:
        state[_FAILURES] = state.get(_FAILURES, 0) + 1 if failed else 0
        return int(state[_FAILURES])


def _has_failed(result: str, status: str | None) -> bool:
    if status not in (None, "ok"):
        return True
    try:
        told = json.loads(result)
    except ValueError:
        return False
    if not isinstance(told, dict):
        return False
    return bool(told.get("error")) or told.get("exit_code") not in (None, 0)


def _is_ignored(tool_name: str, patterns: Iterable[str]) -> bool:
    name = tool_name.strip().casefold()
    return any(fnmatchcase(name, pattern.strip().casefold()) for pattern in patterns)


def _blocked(told: str, setting: str) -> HookResult[Any]:
    return HookResult.block(told, metadata={"setting": f"{_SETTING}.{setting}"})
