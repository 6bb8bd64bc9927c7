"""What type checkers must accept, mypy --strict and pyright: no line here gives an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

from hermes_ext import (
    Action,
    CallResult,
    CallVerdict,
    HookResult,
    InputResult,
    InputVerdict,
    LLMRequest,
    RequestResult,
    RequestVerdict,
    SessionState,
    ToolCall,
    ToolOutputResult,
    ToolOutputVerdict,
    ToolResult,
    TurnState,
    UserInput,
    hookimpl,
    register_hook,
)


@register_hook("transform_user_input", priority=10)
def rewrite_input(user_message: str) -> InputResult:
    if user_message.startswith("/"):
        return HookResult("rewrite", user_message[1:])
    if not user_message:
        return HookResult.answer("Say something.")
    return HookResult.pass_()


@register_hook("transform_user_input", guard=True, on_error="pass", on_store_error="block")
def guard_input(event: UserInput) -> InputVerdict:
    if "secret" in event.text:
        return HookResult("block", "no secrets")
    return None


@register_hook("before_llm_call")
async def inject(messages: list[dict[str, Any]], system_prompt: str) -> RequestResult:
    if not messages:
        return HookResult.rewrite([*messages, {"role": "user", "content": system_prompt}])
    return HookResult.inject_system("Plan first.", keep="turn")


@register_hook("before_llm_call", guard=True, timeout=2.5)
async def guard_request(event: LLMRequest) -> RequestVerdict:
    return HookResult.block("too long") if len(event.messages) > 10_000 else None


@register_hook("intercept_tool_call", tools=["terminal", "mcp_*"], before=["other"])
def change_call(tool_args: dict[str, Any], cwd: Path | None = None) -> CallResult:
    if cwd is None:
        return HookResult(Action.ANSWER, "{}")
    if not cwd.exists():
        return HookResult("confine", {"reason": "nothing there"})
    return HookResult.rewrite({**tool_args, "cwd": str(cwd)}, metadata={"seen": True})


@register_hook(
    "intercept_tool_call", guard=True, tools=("terminal",), on_error="ask", on_store_error="pass"
)
def guard_call(event: ToolCall) -> CallVerdict:
    if event.tool_name == "terminal":
        return HookResult.ask("a command", key="terminal")
    if event.read_only:
        return HookResult.confine(["plans", Path("docs")], "none", reason="no plan yet")
    return HookResult(Action.BLOCK, "no")


@register_hook("transform_tool_result")
def shorten(result: str) -> ToolOutputResult:
    return HookResult.rewrite(result[:1000])


@register_hook("transform_tool_result", guard=True)
def withhold(result: str) -> ToolOutputVerdict:
    return HookResult.block("withheld") if "password" in result else None


@register_hook("transform_tool_result", priority=900)
def remember(event: ToolResult, state: TurnState, session_state: SessionState) -> None:
    with state.lock, session_state.lock:
        session_state["last"] = event.exit_code
        assert_type(state.count("runs") + session_state.count("runs"), int)


@register_hook("intercept_tool_call")
@register_hook("transform_tool_result")
def bare_annotation(tool_name: str) -> HookResult | None:
    return HookResult("pass") if tool_name else None


@register_hook("transform_user_input", priority=10)
def my_input_hook(user_message, **kwargs):  # type: ignore[no-untyped-def]
    return HookResult("rewrite", f"/start-feature {user_message}")


@hookimpl
def intercept_tool_call(tool_name: str) -> CallResult:
    return None


class Plugin:
    @hookimpl(priority=5, guard=True)
    def before_llm_call(self, system_prompt: str) -> RequestVerdict:
        return None


def verdict_as_result(verdict: CallVerdict) -> CallResult:
    return verdict


assert_type(shorten("x"), ToolOutputResult)
assert_type(guard_call(ToolCall("terminal", {})), CallVerdict)
