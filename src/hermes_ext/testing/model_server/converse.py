"""Bedrock converse: `POST /model/MODEL/converse` and `/converse-stream`."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermes_ext._text import text_of
from hermes_ext.testing.model_server import wire
from hermes_ext.testing.model_server.anthropic import chat_messages
from hermes_ext.testing.model_server.script import Json, Reply, ToolUse, Usage

_TEXT_HEADER = 7
_CHECKSUM = 4
_ERRORS: Mapping[int, str] = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def is_converse(path: str) -> bool:
    """Whether a path asks for a completion in this form; the model's name is in it."""
    return path.startswith("/model/") and path.endswith(("/converse", "/converse-stream"))


def _asked(path: str, body: Json) -> wire.Asked:
    told = (
        {"role": message.get("role", ""), "content": [_block(b) for b in message["content"]]}
        for message in body.get("messages") or ()
    )
    tools = tuple(map(_tool, (body.get("toolConfig") or {}).get("tools") or ()))
    return wire.Asked(
        chat_messages(told), text_of(body.get("system")), tools, path.endswith("-stream")
    )


def _block(block: Json) -> Json:
    """A block in Anthropic's terms, which differ in names alone."""
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    if "toolUse" in block:
        use = block["toolUse"]
        return {
            "type": "tool_use",
            "id": use.get("toolUseId", ""),
            "name": use.get("name", ""),
            "input": use.get("input"),
        }
    if "toolResult" in block:
        result = block["toolResult"]
        return {
            "type": "tool_result",
            "tool_use_id": result.get("toolUseId", ""),
            "content": result.get("content"),
        }
    return block


def _tool(tool: Json) -> Json:
    spec = tool.get("toolSpec") or {}
    schema = (spec.get("inputSchema") or {}).get("json") or {}
    return wire.chat_tool(spec.get("name", ""), spec.get("description", ""), schema)


def _usage(usage: Usage) -> Json:
    return {
        "inputTokens": usage.prompt_tokens,
        "outputTokens": usage.completion_tokens,
        "totalTokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _stop(calls: Sequence[ToolUse]) -> str:
    return "tool_use" if calls else "end_turn"


def _answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    content: list[Json] = [{"text": reply.text}] if reply.text or not calls else []
    content += [{"toolUse": {**_use(call), "input": wire.tool_input(call)}} for call in calls]
    answer: Json = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _stop(calls),
        "metrics": {"latencyMs": 1},
    }
    return answer if reply.usage is None else {**answer, "usage": _usage(reply.usage)}


def _use(call: ToolUse) -> Json:
    return {"toolUseId": call.id, "name": call.name}


def _events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[bytes]:
    yield frame("messageStart", {"role": "assistant"})
    index = 0
    if reply.text or not calls:
        # A block of text has no start of its own.
        yield from _deltas(index, [{"text": piece} for piece in wire.pieces(reply.text)])
        index += 1
    for at, call in enumerate(calls, start=index):
        start = {"contentBlockIndex": at, "start": {"toolUse": _use(call)}}
        yield frame("contentBlockStart", start)
        deltas = [{"toolUse": {"input": piece}} for piece in wire.pieces(call.args_text)]
        yield from _deltas(at, deltas)
    yield frame("messageStop", {"stopReason": _stop(calls)})
    told: dict[str, Any] = {} if reply.usage is None else {"usage": _usage(reply.usage)}
    yield frame("metadata", {**told, "metrics": {"latencyMs": 1}})


def _deltas(index: int, deltas: Sequence[Json]) -> Iterator[bytes]:
    for delta in deltas:
        value = {"contentBlockIndex": index, "delta": delta}
        yield frame("contentBlockDelta", value)
    yield frame("contentBlockStop", {"contentBlockIndex": index})


def frame(kind: str, value: Json) -> bytes:
    """One event as a binary frame of a stream.

    It is its length and that of its headers, a checksum of both, the headers, the data, and a
    checksum of everything before. Numbers are big-endian.
    """
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(name, text) for name, text in names.items())
    data = json.dumps(value).encode()
    prelude = struct.pack(
        "!II", 2 * 4 + _CHECKSUM + len(headers) + len(data) + _CHECKSUM, len(headers)
    )
    message = prelude + _checksum(prelude) + headers + data
    return message + _checksum(message)


def _header(name: str, text: str) -> bytes:
    key, value = name.encode(), text.encode()
    head = struct.pack("!B", len(key)) + key
    return head + struct.pack("!BH", _TEXT_HEADER, len(value)) + value


def _checksum(raw: bytes) -> bytes:
    return struct.pack("!I", zlib.crc32(raw))


def _error_headers(reply: Reply) -> Mapping[str, str]:
    fallback = "InternalServerException" if reply.status >= 500 else "ValidationException"
    return {"x-amzn-ErrorType": _ERRORS.get(reply.status, fallback)}


CONVERSE = wire.Wire(
    "converse",
    _asked,
    _answer,
    _events,
    lambda reply: {"message": wire.error_message(reply)},
    error_headers=_error_headers,
    stream_type="application/vnd.amazon.eventstream",
)
