# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Passwords, keys and tokens are replaced before the model sees them; README.md says which."""

from __future__ import annotations

import hashlib
import hmac
import json
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
from hermes_ext.exceptions import StateError

from .finding import PLACEHOLDER, Finder, finder_for

_SETTING = "extensions.redact-secrets"

# Where the conversation's own cannot be stored: the signs are then others in the next process.
_SALT = secrets.token_hex(16)

Tag = Callable[[str], str]
Replaced = Callable[[str], str]


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
        return _rewritten(told) if told != user_message else None
    changed = [_in_part(part, lambda text: finder.replaced(text, tag)) for part in user_content]
    return _rewritten(changed) if changed != user_content else None


@register_hook("transform_tool_result", priority=900, on_error="block")
def in_results(result: str, config: Mapping[str, Any], session_state: Any) -> ToolOutputResult:
    """Replace secrets in what a tool gave."""
    told = _finder(config).replaced(result, _tag(session_state))
    return _rewritten(told) if told != result else None


@register_hook("before_llm_call", priority=900, on_error="block")
def in_requests(
    messages: list[dict[str, Any]], config: Mapping[str, Any], state: Any, session_state: Any
) -> RequestResult:
    """Replace secrets in the rest of a request; what was looked at in this turn is known."""
    if not config["history"]:
        return None
    # What each text became, None for itself, by digest: no secret is kept, here neither.
    known: dict[bytes, str | None] = state.setdefault("redact-secrets.known", {})
    finder, tag = _finder(config), _tag(session_state)

    def replaced(text: str) -> str:
        digest = hashlib.sha256(_bytes(text)).digest()
        if digest not in known:
            told = finder.replaced(text, tag)
            known[digest] = None if told == text else told
        told_before = known[digest]
        return text if told_before is None else told_before

    changed = [_in_message(message, replaced) for message in messages]
    return _rewritten(changed, f"{_SETTING}.history") if changed != messages else None


@register_hook("intercept_tool_call", guard=True)
def not_instead_of_the_secret(event: ToolCall, tool_args: dict[str, Any]) -> CallVerdict:
    """Keep a placeholder out of files: it would take the place of the secret."""
    found = PLACEHOLDER.search(json.dumps(tool_args, ensure_ascii=False, default=str))
    if found is None or not effects_of(event).may_write:
        return None
    told = (
        f"{found[0]} stands for a secret that you were not shown, and would be written in its "
        "place. Change only the lines around it, or ask the user to do it."
    )
    return HookResult.block(told, metadata={"setting": _SETTING})


def _rewritten(value: Any, setting: str = _SETTING) -> HookResult[Any]:
    return HookResult.rewrite(value, metadata={"setting": setting})


def _in_message(message: dict[str, Any], replaced: Replaced) -> dict[str, Any]:
    """A message with its text replaced, and what the model has called tools with."""
    new = dict(message)
    content = message.get("content")
    if isinstance(content, str):
        new["content"] = replaced(content)
    elif isinstance(content, list):
        new["content"] = [_in_part(part, replaced) for part in content]
    if isinstance(message.get("tool_calls"), list):
        new["tool_calls"] = [_in_call(call, replaced) for call in message["tool_calls"]]
    return new


def _in_part(part: Any, replaced: Replaced) -> Any:
    text = part.get("text") if isinstance(part, dict) else None
    return {**part, "text": replaced(text)} if isinstance(text, str) else part


def _in_call(call: dict[str, Any], replaced: Replaced) -> dict[str, Any]:
    function = call.get("function") or {}
    text = function.get("arguments")
    if not isinstance(text, str):
        return call
    try:
        args = json.loads(text)
    except ValueError:
        new = replaced(text)
    else:
        told = _in_value(args, replaced)
        new = text if told == args else json.dumps(told, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": new}}


def _in_value(value: Any, replaced: Replaced) -> Any:
    if isinstance(value, str):
        return replaced(value)
    if isinstance(value, list):
        return [_in_value(each, replaced) for each in value]
    if isinstance(value, dict):
        return {replaced(key): _in_value(each, replaced) for key, each in value.items()}
    return value


def _finder(config: Mapping[str, Any]) -> Finder:
    return finder_for(
        config["high_entropy"], tuple(config["patterns"].items()), tuple(config["allow"])
    )


def _tag(session_state: Any) -> Tag:
    """The same sign for the same secret in one conversation, from which nobody learns it."""
    salt = _salt(session_state)

    def tag(secret: str) -> str:
        return hmac.new(bytes.fromhex(salt), _bytes(secret), hashlib.sha256).hexdigest()[:4]

    return tag


def _salt(session_state: Any) -> str:
    try:
        with session_state.lock:
            salt = session_state.get("salt")
            if not isinstance(salt, str):
                salt = session_state["salt"] = secrets.token_hex(16)
    except StateError:
        return _SALT
    return salt


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
