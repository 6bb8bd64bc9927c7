"""Every surface that Hermes has: a turn that came by it is judged like any other.

The model is asked to `work in FOLDER`. It writes something evil there and then something fine, each
by the tool that the test names, and says that it is done.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.enforcement.table import Group, Tried, Way, came_of, home_of
from tests.harness.home import Gateway, HermesHome
from tests.harness.stdio import served

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

ASKED = re.compile(r"work in (\S+)(?: by (\w+))?")
EVIL, FINE = ("a", "evil"), ("b", "fine")


def _call(folder: str, tool: str, name: str, text: str) -> ToolUse:
    path = f"{folder}/{name}"
    if tool == "execute_code":
        # The guard sees the code too, and would find the word in it.
        halves = f"{text[:2]!r} + {text[2:]!r}"
        code = f"from hermes_tools import write_file\nwrite_file({path!r}, {halves})\n"
        return ToolUse(tool, {"code": code})
    return ToolUse(tool, {"path": path, "content": text})


def script(request: ModelRequest) -> Reply:
    """The model: evil first, then fine, and what each became is its own business."""
    asked = ASKED.search(request.last_user)
    if asked is None:
        return Reply("Done.")
    folder, tool = asked.group(1), asked.group(2) or "write_file"
    done = _results_since_asked(request)
    if done == 2:
        return Reply("Done.")
    # Tools of MCP servers have longer names, which differ from one Hermes to another.
    named = next((name for name in request.tool_names if name.endswith(tool)), tool)
    return Reply(tool_calls=(_call(folder, named, *(FINE if done else EVIL)),))


def _results_since_asked(request: ModelRequest) -> int:
    roles = [message["role"] for message in request.messages]
    last = len(roles) - 1 - roles[::-1].index("user")
    return roles[last:].count("tool")


def finished(folder: Path) -> Callable[[tuple[ModelRequest, ...]], bool]:
    """Whether the model has been told of both calls in a folder."""

    def seen(requests: tuple[ModelRequest, ...]) -> bool:
        mine = (one for one in requests if one.is_main and f"{folder} " in f"{one.last_user} ")
        return any(_results_since_asked(one) == 2 for one in mine)

    return seen


@contextmanager
def _home(
    base: Path,
    guarded: bool,
    plays: Callable[[ModelRequest], Reply] = script,
    **options: Any,
) -> Iterator[tuple[HermesHome, ScriptedModel]]:
    with ScriptedModel(plays, auxiliary=plays) as model:
        yield home_of(base, guarded, model, **options), model


def _work(home: HermesHome, name: str, say: Callable[[str], object], how: str = "") -> Tried:
    folder = home.project / name
    folder.mkdir()
    return came_of(folder, say(f"work in {folder}{how}"))


# -- the command line ------------------------------------------------------------------------------

ONESHOT, CHAT, RESUMED = "`hermes -z`", "`hermes chat -q`", "`hermes chat --continue`"


def _command_line(base: Path, guarded: bool) -> dict[str, Tried]:
    with _home(base, guarded) as (home, _):
        return {
            ONESHOT: _work(home, "oneshot", lambda text: home.oneshot(text).check()),
            CHAT: _work(home, "chat", lambda text: home.chat(text).check()),
            RESUMED: _work(home, "resumed", lambda text: home.chat(text, "--continue").check()),
        }


# -- the gateway -----------------------------------------------------------------------------------

COMPLETIONS = "API server: `/v1/chat/completions`"
STREAMED = "API server: `/v1/chat/completions`, streamed"
RESPONSES = "API server: `/v1/responses`"
RESPONSES_STREAMED = "API server: `/v1/responses`, streamed"
RUNS = "API server: `/v1/runs`"
SESSION_CHAT = "API server: a session's `/chat`"
MESSAGING = "a messaging platform"
MCP = "a tool of a real MCP server"
CODE = "calls back from `execute_code`, through the gateway"

_SERVER = """\
from pathlib import Path
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:  # the second version of the library
    from mcp.server.mcpserver import MCPServer as Server

server = Server('far')

@server.tool()
def far_put(path: str, content: str) -> str:
    Path(path).write_text(content)
    return 'put'

