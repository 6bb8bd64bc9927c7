"""What a provider form has to do, and what several of them share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hermes_ext.testing.model_server.script import Form, Json, Reply, ToolUse

_PIECE = 12


class Asked(NamedTuple):
    """What a request asks for, in chat-completions terms; as in `ModelRequest`."""

    messages: tuple[Json, ...]
    system: str
    tools: tuple[Json, ...]
    stream: bool


@dataclass(frozen=True)
class Wire:
    """One provider form as it goes over the wire.

    Attributes:
        form: its name.
        asked: reads a request's path and body.
        answer: the JSON of a whole answer.
        events: the parts of a streamed one, as bytes.
        error: the JSON of an error, where the reply has no whole body for it.
        error_headers: what an error has in its head besides.
        stream_type: the content type of a stream.
    """

    form: Form
    asked: Callable[[str, Json], Asked]
    answer: Callable[[Reply, Sequence[ToolUse]], Json]
    events: Callable[[Reply, Sequence[ToolUse]], Iterator[bytes]]
    error: Callable[[Reply], Json]
    error_headers: Callable[[Reply], Mapping[str, str]] = lambda _: {}
    stream_type: str = "text/event-stream"


def pieces(text: str) -> list[str]:
    """A text as the deltas that it is streamed in."""
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def sse_data(value: Json) -> bytes:
    """A server-sent event without a name."""
    return f"data: {json.dumps(value)}\n\n".encode()


def sse_event(kind: str, value: Json) -> bytes:
    """A server-sent event that bears its type, in its name and in its data."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **value})}\n\n".encode()


def error_message(reply: Reply) -> str:
    """The message of an error that is no dict."""
    return str(reply.error or "scripted error")


def error_kind(reply: Reply) -> str:
    """What OpenAI and Anthropic call it."""
    return "api_error" if reply.status >= 500 else "invalid_request_error"


def openai_error(reply: Reply) -> Json:
    """The error body of both forms of OpenAI."""
    told = {"message": error_message(reply), "type": error_kind(reply)}
    return {"error": {**told, "param": None, "code": None}}


def tool_input(call: ToolUse) -> object:
    """The arguments as JSON; malformed text stays text, where there is no other way to send it."""
    try:
        return json.loads(call.args_text)
    except ValueError:
        return call.args_text


def chat_tool(name: str, description: str, parameters: Json) -> Json:
    """A tool as chat completions offer it."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def chat_call(call_id: str, name: str, arguments: str) -> Json:
    """A tool call as an assistant message of chat completions holds it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
