# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Keys and tokens are replaced before the model sees them. README.md says which, and where."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    InputResult,
    RequestResult,
    ToolCall,
    ToolOutputResult,
    register_hook,
)
from hermes_ext.effects import effects_of

from .finding import Finder, finder_for

_SETTING = "extensions.redact-secrets"
# Ours, and those that Hermes puts in place of some secrets in files that it reads.
_PLACEHOLDER = re.compile(r"\[redacted: [^\]\n]{1,80} [0-9a-f]{4}\]|«redacted[:-][^»\n]{0,80}»")

Tag = Callable[[str], str]


# After everything that may add to it, and closed where it fails: the model gets nothing then.
@register_hook("transform_user_input", priority=900, on_error="block")
def in_input(
    user_message: str,
    user_content: list[dict[str, Any]] | None,
    config: Mapping[str, Any],
    session_state: Any,
) -> InputResult:
    """Replace secrets in what the user wrote."""
    finder, tag = _finder(config), _tag(session_state)
    if user_content is None:
        told = finder.replaced(user_message, tag)
        return HookResult.rewrite(told) if told != user_message else None
    changed = [_part(part, finder, tag) for part in user_content]
    return HookResult.rewrite(changed) if changed != user_content else None


@register_hook("transform_tool_result", priority=900, on_error="block")
def in_results(result: str, config: Mapping[str, Any], session_state: Any) -> ToolOutputResult:
    """Replace secrets in what a tool gave."""
    told = _finder(config).replaced(result, _tag(session_state))
    return HookResult.rewrite(told) if told != result else None


@register_hook("before_llm_call", priority=900, on_error="block")
def in_requests(
    messages: list[dict[str, Any]], config: Mapping[str, Any], state: Any, session_state: Any
) -> RequestResult:
    """Replace secrets in the rest of a request; what was looked at in this turn is known."""
    if not config["history"]:
        return None
    known = state.setdefault("redact-secrets.known", {})
    finder, tag = _finder(config), _tag(session_state)

    def replaced(text: str) -> str:
        if text not in known:
            known[text] = finder.replaced(text, tag)
        return str(known[text])

    changed = False
    for message in messages:
        content = message.get("content")
        new = _in_content(content, replaced)
        if new != content:
            message["content"] = new
            changed = True
    return HookResult.rewrite(messages) if changed else None


@register_hook("intercept_tool_call", guard=True)
def not_instead_of_the_secret(event: ToolCall, tool_args: dict[str, Any]) -> CallVerdict:
    """Keep a placeholder out of files: it would take the place of the secret."""
    found = _PLACEHOLDER.search(json.dumps(tool_args, ensure_ascii=False, default=str))
    if found is None or not effects_of(event).may_write:
        return None
    told = (
        f"{found[0]} stands for a secret that you were not shown, and would be written in its "
        "place. Change only the lines around it, or ask the user to do it."
    )
    return HookResult.block(told, metadata={"setting": _SETTING})


def _part(part: dict[str, Any], finder: Finder, tag: Tag) -> dict[str, Any]:
    text = part.get("text")
    return {**part, "text": finder.replaced(text, tag)} if isinstance(text, str) else part


def _in_content(content: Any, replaced: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return replaced(content)
    if not isinstance(content, list):
        return content
    return [
        {**part, "text": replaced(part["text"])}
        if isinstance(part, dict) and isinstance(part.get("text"), str)
        else part
        for part in content
    ]


def _finder(config: Mapping[str, Any]) -> Finder:
    return finder_for(
        config["keywords"],
        config["high_entropy"],
        tuple(config["patterns"].items()),
        tuple(config["allow"]),
    )


def _tag(session_state: Any) -> Tag:
    """The same sign for the same secret in one conversation, from which nobody learns it."""
    with session_state.lock:
        salt = session_state.get("salt")
        if not isinstance(salt, str):
            salt = session_state["salt"] = secrets.token_hex(16)

    def tag(secret: str) -> str:
        data = secret.encode("utf-8", "surrogatepass")
        return hmac.new(bytes.fromhex(salt), data, hashlib.sha256).hexdigest()[:4]

    return tag
