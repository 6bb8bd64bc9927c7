"""OpenAI chat completions: `POST /v1/chat/completions`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from hermes_ext._text import text_of
from hermes_ext.testing.model_server import wire
from hermes_ext.testing.model_server.script import MODEL_NAME, Json, Reply, ToolUse, Usage


def _asked(path: str, body: Json) -> wire.Asked:
    messages: list[Json] = list(body.get("messages") or [])
    system: list[str] = []
    while messages and messages[0].get("role") in ("system", "developer"):
        system.append(text_of(messages.pop(0).get("content")))
    tools = tuple(body.get("tools") or ())
    return wire.Asked(tuple(messages), "\n".join(system), tools, bool(body.get("stream")))


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _call(call: ToolUse) -> Json:
    return wire.chat_call(call.id or "", call.name, call.args_text)


def _answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    answer: Json = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
    }
    if reply.usage is not None:
        answer["usage"] = _usage(reply.usage)
    return answer


def _events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[bytes]:
    for delta in _deltas(reply, calls):
        yield wire.sse_data(_chunk([{"index": 0, "delta": delta, "finish_reason": None}]))
    finish = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield wire.sse_data(_chunk([finish]))
    if reply.usage is not None:
        yield wire.sse_data({**_chunk([]), "usage": _usage(reply.usage)})
    yield b"data: [DONE]\n\n"


def _deltas(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for piece in wire.pieces(reply.text):
        yield {"content": piece}
    for index, call in enumerate(calls):
        opening = _call(call) | {"index": index}
        opening["function"] = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [opening]}
        for piece in wire.pieces(call.args_text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk(choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": choices,
    }


CHAT = wire.Wire("chat", _asked, _answer, _events, wire.openai_error)
