"""The shapes of the providers' requests and answers, one row per `api_mode` of Hermes.

A request is what Hermes is about to hand to the provider's client. `missing` looks for injected
text in it and `restore` puts it back; `answer` makes what the loop takes for the model's reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from attrs import frozen

from hermes_ext._turns.requests import append_text, compose

Request = dict[str, Any]


@frozen
class Form:
    """How one provider form is read and written.

    Attributes:
        answer: makes a complete model answer of a text and a model's name.
        system: the part of a request that holds the system prompt.
        restore: the request with system and user texts at its end; None where that cannot be done.
    """

    answer: Callable[[str, str], Any]
    system: Callable[[Request], Any]
    restore: Callable[[Request, Sequence[str], Sequence[str]], Request | None]

    def missing(
        self, request: Request, system: Sequence[str], user: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Which of the system and user texts are not where they belong.

        A system text counts only in the system prompt: the same words in what the user or a tool
        said are no instruction.
        """
        return _absent(self.system(request), system), _absent(_without_tools(request), user)


def _chat_answer(text: str, model: str) -> Any:
    message = SimpleNamespace(
        role="assistant",
        content=text,
        tool_calls=None,
        refusal=None,
        reasoning=None,
        reasoning_content=None,
        reasoning_details=None,
    )
    choice = SimpleNamespace(index=0, message=message, finish_reason="stop", logprobs=None)
    return SimpleNamespace(
        id="hermes-ext", object="chat.completion", model=model, choices=[choice], usage=None
    )


def _chat_restore(request: Request, system: Sequence[str], user: Sequence[str]) -> Request | None:
    messages = request.get("messages")
    if not isinstance(messages, list):
        return None
    return {**request, "messages": compose(messages, system=system, user=user)}


def _anthropic_answer(text: str, model: str) -> Any:
    return SimpleNamespace(
        id="hermes-ext",
        type="message",
        role="assistant",
        model=model,
        content=[SimpleNamespace(type="text", text=text)],
        stop_reason="end_turn",
        stop_sequence=None,
        usage=SimpleNamespace(
            input_tokens=0,
            output_tokens=0,
            cache_creation_input_tokens=0,
            cache_read_input_tokens=0,
        ),
    )


def _anthropic_restore(
    request: Request, system: Sequence[str], user: Sequence[str]
) -> Request | None:
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


def _responses_restore(
    request: Request, system: Sequence[str], user: Sequence[str]
) -> Request | None:
    items = request.get("input")
    if not isinstance(items, list):
        return None
    changed = dict(request)
    if system:
        changed["instructions"] = append_text(request.get("instructions"), "\n\n".join(system))
    if user:
        changed["input"] = [*items, {"role": "user", "content": "\n\n".join(user)}]
    return changed


def _converse_answer(text: str, model: str) -> Any:
    message = {"role": "assistant", "content": [{"text": text}]}
    return {
        "output": {"message": message},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "modelId": model,
    }


def _cannot_restore(request: Request, system: Sequence[str], user: Sequence[str]) -> Request | None:
    return None


def _chat_system(request: Request) -> Any:
    messages = request.get("messages")
    roles = ("system", "developer")
    return [m for m in messages if m.get("role") in roles] if isinstance(messages, list) else None


_CHAT: Final = Form(answer=_chat_answer, system=_chat_system, restore=_chat_restore)
_FORMS: Final = {
    "chat_completions": _CHAT,
    "anthropic_messages": Form(
        answer=_anthropic_answer,
        system=lambda request: request.get("system"),
        restore=_anthropic_restore,
    ),
    "codex_responses": Form(
        answer=_responses_answer,
        system=lambda request: request.get("instructions"),
        restore=_responses_restore,
    ),
    "bedrock_converse": Form(
        answer=_converse_answer,
        system=lambda request: request.get("system"),
        restore=_cannot_restore,
    ),
}


def form_of(api_mode: str | None) -> Form:
    """The form of an `api_mode`; what Hermes does not name otherwise speaks chat completions."""
    return _FORMS.get(api_mode or "", _CHAT)


def _without_tools(request: Request) -> Request:
    return {key: value for key, value in request.items() if key not in ("tools", "toolConfig")}


def _absent(part: Any, texts: Sequence[str]) -> list[str]:
    """Compared as JSON: a provider form may nest a text anywhere, but it never splits it."""
    if not texts:
        return []
    flat = json.dumps(part, ensure_ascii=False, default=_plain)
    return [text for text in texts if json.dumps(text, ensure_ascii=False)[1:-1] not in flat]


def _plain(value: Any) -> Any:
    return getattr(value, "__dict__", None) or str(value)
