"""The canary's extension: every hook changes something and leaves a record that it fired.

It is copied into a scratch home and runs there, inside of Hermes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hermes_ext import HookResult, register_hook
from hermes_ext.hosts.hermes.canary import marks
from hermes_ext.hosts.hermes.facts.tools import TOOLS


def _record(hook: str, event: str) -> None:
    line = json.dumps({"hook": hook, "event": event}) + "\n"
    # One write, so that lines of parallel calls stay whole.
    with open(os.environ[marks.RECORDS], "ab", buffering=0) as file:
        file.write(line.encode())


@register_hook("transform_user_input")
def rewrite_input(user_message: str) -> HookResult[Any]:
    _record("transform_user_input", "the input")
    return HookResult.rewrite(user_message.replace(marks.TYPED, marks.REWRITTEN))


@register_hook("before_llm_call")
def inject(api_call_count: int) -> HookResult[Any]:
    _record("before_llm_call", f"request {api_call_count}")
    return HookResult.inject_system(marks.NOTE)


@register_hook("intercept_tool_call")
def rewrite_call(tool_name: str, tool_args: dict[str, Any], tool_call_id: str) -> Any:
    _record("intercept_tool_call", f"{tool_name} ({tool_call_id})")
    if tool_name == "read_file":
        path = str(Path(tool_args["path"]).with_name(marks.GIVEN_FILE))
        return HookResult.rewrite({**tool_args, "path": path})
    if TOOLS.get(tool_name) is TOOLS["todo"]:
        text = json.dumps(tool_args).replace(marks.ASKED, marks.GIVEN)
        return HookResult.rewrite(json.loads(text))
    return None


@register_hook("intercept_tool_call", guard=True, tools=["write_file"])
def refuse_writing(tool_args: dict[str, Any]) -> Any:
    if Path(str(tool_args.get("path"))).name == marks.BLOCKED_FILE:
        return HookResult.block(marks.REFUSAL)
    return None


@register_hook("intercept_tool_call", guard=True, tools=["terminal"])
def confine_commands() -> Any:
    return HookResult.confine(reason=marks.REFUSAL)


@register_hook("transform_tool_result")
def rewrite_result(tool_name: str, tool_call_id: str, result: str) -> HookResult[Any]:
    _record("transform_tool_result", f"{tool_name} ({tool_call_id})")
    return HookResult.rewrite(result.replace(marks.RAW, marks.SEEN))
