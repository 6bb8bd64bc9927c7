"""A scripted language model on 127.0.0.1, for tests that run the real Hermes Agent.

`ScriptedModel` answers OpenAI chat completions (`POST /v1/chat/completions`) and Anthropic
messages (`POST /v1/messages`), streamed or not, from a script of `Reply` values, and records
every request. Standard library only.

    with ScriptedModel([Reply(tool_calls=(ToolUse("todo", {}),)), Reply("done")]) as model:
        ...  # point Hermes at model.base_url
    assert len(model.main_requests) == 2

Requests that Hermes makes beside the conversation (session titles, compression, approval,
background review) consume no step of the script; they get `auxiliary` and are recorded with
`is_main=False`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from hermes_ext._hooks.text import text_of

Json = dict[str, Any]
Form = Literal["chat", "anthropic"]

MODEL_NAME = "scripted"
EXHAUSTED_TEXT = "SCRIPT EXHAUSTED"
MAX_DELAY_SECONDS = 120.0

_CHUNK = 12
_FORMS: Mapping[str, Form] = {"/v1/chat/completions": "chat", "/v1/messages": "anthropic"}
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
    """One request for a completion, told in chat-completions terms for both forms.

    messages: without the leading system messages; Anthropic tool results become `role: tool`.
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
    is_main: bool

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


Script = Sequence[Reply] | Callable[[ModelRequest], Reply]


