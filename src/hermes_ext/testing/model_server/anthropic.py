"""Anthropic messages: `POST /v1/messages`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from hermes_ext._text import text_of
from hermes_ext.testing.model_server import wire
from hermes_ext.testing.model_server.script import MODEL_NAME, Json, Reply, ToolUse, Usage


def _asked(path: str, body: Json) -> wire.Asked:
    tools = tuple(
        wire.chat_tool(
            tool.get("name", ""), tool.get("description", ""), tool.get("input_schema", {})
        )
        for tool in body.get("tools") or ()
    )
    messages = chat_messages(body.get("messages") or ())
    return wire.Asked(messages, text_of(body.get("system")), tools, bool(body.get("stream")))


def chat_messages(messages: Iterable[Json]) -> tuple[Json, ...]:
    """Anthropic messages as chat messages: of each its tool results first, then the rest."""
    return tuple(told for message in messages for told in _told(message))


def _told(message: Json) -> list[Json]:
    role, content = str(message.get("role", "")), message.get("content")
    if not isinstance(content, list):
        return [{"role": role, "content": content}]
    results = [b for b in content if b.get("type") == "tool_result"]
    uses = [b for b in content if b.get("type") == "tool_use"]
    rest = [b for b in content if b not in results and b not in uses]
    told = [
        {
            "role": "tool",
            "tool_call_id": block.get("tool_use_id", ""),
            "content": text_of(block.get("content")),
        }
        for block in results
    ]
    if rest or uses:
        told.append(_one_message(role, rest, uses))
    return told


def _one_message(role: str, rest: list[Json], uses: list[Json]) -> Json:
    only_text = all(block.get("type") == "text" for block in rest)
    message: Json = {"role": role, "content": text_of(rest) if only_text else rest}
    if uses:
        message["tool_calls"] = [
            wire.chat_call(use.get("id", ""), use.get("name", ""), json.dumps(use.get("input")))
            for use in uses
        ]
    return message


def _usage(usage: Usage | None) -> Json:
    told = usage or Usage(0, 0)
    return {"input_tokens": told.prompt_tokens, "output_tokens": told.completion_tokens}


def _message(reply: Reply, content: list[Json], stop: str | None) -> Json:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": MODEL_NAME,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(reply.usage),
    }


def _answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": wire.tool_input(call)}
        for call in calls
    ]
    return _message(reply, content, "tool_use" if calls else "end_turn")


def _events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[bytes]:
    yield wire.sse_event("message_start", {"message": _message(reply, [], None)})
    index = 0
    if reply.text or not calls:
        deltas = [{"type": "text_delta", "text": piece} for piece in wire.pieces(reply.text)]
        yield from _block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for at, call in enumerate(calls, start=index):
        block: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in wire.pieces(call.args_text)
        ]
        yield from _block(at, block, deltas)
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield wire.sse_event("message_delta", {"delta": stop, "usage": _usage(reply.usage)})
    yield wire.sse_event("message_stop", {})


def _block(index: int, block: Json, deltas: Sequence[Json]) -> Iterator[bytes]:
    yield wire.sse_event("content_block_start", {"index": index, "content_block": block})
    for delta in deltas:
        yield wire.sse_event("content_block_delta", {"index": index, "delta": delta})
    yield wire.sse_event("content_block_stop", {"index": index})


def _error(reply: Reply) -> Json:
    told = {"type": wire.error_kind(reply), "message": wire.error_message(reply)}
    return {"type": "error", "error": told}


ANTHROPIC = wire.Wire("anthropic", _asked, _answer, _events, _error)
