"""One session of the real Hermes beside plugins of others, and what each of them recorded of it.

The plugins are of PyPI, pinned in noxfile.py. Their settings are in the test's own home, and what
they send goes to a server of the test.
"""

from __future__ import annotations

import base64
import functools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from tests.harness.home import PLUGIN, HermesHome

from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse

FENCE, TENUO, LATITUDE = "agentsfence", "hermes-tenuo", "latitude"
NEIGHBORS = (FENCE, TENUO, LATITUDE)
PROMPT = "my password is hunter2: read the files"

# Acts by the name of the file, and has the plugins discovered again in the middle of the session.
EXTENSION = """
from pathlib import Path
from hermes_ext import HookResult, register_hook

@register_hook("transform_user_input")
def hide(user_message):
    return HookResult.rewrite(user_message.replace("hunter2", "******"))

@register_hook("before_llm_call")
def instruct():
    return HookResult.inject_system("RULE OF THE HOUSE")

@register_hook("intercept_tool_call")
def act(tool_args):
    path = tool_args["path"]
    if path == "rediscover.txt":
        from hermes_cli.plugins import discover_plugins
        discover_plugins(force=True)
    if path == "rewrite.txt":
        return HookResult.rewrite({{**tool_args, "path": "rewritten.txt"}})
    if path == "answer.txt":
        return HookResult.answer("made up")

@register_hook("intercept_tool_call", guard=True)
def no(tool_args):
    with Path({asked!r}).open("a") as file:
        file.write(tool_args["path"] + chr(10))
    if tool_args["path"].startswith("forbidden"):
        return HookResult.block("NOT HERE")

@register_hook("transform_tool_result")
def redact(result):
    return HookResult.rewrite(result.replace("SECRET", "[hidden]"))
"""

# Where the code of a neighbor connects to anything but this machine. Hermes's own lookups do not
# concern it.
WATCH = """
import sys, traceback

def watch(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    files = " ".join(frame.filename for frame in traceback.extract_stack())
    theirs = any(f"/{{name}}" in files for name in ("agentsfence", "hermes_tenuo", "latitude_"))
    if theirs and host not in ("127.0.0.1", "localhost", "::1"):
        with open({reached!r}, "a") as file:
            file.write(f"{{host}}" + chr(10))

sys.addaudithook(watch)
"""


@frozen
class Session:
    """What a session left behind.

    Attributes:
        results: the tool results that the model got, by the id of the call.
        requests: what the model was asked.
        asked: the paths of the calls that our guard was asked about, in order.
        fence: AgentsFence's decisions, by the id of the call.
        tenuo: Tenuo's records, by the id of the call.
        spans: Latitude's spans as mappings of attributes, in the order of their end.
        reached: hosts outside this machine that code of a neighbor looked up or connected to.
    """

    results: dict[str, str]
    requests: list[ModelRequest]
    asked: list[str]
    fence: dict[str, list[dict[str, Any]]]
    tenuo: dict[str, list[dict[str, Any]]]
    spans: list[dict[str, str]]
    reached: list[str]

    def span_of(self, call: str) -> dict[str, str] | None:
        """Latitude's span of a tool call; None where it recorded none."""
        spans = (span for span in self.spans if span.get("gen_ai.tool.call.id") == call)
        return next(spans, None)


Beside = Callable[..., Session]


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    """Runs the session with the named plugins beside us, once for each set of names."""

    @functools.cache
    def run(*names: str) -> Session:
        return _run(tmp_path_factory.mktemp("beside"), names)

    return run


def _run(base: Path, names: tuple[str, ...]) -> Session:
    with ScriptedModel(_script()) as model, _collector() as (url, spans):
        home = HermesHome(base, model, plugins=(PLUGIN, *names), extra_env=_environment(base, url))
        home.extension("house", EXTENSION.format(asked=str(base / "asked")))
        for name in ("plain", "rewrite", "rewritten", "answer", "forbidden", "rediscover"):
            (home.project / f"{name}.txt").write_text(f"{name} SECRET\n")
        if TENUO in names:
            home.extra_env |= _warrant()
        home.oneshot(PROMPT).check()
        return Session(
            results=_results(model.main_requests[-1]),
            requests=model.main_requests,
            asked=_lines(base / "asked"),
            fence=_by_call(home.home / "agentsfence" / "audit.jsonl"),
            tenuo=_by_call(home.home / "tenuo" / "audit.jsonl"),
            spans=spans,
            reached=_lines(base / "reached"),
        )


def _script() -> list[Reply]:
    read = ("plain", "rewrite", "answer", "forbidden")
    calls = [ToolUse("read_file", {"path": f"{name}.txt"}, name) for name in read]
    calls.append(ToolUse("write_file", {"path": "write.txt", "content": "x"}, "write"))
    calls.append(ToolUse("read_file", {"path": "rediscover.txt"}, "rediscover"))
    calls.append(ToolUse("read_file", {"path": "forbidden-again.txt"}, "forbidden-again"))
    calls.append(ToolUse("write_file", {"path": "again.txt", "content": "x"}, "write-again"))
    return [*(Reply(tool_calls=(call,)) for call in calls), Reply("Done.")]


def _environment(base: Path, url: str) -> dict[str, str]:
    site = base / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(WATCH.format(reached=str(base / "reached")))
    latitude = {"LATITUDE_API_KEY": "k", "LATITUDE_PROJECT": "p", "LATITUDE_BASE_URL": url}
    return latitude | {"PYTHONPATH": str(site)}


def _warrant() -> dict[str, str]:
    """A warrant for reading, and for nothing else."""
    from tenuo import SigningKey, Warrant, Wildcard

    def text(raw: bytes) -> str:
        return base64.b64encode(bytes(raw)).decode()

    issuer, holder = SigningKey.generate(), SigningKey.generate()
    builder = Warrant.mint_builder().holder(holder.public_key)
    warrant = builder.capability("read_file", path=Wildcard()).ttl(600).mint(issuer)
    return {
        "TENUO_WARRANT": warrant.to_base64(),
        "TENUO_SIGNING_KEY": text(holder.secret_key_bytes()),
        "TENUO_TRUSTED_ROOT": text(issuer.public_key_bytes()),
    }


@contextmanager
def _collector() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server for Latitude's spans: its address, and what it has got so far."""
    with _Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.spans
        server.shutdown()


class _Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.spans: list[dict[str, str]] = []


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, _Collector)
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                self.server.spans.extend(map(_attributes, scope["spans"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _attributes(span: dict[str, Any]) -> dict[str, str]:
    values = {each["key"]: str(next(iter(each["value"].values()))) for each in span["attributes"]}
    return {"name": span["name"], **values}


def _results(request: ModelRequest) -> dict[str, str]:
    messages = [message for message in request.messages if message["role"] == "tool"]
    return {message["tool_call_id"]: message["content"] for message in messages}


def _by_call(file: Path) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in _lines(file):
        row = json.loads(line)
        if "tool_call_id" in row and row.get("event", "decision") == "decision":
            rows.setdefault(row["tool_call_id"], []).append(row)
    return rows


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