class ScriptedModel:
    """An HTTP server that plays a script; a context manager.

    script: a sequence of replies, consumed by main requests in order of arrival; or a callable
    that gets each main request, in several threads at once. After the end of a sequence the
    answer is EXHAUSTED_TEXT and `exhausted` counts the requests that met it.
    auxiliary: the reply to the requests beside the conversation, or a callable as above.
    is_main: decides, in place of `is_main_request`, which requests are of the conversation.

    Leaving the context re-raises the first exception that a script callable raised (the client
    got status 400), unless another exception is under way.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        auxiliary: Reply | Callable[[ModelRequest], Reply] = Reply("ok title"),
        is_main: Callable[[ModelRequest], bool] | None = None,
    ) -> None:
        self._script = script
        self._auxiliary = auxiliary
        self._is_main = is_main or is_main_request
        self._changed = threading.Condition()
        self._requests: list[ModelRequest] = []
        self._other_paths: list[str] = []
        self._script_errors: list[BaseException] = []
        self._steps = 0
        self._calls = 0
        self._exhausted = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.shutdown()
            thread.join()
            server.server_close()
        if error is None and self._script_errors:
            raise self._script_errors[0]

    @property
    def root_url(self) -> str:
        """`http://127.0.0.1:PORT`, the base URL for the Anthropic form.

        Raises RuntimeError outside the context.
        """
        if self._server is None:
            raise RuntimeError("ScriptedModel is not running; use it as a context manager")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`, the base URL for chat completions."""
        return f"{self.root_url}/v1"

    @property
    def requests(self) -> list[ModelRequest]:
        """A copy of all completion requests so far, in order of arrival."""
        with self._changed:
            return list(self._requests)

    @property
    def main_requests(self) -> list[ModelRequest]:
        """The requests of the conversation itself, in order of arrival."""
        return [request for request in self.requests if request.is_main]

    @property
    def other_paths(self) -> list[str]:
        """`METHOD path` of every request that asked for no completion."""
        with self._changed:
            return list(self._other_paths)

    @property
    def exhausted(self) -> int:
        """How many main requests came after the end of the script."""
        with self._changed:
            return self._exhausted

    def wait_for(
        self, predicate: Callable[[list[ModelRequest]], bool], timeout: float = 30.0
    ) -> None:
        """Block until the predicate is true of the requests; it is asked after each arrival.

        Raises TimeoutError after `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: predicate(list(self._requests)), timeout):
                raise TimeoutError(f"not met after {timeout} s by {len(self._requests)} requests")

    def _note_other(self, what: str) -> None:
        with self._changed:
            self._other_paths.append(what)

    def _record(self, path: str, form: Form, body: Json) -> tuple[ModelRequest, int]:
        """Record a request; returns it with its step number (only used for main ones)."""
        draft = _parse(path, form, body, is_main=False)
        is_main = self._is_main(draft)
        request = _parse(path, form, body, is_main=True) if is_main else draft
        with self._changed:
            step = self._steps
            self._steps += is_main
            self._requests.append(request)
            self._changed.notify_all()
        return request, step

    def _reply(self, request: ModelRequest, step: int) -> Reply:
        """Choose the reply to a recorded request."""
        source = self._script if request.is_main else self._auxiliary
        if isinstance(source, Reply):
            return source
        if callable(source):
            return self._call(source, request)
        if step < len(source):
            return source[step]
        with self._changed:
            self._exhausted += 1
        return Reply(EXHAUSTED_TEXT)

    def _call(self, source: Callable[[ModelRequest], Reply], request: ModelRequest) -> Reply:
        try:
            return source(request)
        except Exception as error:  # noqa: BLE001 (a test's own code; __exit__ re-raises it)
            with self._changed:
                self._script_errors.append(error)
            return Reply(status=400, error=f"script raised {error!r}")

    def _with_ids(self, calls: Sequence[ToolUse]) -> list[ToolUse]:
        """The calls with every id given."""
        return [
            call if call.id is not None else ToolUse(call.name, call.args, self._next_id())
            for call in calls
        ]

    def _next_id(self) -> str:
        with self._changed:
            self._calls += 1
            return f"call_{self._calls}"


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


def _parse(path: str, form: Form, body: Json, *, is_main: bool) -> ModelRequest:
    system, messages = _chat_parts(body) if form == "chat" else _anthropic_parts(body)
    tools = body.get("tools") or []
    return ModelRequest(
        path=path,
        body=body,
        form=form,
        messages=tuple(messages),
        system=system,
        tools=tuple(tools if form == "chat" else map(_chat_tool, tools)),
        stream=bool(body.get("stream")),
        is_main=is_main,
    )


def _chat_parts(body: Json) -> tuple[str, list[Json]]:
    messages: list[Json] = list(body.get("messages") or [])
    system: list[str] = []
    while messages and messages[0].get("role") in ("system", "developer"):
        system.append(text_of(messages.pop(0).get("content")))
    return "\n".join(system), messages


def _anthropic_parts(body: Json) -> tuple[str, list[Json]]:
    messages: list[Json] = []
    for message in body.get("messages") or []:
        messages.extend(_chat_messages(message))
    return text_of(body.get("system")), messages


def _chat_messages(message: Json) -> list[Json]:
    """One Anthropic message as chat messages: its tool results first, then the rest."""
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
        told.append(_chat_message(role, rest, uses))
    return told


def _chat_message(role: str, rest: list[Json], uses: list[Json]) -> Json:
    only_text = all(block.get("type") == "text" for block in rest)
    message: Json = {"role": role, "content": text_of(rest) if only_text else rest}
    if uses:
        message["tool_calls"] = [
            {
                "id": use.get("id", ""),
                "type": "function",
                "function": {
                    "name": use.get("name", ""),
                    "arguments": json.dumps(use.get("input")),
                },
            }
            for use in uses
        ]
    return message


def _chat_tool(tool: Json) -> Json:
    return {
        "type": "function",
        "function": {
            "name": tool.get("name", ""),
            "description": tool.get("description", ""),
            "parameters": tool.get("input_schema", {}),
        },
    }


def _pieces(text: str) -> list[str]:
    return [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]


def _chat_usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _chat_call(call: ToolUse) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.args_text},
    }


def _chat_answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = [_chat_call(call) for call in calls]
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
        answer["usage"] = _chat_usage(reply.usage)
    return answer


def _chat_events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[str]:
    """The server-sent events of a streamed chat completion."""
    for delta in _chat_deltas(reply, calls):
        yield _data(_chat_chunk([{"index": 0, "delta": delta, "finish_reason": None}]))
    finish = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield _data(_chat_chunk([finish]))
    if reply.usage is not None:
        yield _data({**_chat_chunk([]), "usage": _chat_usage(reply.usage)})
    yield "data: [DONE]\n\n"


def _chat_deltas(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for piece in _pieces(reply.text):
        yield {"content": piece}
    for index, call in enumerate(calls):
        opening = _chat_call(call) | {"index": index}
        opening["function"] = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [opening]}
        for piece in _pieces(call.args_text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chat_chunk(choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": choices,
    }


def _data(value: Json) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _anthropic_usage(usage: Usage | None) -> Json:
    told = usage or Usage(0, 0)
    return {"input_tokens": told.prompt_tokens, "output_tokens": told.completion_tokens}


def _anthropic_message(reply: Reply, content: list[Json], stop: str | None) -> Json:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": MODEL_NAME,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _anthropic_usage(reply.usage),
    }


def _tool_input(call: ToolUse) -> object:
    """The arguments as JSON; malformed text stays text, since there is no other way to send it."""
    try:
        return json.loads(call.args_text)
    except ValueError:
        return call.args_text


def _anthropic_answer(reply: Reply, calls: Sequence[ToolUse]) -> Json:
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _tool_input(call)}
        for call in calls
    ]
    return _anthropic_message(reply, content, "tool_use" if calls else "end_turn")


def _anthropic_events(reply: Reply, calls: Sequence[ToolUse]) -> Iterator[str]:
    """The server-sent events of a streamed Anthropic message."""
    yield _event("message_start", {"message": _anthropic_message(reply, [], None)})
    index = 0
    if reply.text or not calls:
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text)]
        yield from _block_events(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for at, call in enumerate(calls, start=index):
        block: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.args_text)
        ]
        yield from _block_events(at, block, deltas)
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield _event("message_delta", {"delta": stop, "usage": _anthropic_usage(reply.usage)})
    yield _event("message_stop", {})


def _block_events(index: int, block: Json, deltas: Sequence[Json]) -> Iterator[str]:
    yield _event("content_block_start", {"index": index, "content_block": block})
    for delta in deltas:
        yield _event("content_block_delta", {"index": index, "delta": delta})
    yield _event("content_block_stop", {"index": index})


def _event(kind: str, value: Json) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **value})}\n\n"


def _error_body(form: Form, reply: Reply) -> Json:
    if isinstance(reply.error, dict):
        return reply.error
    message = reply.error or "scripted error"
    kind = "api_error" if reply.status >= 500 else "invalid_request_error"
    if form == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Silent: clients under test hang up in mid-answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm: ClassVar[bool] = True
    server: _Server

    def do_GET(self) -> None:
        path = self._path()
        self.server.model._note_other(f"GET {path}")
        if path == "/v1/models":
            entry = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "test"}
            self._send_json(200, {"object": "list", "data": [entry]})
        else:
            self._not_found()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self._path()
        form = _FORMS.get(path)
        if form is None:
            self.server.model._note_other(f"POST {path}")
            self._not_found()
            return
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if isinstance(body, dict):
            self._complete(path, form, body)
        else:
            self._send_json(400, _error_body(form, Reply(status=400, error="body is no object")))

    def log_message(self, *_: object) -> None:
        """Silent: the requests are recorded."""

    def _complete(self, path: str, form: Form, body: Json) -> None:
        model = self.server.model
        request, step = model._record(path, form, body)
        reply = model._reply(request, step)
        if reply.delay_event is not None:
            reply.delay_event.wait(MAX_DELAY_SECONDS)
        if reply.status != 200:
            self._send_json(reply.status, _error_body(form, reply))
            return
        calls = model._with_ids(reply.tool_calls)
        if request.stream:
            events = _chat_events if form == "chat" else _anthropic_events
            self._send_events(events(reply, calls))
        else:
            answer = _chat_answer if form == "chat" else _anthropic_answer
            self._send_json(200, answer(reply, calls))

    def _path(self) -> str:
        return self.path.split("?", 1)[0]

    def _not_found(self) -> None:
        self._send_json(404, {"error": {"message": "not found", "type": "not_found_error"}})

    def _send_json(self, status: int, value: Json) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _send_events(self, events: Iterator[str]) -> None:
        # Without a length the end of the stream is the end of the connection.
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode())
            self.wfile.flush()
