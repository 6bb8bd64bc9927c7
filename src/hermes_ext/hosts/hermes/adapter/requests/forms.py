"""The shapes of the providers' requests and answers, one row per `api_mode` of Hermes.

A request is what Hermes is about to hand to the provider's client. `missing` looks for injected
text in it and `restore` puts it back; `answer` makes what the loop takes for the model's reply.

An `api_mode` without a row is one that nothing can be put into, and none of our answers fits it for
sure: what was injected must be found in such a request, else it is not sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from hermes_ext._values import frozen
from hermes_ext.turns.requests import append_text, compose

Request = dict[str, Any]
Texts = Sequence[str]


@frozen
class Form:
    """How one provider form is read and written.

    Attributes:
        answer: makes a complete model answer of a text and a model's name.
        system: the part of a request that holds the system prompt.
        user: the part that holds what the user says, without the results of tools.
        restore: the request with system and user texts at its end; None where that cannot be done.
        runs: the name of an offered tool that the provider runs by itself, None for any other.
    """

    answer: Callable[[str, str], Any]
    system: Callable[[Request], Any]
    user: Callable[[Request], Any]
    restore: Callable[[Request, Texts, Texts], Request | None]
    runs: Callable[[Any], str | None] = lambda tool: None

    def missing(self, request: Request, system: Texts, user: Texts) -> tuple[list[str], list[str]]:
        """Which of the system and user texts are not where they belong.

        A text counts only in its own part: the same words in what a tool said are no instruction.
        """
        return _absent(self.system(request), system), _absent(self.user(request), user)

    def run_elsewhere(self, request: Request) -> list[str]:
        """The names of the tools that a request offers and the provider would run by itself."""
        tools = request.get("tools")
        offered = tools if isinstance(tools, list) else []
        return [name for tool in offered if (name := self.runs(tool)) is not None]

    def without_tools(self, request: Request, names: Texts) -> Request:
        """The request without those of them that bear one of the names."""
        left = [tool for tool in request["tools"] if self.runs(tool) not in names]
        # Where no tool is offered, nothing may be said of tools.
        gone = () if left else ("tools", "tool_choice", "parallel_tool_calls")
        return {k: v for k, v in {**request, "tools": left}.items() if k not in gone}


def _chat_answer(text: str, model: str) -> Any:
    empty = dict.fromkeys(
        ("tool_calls", "refusal", "reasoning", "reasoning_content", "reasoning_details")
    )
    message = SimpleNamespace(role="assistant", content=text, **empty)
    choice = SimpleNamespace(index=0, message=message, finish_reason="stop", logprobs=None)
    return SimpleNamespace(
        id="hermes-ext", object="chat.completion", model=model, choices=[choice], usage=None
    )


def _chat_restore(request: Request, system: Texts, user: Texts) -> Request | None:
    messages = request.get("messages")
    if not isinstance(messages, list):
        return None
    return {**request, "messages": compose(messages, system=system, user=user)}


def _anthropic_answer(text: str, model: str) -> Any:
    tokens = ("input", "output", "cache_creation_input", "cache_read_input")
    return SimpleNamespace(
        id="hermes-ext",
        type="message",
        role="assistant",
        model=model,
        content=[SimpleNamespace(type="text", text=text)],
        stop_reason="end_turn",
        stop_sequence=None,
        usage=SimpleNamespace(**{f"{kind}_tokens": 0 for kind in tokens}),
    )


def _anthropic_restore(request: Request, system: Texts, user: Texts) -> Request | None:
    messages = request.get("messages")
    if not isinstance(messages, list):
        return None
    changed = {**request, "messages": compose(messages, user=user)}
    if system:
        changed["system"] = append_text(request.get("system"), "\n\n".join(system))
    return changed


def _responses_answer(text: str, model: str) -> Any:
    part = SimpleNamespace(type="output_text", text=text, annotations=[])
    item = SimpleNamespace(
        type="message", id="hermes-ext", role="assistant", status="completed", content=[part]
    )
    return SimpleNamespace(
        id="hermes-ext",
        model=model,
        status="completed",
        output=[item],
        output_text=text,
        usage=None,
        error=None,
        incomplete_details=None,
    )


def _responses_restore(request: Request, system: Texts, user: Texts) -> Request | None:
    items = request.get("input")
    if not isinstance(items, list):
        return None
    changed = dict(request)
    if system:
        changed["instructions"] = append_text(request.get("instructions"), "\n\n".join(system))
    if user:
        changed["input"] = [*items, {"role": "user", "content": "\n\n".join(user)}]
    return changed


def _converse_restore(request: Request, system: Texts, user: Texts) -> Request | None:
    messages, prompt = request.get("messages"), request.get("system") or []
    if not isinstance(messages, list) or not isinstance(prompt, list):
        return None
    changed = {**request, "messages": list(messages)}
    if system:
        changed["system"] = [*prompt, {"text": "\n\n".join(system)}]
    if user:
        # Two messages of one role must not follow each other.
        continues = bool(messages) and messages[-1].get("role") == "user"
        last = changed["messages"].pop() if continues else {"role": "user", "content": []}
        content = [*(last.get("content") or ()), {"text": "\n\n".join(user)}]
        changed["messages"].append({**last, "content": content})
    return changed


def _responses_runs(tool: Any) -> str | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    return None if kind in ("function", "custom", None) else str(kind)


def _cannot_restore(request: Request, system: Texts, user: Texts) -> Request | None:
    return None


def _with_roles(messages: Any, *roles: str) -> list[Any]:
    if not isinstance(messages, list):
        return []
    return [one for one in messages if isinstance(one, dict) and one.get("role") in roles]


def _user_messages(request: Request) -> Any:
    return _with_roles(request.get("messages"), "user")


def _user_blocks(request: Request) -> Any:
    """Where tools' results are blocks of the user's messages."""
    contents = [message.get("content") for message in _user_messages(request)]
    return [
        block
        for content in contents
        for block in (content if isinstance(content, list) else [content])
        if not _is_result(block)
    ]


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and (block.get("type") == "tool_result" or "toolResult" in block)


def _whole(request: Request) -> Any:
    return {key: value for key, value in request.items() if key != "tools"}


_CHAT: Final = Form(
    answer=_chat_answer,
    system=lambda request: _with_roles(request.get("messages"), "system", "developer"),
    user=_user_messages,
    restore=_chat_restore,
)
_UNKNOWN: Final = Form(answer=_chat_answer, system=_whole, user=_whole, restore=_cannot_restore)
_FORMS: Final = {
    "chat_completions": _CHAT,
    "anthropic_messages": Form(
        answer=_anthropic_answer,
        system=lambda request: request.get("system"),
        user=_user_blocks,
        restore=_anthropic_restore,
    ),
    "codex_responses": Form(
        answer=_responses_answer,
        system=lambda request: request.get("instructions"),
        user=lambda request: _with_roles(request.get("input"), "user"),
        restore=_responses_restore,
        runs=_responses_runs,
    ),
    "bedrock_converse": Form(
        answer=_chat_answer,  # Hermes makes that of what the provider says
        system=lambda request: request.get("system"),
        user=_user_blocks,
        restore=_converse_restore,
    ),
}


def keep_cache_key(request: Any, injected: Texts, agent: Any = None) -> None:
    """Give a request for Responses the key by which its provider caches as if nothing was injected.

    Hermes makes the key of the whole system prompt and the tools, newer Hermes of the agent's
    conversation too; what an extension adds at its end would change it, and everything before would
    be read anew.
    """
    instructions = request.get("instructions") if isinstance(request, dict) else None
    tail = "\n\n" + "\n\n".join(injected).rstrip()
    if not injected or not isinstance(instructions, str) or not instructions.endswith(tail):
        return
    try:
        from agent.transports.codex import _content_cache_key
    except ImportError:  # another Hermes makes no such key
        return
    tools = request.get("tools")
    scope = _cache_scope(agent)
    made = _content_cache_key(instructions, tools, *scope)
    for part in (request, request.get("extra_body")):
        if isinstance(part, dict) and part.get("prompt_cache_key") == made:
            part["prompt_cache_key"] = _content_cache_key(
                instructions.removesuffix(tail), tools, *scope
            )


def _cache_scope(agent: Any) -> tuple[str, ...]:
    try:
        from agent.prompt_cache_scope import resolve_prompt_cache_scope_safe
        from agent.transports.codex import _cache_scope_from_session_id
    except ImportError:  # before 0.20 a key is not of one conversation
        return ()
    scope = resolve_prompt_cache_scope_safe(agent) or getattr(agent, "session_id", None)
    return (_cache_scope_from_session_id(scope),)


def is_known(api_mode: str | None) -> bool:
    """Whether what is sent in an `api_mode` can be read here; no name means chat completions."""
    return not api_mode or api_mode in _FORMS


def form_of(api_mode: str | None) -> Form:
    """The form of an `api_mode`."""
    return _FORMS.get(api_mode, _UNKNOWN) if api_mode else _CHAT


def _absent(part: Any, texts: Texts) -> list[str]:
    """Compared as JSON: a provider form may nest a text anywhere, but it never splits it.

    It may take spaces off its ends, though.
    """
    if not texts:
        return []
    flat = json.dumps(part, ensure_ascii=False, default=_plain)
    return [text for text in texts if _in_json(text.strip()) not in flat]


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _plain(value: Any) -> Any:
    return getattr(value, "__dict__", None) or str(value)
