"""Limits on what a turn, and a conversation, may use. README.md says what is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

from hermes_ext import CallVerdict, HookResult, RequestResult, register_hook
from hermes_ext.exceptions import StateError

from .tokens import tokens_of

_WORDS = {"tool_calls": "tool calls", "requests": "requests to the model", "tokens": "tokens"}


@frozen
class _Use:
    """How much of one limit is used. scope: `turn` or `conversation`."""

    scope: str
    what: str
    used: int
    limit: int

    @property
    def setting(self) -> str:
        return f"extensions.budget.per_{self.scope}.{self.what}"

    def __str__(self) -> str:
        return f"{self.used} of {self.limit} {_WORDS[self.what]} of this {self.scope}"


@register_hook("intercept_tool_call", guard=True)
def calls(config: Mapping[str, Any], state: Any, session_state: Any) -> CallVerdict:
    """Count a tool call, and refuse it beyond the limit."""
    for use in _counted("tool_calls", 1, config, state, session_state):
        if use.used > use.limit:
            told = (
                f"The budget is used up: {use.limit} {_WORDS[use.what]} of this {use.scope}. "
                "No more tools run. Tell the user what is done and what is not."
            )
            return HookResult.block(told, metadata={"setting": use.setting})
    return None


# A limit that cannot be counted is not let pass.
@register_hook("before_llm_call", priority=900, on_store_error="block")
def requests(
    messages: Sequence[Mapping[str, Any]],
    system_prompt: str,
    config: Mapping[str, Any],
    state: Any,
    session_state: Any,
) -> RequestResult:
    """Count a request; the last one is told to answer, and beyond it there is none."""
    uses: list[_Use] = []
    for what in ("requests", "tokens"):
        by = 1 if what == "requests" else _tokens(messages, system_prompt, config, state)
        for use in _counted(what, by, config, state, session_state):
            if use.used > use.limit:
                return _over(use)
            uses.append(use)
    last = next((use for use in uses if use.what == "requests" and use.used == use.limit), None)
    if last is not None:
        told = "This is the last request of the budget: answer now, without any tool."
        return HookResult.inject_system(told, metadata={"setting": last.setting})
    return _warning([*uses, *_so_far(config, state, session_state)], config["warn_at"], state)


def _over(use: _Use) -> RequestResult:
    way_out = "send another message" if use.scope == "turn" else "begin a new conversation"
    told = (
        f"The budget is used up: {use.limit} {_WORDS[use.what]} of this {use.scope} "
        f"({use.setting} in config.yaml). To go on, {way_out}, or raise the limit."
    )
    return HookResult.block(told, metadata={"setting": use.setting})


def _tokens(
    messages: Sequence[Mapping[str, Any]], system_prompt: str, config: Mapping[str, Any], state: Any
) -> int:
    """The tokens of a request; 0, without a look at it, where nothing limits them."""
    limits = (_limit(config, scope, "tokens") for scope in ("turn", "conversation"))
    return 0 if set(limits) == {None} else tokens_of(messages, system_prompt, state)


def _warning(uses: Sequence[_Use], share: float | None, state: Any) -> RequestResult:
    near = [use for use in uses if share is not None and use.used >= share * use.limit]
    new = [use for use in near if state.count(f"budget.told.{use.setting}") == 1]
    if not new:
        return None
    used = "; ".join(map(str, new))
    told = f"Most of the budget is used: {used}. Finish what matters, and answer soon."
    return HookResult.inject_system(told, metadata={"setting": new[0].setting})


def _counted(
    what: str, by: int, config: Mapping[str, Any], state: Any, session_state: Any
) -> Iterator[_Use]:
    """Count in both scopes, and give those that have a limit.

    What is beyond the limit of the turn is refused, and does not count for the conversation: the
    caller stops there.
    """
    for scope, where, key in (
        ("turn", state, f"budget.{what}"),
        ("conversation", session_state, what),
    ):
        limit = _limit(config, scope, what)
        if limit is not None:
            yield _Use(scope, what, where.count(key, by), limit)


def _so_far(config: Mapping[str, Any], state: Any, session_state: Any) -> Iterator[_Use]:
    """The tool calls up to now."""
    counts = (("turn", state, "budget.tool_calls"), ("conversation", session_state, "tool_calls"))
    for scope, where, key in counts:
        limit = _limit(config, scope, "tool_calls")
        if limit is not None:
            with suppress(StateError):  # for the warning alone, a request is not refused
                yield _Use(scope, "tool_calls", where.get(key, 0), limit)


def _limit(config: Mapping[str, Any], scope: str, what: str) -> int | None:
    limit: int | None = config[f"per_{scope}"].get(what)
    return limit
