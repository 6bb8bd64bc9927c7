"""Reminds the model of something once in every N turns.

The text keeps its place for the whole turn (`keep="turn"`), so that the provider's cache holds,
and it is never saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_ext import HookResult, RequestResult, SessionState, TurnState, register_hook


# Subagents have turns of their own, in the same conversation: those do not count.
@register_hook("before_llm_call", origins=["user", "api", "cron", "batch"])
def remind(
    config: Mapping[str, Any],
    state: TurnState,
    session_state: SessionState,
) -> RequestResult:
    """Count the turn at its first request, and remind in the first, the N+1st, …"""
    if state.count("turn_reminder.requests") > 1:
        return None
    if (session_state.count("turns") - 1) % config["every"]:
        return None
    return HookResult.inject_user(config["text"], keep="turn")