server.run()
"""


def _gateway(base: Path, guarded: bool) -> dict[str, Tried]:
    """One gateway: all endpoints of its API server, a messaging platform and an MCP server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    base.mkdir(parents=True, exist_ok=True)
    server = base / "server.py"
    server.write_text(_SERVER)
    route = {"secret": "INSECURE_NO_AUTH", "prompt": "{text}", "deliver": "log"}
    extra = {"host": "127.0.0.1", "port": port, "routes": {"note": route}}
    config = {
        "approvals": {"mode": "off"},  # nobody is asked before a script runs
        "platforms": {"webhook": {"enabled": True, "extra": extra}},
        "platform_toolsets": {"webhook": ["file"]},
        "mcp_servers": {"far": {"command": sys.executable, "args": [str(server)]}},
    }
    with _home(base, guarded, config=config) as (home, model), home.gateway() as gateway:

        def responses(stream: bool) -> Callable[[str], object]:
            return lambda text: gateway.post(
                "/v1/responses", {"model": "hermes-agent", "input": text, "stream": stream}
            )

        def send(text: str) -> None:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as link:
                kind = {"Content-Type": "application/json"}
                link.request("POST", "/webhooks/note", json.dumps({"text": text}), kind)
                assert link.getresponse().status == 202
            model.wait_for(finished(home.project / "messaging"), timeout=120)

        return {
            COMPLETIONS: _work(home, "plain", gateway.ask),
            STREAMED: _work(home, "streamed", lambda text: gateway.ask(text, stream=True)),
            RESPONSES: _work(home, "responses", responses(False)),
            RESPONSES_STREAMED: _work(home, "responses-streamed", responses(True)),
            RUNS: _work(home, "runs", lambda text: _run(gateway, model, text)),
            SESSION_CHAT: _work(home, "session", lambda text: _session(gateway, text)),
            MESSAGING: _work(home, "messaging", send),
            MCP: _work(home, "mcp", gateway.ask, " by far_put"),
            CODE: _work(home, "code", gateway.ask, " by execute_code"),
        }


def _run(gateway: Gateway, model: ScriptedModel, text: str) -> object:
    folder = Path(ASKED.search(text).group(1))  # type: ignore[union-attr]
    told = gateway.post("/v1/runs", {"model": "hermes-agent", "input": text})
    model.wait_for(finished(folder), timeout=120)
    return told


def _session(gateway: Gateway, text: str) -> object:
    made = gateway.post("/api/sessions", {}).body
    session = made.get("id") or made["session"]["id"]
    return gateway.post(f"/api/sessions/{session}/chat", {"message": text})


# -- servers on standard input and output ----------------------------------------------------------

TUI = "the terminal interface's backend"
QUEUED = "the terminal interface's backend, a message that was queued"
ACP = "an editor, by ACP"

_TUI_CLIENT = """
def happens(event):
    until(lambda one: one.get('params', {}).get('type') == event)

def converse(text, queued):
    happens('gateway.ready')
    session = ask('session.create', {'cols': 80})['session_id']
    ask('prompt.submit', {'session_id': session, 'text': text})
    told = ask('prompt.submit', {'session_id': session, 'text': queued})
    assert told == {'status': 'queued'}, told
    Path('is-queued').touch()
    for _ in range(2):
        happens('message.complete')

def serve():
    from tui_gateway.entry import main
    main()
"""

_ACP_CLIENT = """
def answer(message):
    # Hermes asks the editor before it writes; the person there says yes to all.
    if message.get('method') == 'session/request_permission':
        options = message['params']['options']
        yes = next(one for one in options if one['kind'] == 'allow_once')
        chosen = {'outcome': 'selected', 'optionId': yes['optionId']}
        tell(id=message['id'], result={'outcome': chosen})

def converse(text):
    ask('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
    session = ask('session/new', {'cwd': os.getcwd(), 'mcpServers': []})['sessionId']
    prompt = [{'type': 'text', 'text': text}]
    ask('session/prompt', {'sessionId': session, 'prompt': prompt})

def serve():
    from acp_adapter.entry import main
    main([])
"""


