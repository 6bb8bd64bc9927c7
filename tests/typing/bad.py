"""What type checkers must refuse: an error on each marked line, and on no other."""

from __future__ import annotations

from hermes_ext import (
    CallVerdict,
    HookResult,
    InputResult,
    InputVerdict,
    RequestResult,
    ToolOutputResult,
    hookimpl,
    register_hook,
)


@register_hook("intercept_toolcall")  # E: no such hook
def misspelt(tool_name: str) -> None:
    return None


@register_hook("transform_user_input", guard=True)  # E: a guard may not rewrite
def guard_that_rewrites(user_message: str) -> InputResult:
    return HookResult.rewrite(user_message)


@register_hook("before_llm_call", guard=True)  # E: nor inject, when async
async def guard_that_injects(system_prompt: str) -> RequestResult:
    return HookResult.inject_system(system_prompt)


@register_hook("transform_user_input")  # E: only tool calls can be asked about
def asks_about_input(user_message: str) -> CallVerdict:
    return HookResult.ask(user_message)


@register_hook("transform_tool_result")  # E: a dict is no result
def returns_a_dict(result: str) -> dict[str, str]:
    return {"action": "block"}


@register_hook("transform_user_input", tools=["terminal"])  # E: no tools there
def with_tools(user_message: str) -> InputResult:
    return None


@register_hook("before_llm_call", on_store_error="ask")  # E: cannot ask
def asks_without_store(system_prompt: str) -> RequestResult:
    return None


@register_hook("before_llm_call", on_error="ask")  # E: cannot ask
def asks_on_error(system_prompt: str) -> RequestResult:
    return None


@register_hook("intercept_tool_call", priority="10")  # E: not an int
def with_text_as_priority(tool_name: str) -> CallVerdict:
    return None


@register_hook("intercept_tool_call", tools="terminal")  # E: a str is no list
def with_text_as_tools(tool_name: str) -> CallVerdict:
    return None


def verdict_that_rewrites(text: str) -> InputVerdict:
    return HookResult.rewrite(text)  # E: not a verdict


def verdict_by_name(text: str) -> CallVerdict:
    return HookResult("answer", text)  # E: not a verdict


def output_that_injects(text: str) -> ToolOutputResult:
    return HookResult.inject_user(text)  # E: not for results


def input_that_is_confined(text: str) -> InputVerdict:
    return HookResult.confine(reason=text)  # E: only for tool calls


HookResult("deny", "no")  # E: no such action
HookResult.confine(["plans"])  # E: needs a reason
HookResult.confine(["plans"], "lan", reason="text")  # E: host or none
HookResult.confine([1], reason="text")  # E: not a path
HookResult.inject_system("text", keep="forever")  # E: request or turn
HookResult.block(None)  # E: needs a text


@hookimpl(tryfirst=True)  # E: pluggy's option
def before_llm_call(system_prompt: str) -> RequestResult:
    return None
