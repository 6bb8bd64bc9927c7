"""Builders of handlers and chains for tests, with defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermes_ext import LLMRequest, ToolCall, ToolResult, UserInput, register_hook
from hermes_ext.chain.fold import CompiledChain, run
from hermes_ext.chain.manager import HookManager
from hermes_ext.chain.outcome import ChainOutcome
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import Event, Scope
from hermes_ext.hooks.registration import build_handlers, collecting
from hermes_ext.hooks.source import Source

SCOPE = Scope(session_id="s1", turn_id="t1")

EVENTS: dict[str, Event] = {
    "transform_user_input": UserInput("hello"),
    "before_llm_call": LLMRequest([{"role": "user", "content": "hello"}], "You are helpful."),
    "intercept_tool_call": ToolCall("terminal", {"command": "ls", "env": {"A": "1"}}, "c1"),
    "transform_tool_result": ToolResult("terminal", {"command": "ls"}, "c1", "a.py"),
}


def handler(
    function: Callable[..., Any],
    hook: Any = "intercept_tool_call",
    *,
    extension: str = "ext",
    source: Source = Source.GLOBAL,
    config: Any = None,
    observe: bool = False,
    **options: Any,
) -> Handler:
    """One handler from a function, which may be used for any number of them."""
    with collecting() as collected:
        register_hook(hook, **options)(function)
    (built,) = build_handlers(extension, collected, source=source, config=config, observe=observe)
    return built


def chain(*handlers: Handler, origin: str = "user", tool: str = "terminal") -> CompiledChain:
    """The chain of handlers that are for one hook."""
    return HookManager(handlers).chain(handlers[0].hook, tool, origin)


def outcome_of(*handlers: Handler, event: Event | None = None, **options: Any) -> ChainOutcome:
    """The outcome of a chain over the hook's sample event."""
    scope = options.pop("scope", SCOPE)
    sample = EVENTS[handlers[0].hook.value] if event is None else event
    return run(chain(*handlers), sample, scope, **options)
