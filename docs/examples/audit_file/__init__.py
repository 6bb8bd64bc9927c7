"""Every tool call and every result as a line of JSON in a file.

`asked` is what the model wanted, `runs` what is left of it after all other extensions: an `asked`
without `runs` was refused. A line is one write, well below a millisecond; a full disk stops nobody.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_ext import CallVerdict, HookResult, ToolCall, ToolResult, register_hook
from hermes_ext.effects import effects_of


@register_hook("intercept_tool_call", priority=-1_000_000, on_error="pass")
def asked(event: ToolCall, config: Mapping[str, Any], session_id: str, turn_id: str) -> None:
    """First of the transformers: nobody has changed or refused it yet."""
    write("asked", event, config, session_id, turn_id, args=event.tool_args)


@register_hook("intercept_tool_call", guard=True, priority=1_000_000, on_error="pass")
def runs(event: ToolCall, config: Mapping[str, Any], session_id: str, turn_id: str) -> None:
    """Last of the guards: it runs, unless a person who is asked says no."""
    write("runs", event, config, session_id, turn_id, args=event.tool_args)


@register_hook("intercept_tool_call", guard=True)
def keep_off(event: ToolCall, config: Mapping[str, Any]) -> CallVerdict:
    """The agent does not edit what is noted of it."""
    effects, file = effects_of(event), file_of(config)
    if effects.change_of(file) or (effects.may_write and file in effects.mentions):
        return HookResult.block("The audit is not the agent's to change.")
    return None


@register_hook("transform_tool_result", guard=True, priority=1_000_000, on_error="pass")
def result(event: ToolResult, config: Mapping[str, Any], session_id: str, turn_id: str) -> None:
    """Last of the guards: what the model gets."""
    told = {"status": event.status, "ms": event.duration_ms, "result": event.result}
    write("result", event, config, session_id, turn_id, **told)


def write(
    what: str,
    event: ToolCall | ToolResult,
    config: Mapping[str, Any],
    session_id: str,
    turn_id: str,
    **more: Any,
) -> None:
    told = {"at": time.time(), "what": what, "session": session_id, "turn": turn_id}
    told |= {"call": event.tool_call_id, "tool": event.tool_name} | shortened(
        more, config["longest"]
    )
    line = json.dumps(told, default=repr).encode("ascii") + b"\n"
    file_of(config).parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file_of(config), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line)  # at the end, in one piece, whatever other threads write
    finally:
        os.close(handle)


def file_of(config: Mapping[str, Any]) -> Path:
    home = os.environ.get("HERMES_HOME") or os.path.expanduser("~/.hermes")
    return Path(os.path.realpath(home), "logs", config["file"])


def shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: shortened(each, longest) for key, each in value.items()}
    return [shortened(each, longest) for each in value] if isinstance(value, list) else value
