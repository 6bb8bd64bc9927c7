"""The server: it takes requests in, and answers them out of the script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import MappingProxyType
from typing import ClassVar, Self

from hermes_ext.testing.model_server.anthropic import ANTHROPIC
from hermes_ext.testing.model_server.chat import CHAT
from hermes_ext.testing.model_server.converse import CONVERSE, is_converse
from hermes_ext.testing.model_server.responses import RESPONSES
from hermes_ext.testing.model_server.script import (
    MAX_DELAY_SECONDS,
    MODEL_NAME,
    Json,
    ModelRequest,
    Reply,
    ToolUse,
    is_main_request,
)
from hermes_ext.testing.model_server.wire import Wire

EXHAUSTED_TEXT = "SCRIPT EXHAUSTED"

_TITLE = Reply("ok title")

Script = Sequence[Reply] | Callable[[ModelRequest], Reply]

_WIRES: Mapping[str, Wire] = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": ANTHROPIC,
    "/v1/responses": RESPONSES,
}


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
        auxiliary: Reply | Callable[[ModelRequest], Reply] = _TITLE,
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
        self._ids = count(1)
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

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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
        """`http://127.0.0.1:PORT`, the base URL for Anthropic messages and the endpoint of Bedrock.

        Raises RuntimeError outside the context.
        """
        if self._server is None:
            raise RuntimeError("ScriptedModel is not running; use it as a context manager")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`, the base URL for chat completions and Responses."""
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

    def _record(self, path: str, wire: Wire, body: Json) -> tuple[ModelRequest, int]:
        """Record a request; returns it with its step number (only used for main ones)."""
        request = ModelRequest(path, body, wire.form, *wire.asked(path, body))
        is_main = self._is_main(request)
        request = replace(request, is_main=is_main)
        with self._changed:
            step = self._steps
            self._steps += is_main
            self._requests.append(request)
            self._changed.notify_all()
        return request, step

    def _reply(self, request: ModelRequest, step: int) -> Reply:
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
        def with_id(call: ToolUse) -> ToolUse:
            return call if call.id is not None else replace(call, id=f"call_{next(self._ids)}")

        return [*map(with_id, calls)]


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
        wire = CONVERSE if is_converse(path) else _WIRES.get(path)
        if wire is None:
            self.server.model._note_other(f"POST {path}")
            self._not_found()
            return
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if isinstance(body, dict):
            self._complete(path, wire, body)
        else:
            self._send_error(wire, Reply(status=400, error="body is not an object"))

    def log_message(self, *_: object) -> None:
        """Silent: the requests are recorded."""

    def _complete(self, path: str, wire: Wire, body: Json) -> None:
        model = self.server.model
        request, step = model._record(path, wire, body)
        reply = model._reply(request, step)
        if reply.delay_event is not None:
            reply.delay_event.wait(MAX_DELAY_SECONDS)
        if reply.status != 200:
            self._send_error(wire, reply)
            return
        calls = model._with_ids(reply.tool_calls)
        if request.stream:
            self._send_events(wire.stream_type, wire.events(reply, calls))
        else:
            self._send_json(200, wire.answer(reply, calls))

    def _path(self) -> str:
        return self.path.split("?", 1)[0]

    def _not_found(self) -> None:
        self._send_json(404, {"error": {"message": "not found", "type": "not_found_error"}})

    def _send_error(self, wire: Wire, reply: Reply) -> None:
        body = reply.error if isinstance(reply.error, dict) else wire.error(reply)
        self._send_json(reply.status, body, wire.error_headers(reply))

    def _send_json(
        self, status: int, value: Json, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _send_events(self, content_type: str, events: Iterator[bytes]) -> None:
        # Without a length the end of the stream is the end of the connection.
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()