def _tui(base: Path, guarded: bool) -> dict[str, Tried]:
    config = {"display": {"busy_input_mode": "queue"}}

    def until_queued(request: ModelRequest) -> Reply:
        # The first turn does not end before the second message is there.
        end = time.monotonic() + 120
        while not (base / "project" / "is-queued").exists() and time.monotonic() < end:
            threading.Event().wait(0.05)
        return script(request)

    with _home(base, guarded, until_queued, config=config) as (home, _):
        folders = {TUI: home.project / "tui", QUEUED: home.project / "queued"}
        for folder in folders.values():
            folder.mkdir()
        told = served(home, _TUI_CLIENT, *(f"work in {folder}" for folder in folders.values()))
        return {name: came_of(folder, told) for name, folder in folders.items()}


def _acp(base: Path, guarded: bool) -> Tried:
    with _home(base, guarded) as (home, _):
        return _work(home, "acp", lambda text: served(home, _ACP_CLIENT, text))


# -- without a person ------------------------------------------------------------------------------

CRON = "a cron job"
BATCH = "the batch runner"

_DUE = """\
import sys
from cron.jobs import create_job, trigger_job

trigger_job(create_job({text!r}, 'every 5h', deliver='local')['id'])
sys.argv = ['hermes', 'cron', 'tick']
from hermes_cli.main import main
main()
"""


def _cron(base: Path, guarded: bool) -> Tried:
    with _home(base, guarded) as (home, _):
        return _work(home, "cron", lambda text: home.python(_DUE.format(text=text)).check())


def _batch(base: Path, guarded: bool) -> Tried:
    spec = find_spec("batch_runner")
    assert spec is not None
    assert spec.origin is not None
    runner = Path(spec.origin)
    with _home(base, guarded) as (home, model):

        def say(text: str) -> object:
            asked = home.base / "asked.jsonl"
            asked.write_text(json.dumps({"prompt": text}) + "\n")
            return home.python(
                runner,
                f"--dataset_file={asked}",
                "--batch_size=1",
                "--run_name=run",
                "--num_workers=1",
                "--model=scripted",
                f"--base_url={model.base_url}",
                "--api_key=sk-test",
                timeout=240,
                cwd=home.base,
            )

        return _work(home, "batch", say)


_NOTES = """\
The paths of tool calls inside a process are in the table above: calls in parallel, the bridge of
tool search, subagents, the review in the background, scripts of `execute_code`, dispatch by other
plugins.

Not driven, and why:

- Telegram, Discord, Slack and the other chat platforms need their services. They end where the
  webhook platform does: in the gateway's one handler of messages, and in the agent's
  `run_conversation`.
- The desktop and web interfaces speak to the terminal interface's backend over a socket instead of
  pipes.

Not reached:

- In `codex_app_server` sessions, and with the provider `copilot-acp`, a program of its own calls
  the model and runs tools, where Hermes has no say. While a guard is on, or a required extension,
  such a turn is refused before it begins (`tests/hermes/test_out_of_sight.py`).
- What a tool starts, and what an MCP server does when it is called, is judged by the call that
  starts it, and not again.
"""

GROUP = Group(
    "surfaces",
    "Every surface a turn can come by",
    [
        Way(ONESHOT, _command_line, how="the command"),
        Way(CHAT, _command_line, how="the command"),
        Way(RESUMED, _command_line, how="the command, after the one above"),
        *(
            Way(name, _gateway, how="`hermes gateway run` on loopback, asked over HTTP")
            for name in (
                COMPLETIONS,
                STREAMED,
                RESPONSES,
                RESPONSES_STREAMED,
                RUNS,
                SESSION_CHAT,
            )
        ),
        Way(MESSAGING, _gateway, how="the webhook platform of the same gateway"),
        Way(MCP, _gateway, how="a server of the `mcp` package, over its standard input and output"),
        Way(CODE, _gateway, how="the same gateway; the script runs in a process of its own"),
        Way(TUI, _tui, how="`tui_gateway`, spoken to over its standard input and output"),
        Way(QUEUED, _tui, how="the same; sent while the one above is worked on"),
        Way(ACP, _acp, how="`hermes acp`, the same, as an editor speaks to it"),
        Way(CRON, _cron, how="`hermes cron tick`, with a job that is due"),
        Way(BATCH, _batch, how="`batch_runner.py`, with one worker"),
    ],
    notes=_NOTES,
)
