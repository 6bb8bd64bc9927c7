"""What a script is made of, and what a request tells: the same for every provider form."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes_ext._text import text_of

Json = dict[str, Any]
Form = Literal["chat", "anthropic", "responses", "converse"]

MODEL_NAME = "scripted"
MAX_DELAY_SECONDS = 120.0

# agent/chat_completion_helpers.py, handle_max_iterations: the one request of the main loop that
# carries no tools.
_SUMMARY_MARK = "You've reached the maximum number of tool-calling iterations allowed."
# agent/background_review.py: a forked agent that carries the same tools as the main loop.
_REVIEW_MARK = "Review the conversation above and "
_REVIEW_MARK_TAIL = "You can only call memory and skill management tools."


@dataclass(frozen=True)
class ToolUse:
    """One tool call of a reply.

    args: a dict, or a str that is sent as it stands (malformed JSON included).
    id: None for a generated `call_N`, unique per server; any str is sent as it stands.
    """

    name: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    @property
    def args_text(self) -> str:
        """The arguments as the text that goes over the wire."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args)


@dataclass(frozen=True)
class Usage:
    """Token counts that a reply reports."""

    prompt_tokens: int = 10
    completion_tokens: int = 5


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    status other than 200: an HTTP error with the provider's JSON error body. `error` is its
    message, or the whole body when a dict; default "scripted error".
    delay_event: the answer is held back until it is set (at most MAX_DELAY_SECONDS).
    usage None: no usage is reported.
    """

    text: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    status: int = 200
    error: str | Json | None = None
    usage: Usage | None = field(default_factory=Usage)
    delay_event: threading.Event | None = None


@dataclass(frozen=True)
class ModelRequest:
    """One request for a completion, told in chat-completions terms whatever its form.

    path: with the model's name in it for Bedrock, whose body has none.
    messages: without the leading system messages; tool results are `role: tool`.
    system: the text of the system prompt, "" without one.
    tools: in the form `{"type": "function", "function": {...}}`.
    body: the JSON body as it came.
    """

    path: str
    body: Json
    form: Form
    messages: tuple[Json, ...]
    system: str
    tools: tuple[Json, ...]
    stream: bool
    is_main: bool = False

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the offered tools, in the request's order."""
        return tuple(str(tool.get("function", {}).get("name", "")) for tool in self.tools)

    @property
    def last_user(self) -> str:
        """Text of the last user message, "" without one."""
        texts = [text_of(m.get("content")) for m in self.messages if m.get("role") == "user"]
        return texts[-1] if texts else ""

    @property
    def tool_results(self) -> tuple[tuple[str, str], ...]:
        """(tool_call_id, text) of every tool result in the request, in order."""
        return tuple(
            (str(m.get("tool_call_id", "")), text_of(m.get("content")))
            for m in self.messages
            if m.get("role") == "tool"
        )

    def contains(self, needle: str) -> bool:
        """Whether the text occurs in any string anywhere in the request's body."""
        return any(needle in text for text in _strings(self.body))


def is_main_request(request: ModelRequest) -> bool:
    """Whether a request comes from a conversation loop (of the agent or of a subagent).

    Those offer tools; the others do not, except for the background review, and the summary at
    the iteration limit offers none. A run without any toolset needs a rule of its own.
    """
    last = request.last_user
    if _SUMMARY_MARK in last:
        return True
    is_review = last.startswith(_REVIEW_MARK) or _REVIEW_MARK_TAIL in last
    return bool(request.tools) and not is_review


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
