"""OpenAI Responses: `POST /v1/responses`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count
from uuid import uuid4

from hermes_ext._text import text_of
from hermes_ext.testing.model_server import wire
from hermes_ext.testing.model_server.script import MODEL_NAME, Json, Reply, ToolUse, Usage

_TEXT_PARTS = ("input_text", "output_text", "text")


def _asked(path: str, body: Json) -> wire.Asked:
    messages = _messages(body.get("input"))
    system = [str(body.get("instructions") or "")]
    while messages and messages[0]["role"] in ("system", "developer"):
        system.append(text_of(messages.pop(0)["content"]))
    tools = tuple(map(_tool, body.get("tools") or ()))
    told = "\n".join(filter(None, system))
    return wire.Asked(tuple(messages), told, tools, bool(body.get("stream")))


def _tool(tool: Json) -> Json:
    # What the provider runs itself has a type and no name.
    name = str(tool.get("name") or tool.get("type", ""))
    return wire.chat_tool(name, tool.get("description") or "", tool.get("parameters") or {})


def _messages(given: object) -> list[Json]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    told: list[Json] = []
    for item in given if isinstance(given, list) else []:
        kind = item.get("type") or "message"
        if kind == "message":
            told.append({"role": str(item.get("role", "")), "content": _content(item)})
        elif kind == "function_call":
            _add_call(told, item)
        elif kind == "function_call_output":
            call_id, output = item.get("call_id", ""), item.get("output")
            told.append({"role": "tool", "tool_call_id": call_id, "content": text_of(output)})
    return told


def _content(item: Json) -> object:
    content = item.get("content")
    if isinstance(content, list) and any(p.get("type") not in _TEXT_PARTS for p in content):
        return content
    return text_of(content)


def _add_call(told: list[Json], item: Json) -> None:
    """To the assistant's message in front of it, as chat completions have it."""
    if not told or told[-1]["role"] != "assistant":
        told.append({"role": "assistant", "content": None})
    call = wire.chat_call(item.get("call_id", ""), item.get("name", ""), item.get("arguments", ""))
    told[-1].setdefault("tool_calls", []).append(call)


def _usage(usage: Usage | None) -> Json | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _response(reply: Reply, response_id: str, output: list[Json], status: str) -> Json:
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL_NAME,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _usage(reply.usage) if status == "completed" else None,
    }


def _output(reply: Reply, calls: Sequence[ToolUse]) -> list[Json]:
    items: list[Json] = [_message(reply.text)] if reply.text or not calls else []
    return items + [_function_call(call) for call in calls]


def _message(text: str) -> Json:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [_text_part(text)],
    }


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _function_call(call: ToolUse) -> Json:
    return {
        "id": f"fc_{uuid4().hex}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.args_text,
    }


def _answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    return _response(reply, _response_id(), _output(reply, calls), "completed")


def _response_id() -> str:
    return f"resp_{uuid4().hex}"


def _events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[bytes]:
    numbers = count()
    for kind, value in _told(reply, calls):
        yield wire.sse_event(f"response.{kind}", {"sequence_number": next(numbers), **value})


def _told(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[tuple[str, Json]]:
    response_id, output = _response_id(), _output(reply, calls)
    begun = _response(reply, response_id, [], "in_progress")
    yield "created", {"response": begun}
    yield "in_progress", {"response": begun}
    for index, item in enumerate(output):
        where: Json = {"item_id": item["id"], "output_index": index}
        empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
        opening = {**item, **empty, "status": "in_progress"}
        yield "output_item.added", {"output_index": index, "item": opening}
        if item["type"] == "message":
            yield from _text_events(item["content"][0], {**where, "content_index": 0})
        else:
            yield from _argument_events(item, where)
        yield "output_item.done", {"output_index": index, "item": item}
    yield "completed", {"response": _response(reply, response_id, output, "completed")}


def _text_events(part: Json, where: Json) -> Iterator[tuple[str, Json]]:
    yield "content_part.added", {**where, "part": _text_part("")}
    for piece in wire.pieces(part["text"]):
        yield "output_text.delta", {**where, "delta": piece, "logprobs": []}
    yield "output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**where, "part": part}


def _argument_events(item: Json, where: Json) -> Iterator[tuple[str, Json]]:
    for piece in wire.pieces(item["arguments"]):
        yield "function_call_arguments.delta", {**where, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield "function_call_arguments.done", {**where, **done}


RESPONSES = wire.Wire("responses", _asked, _answer, _events, wire.openai_error)
