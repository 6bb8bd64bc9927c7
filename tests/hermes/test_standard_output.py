"""What an extension prints, in the programs of Hermes whose standard output is a protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from tests.harness.home import HermesHome, hermes_command

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

NOISY = """\
import logging, os, subprocess, sys, threading
from hermes_ext import register_hook, register_command

log = logging.getLogger('noisy')
log.addHandler(logging.StreamHandler(sys.stdout))
log.propagate = False
early = sys.stdout  # as it was when the code was imported


def shout(where):
    print(f'NOISE-print-{where}', flush=True)
    print(f'NOISE-buffered-{where}')
    print(f'NOISE-early-{where}', file=early, flush=True)
    print(f'NOISE-dunder-{where}', file=sys.__stdout__, flush=True)
    sys.stdout.write(f'NOISE-no-end-{where}')
    log.error('NOISE-log-%s', where)
    os.write(1, f'NOISE-os-{where}\\n'.encode())
    subprocess.run(['sh', '-c', f'echo NOISE-child-{where}'], check=True)
    os.system(f'echo NOISE-system-{where}')
    thread = threading.Thread(target=lambda: (print(f'NOISE-thread-{where}', flush=True),
                                              os.write(1, b'NOISE-thread-os\\n')))
    thread.start()
    thread.join()


shout('import')


@register_hook('transform_user_input')
def typed(user_message):
    shout('input')


@register_hook('before_llm_call')
def request(messages):
    shout('request')


@register_hook('intercept_tool_call')
async def called(tool_name):
    shout('call')


@register_hook('transform_tool_result', timeout=20)
def result(result):
    shout('result')


@register_command('noise')
def noise():
    shout('command')
    return 'made noise'
"""

PLACES = ("import", "input", "request", "call", "result")


class Client:
    """The other end of a program's standard streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0
        self.lines: list[str] = []

    def tell(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a call; each line that comes before it is JSON too."""
        self._number += 1
        asked = self._number
        self.tell(id=asked, method=method, params=params)
        for message in self._messages():
            if message.get("id") == asked and "method" not in message:
                assert "result" in message, message
                return message["result"]
            if message.get("method") == "session/request_permission":
                self.tell(id=message["id"], result={"outcome": {"outcome": "cancelled"}})
        raise AssertionError("the program has ended")

    def until(self, event: str) -> None:
        """Wait for an event of the TUI's backend."""
        for message in self._messages():
            if (message.get("params") or {}).get("type") == event:
                return
        raise AssertionError("the program has ended")

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        for _ in self._messages():
            pass
        self._process.wait(60)

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            yield json.loads(line)


@contextmanager
def client(home: HermesHome, *command: str, errors: Path, **env: str) -> Iterator[Client]:
    """A program and its client; what it says on standard error goes to a file."""
    with errors.open("w") as err, started(home, command, err, env) as process:
        watchdog = threading.Timer(150, process.kill)
        watchdog.start()
        try:
            yield Client(process)
        finally:
            watchdog.cancel()
            process.kill()


def started(
    home: HermesHome, command: tuple[str, ...], err: IO[str], env: dict[str, str]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=home.project,
        env=home.env(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=err,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def errors(tmp_path: Path) -> Path:
    return tmp_path / "standard-error"


def check(client: Client, errors: Path, places: tuple[str, ...] = PLACES) -> None:
    """Every line was JSON, none held what was printed, and all of that is on standard error."""
    assert client.lines
    assert not any("NOISE" in line for line in client.lines)
    told = errors.read_text()
    ways = (
        "print",
        "buffered",
        "early",
        "dunder",
        "no-end",
        "log",
        "os",
        "child",
        "system",
        "thread",
    )
    missing = [
        f"{way}-{place}" for place in places for way in ways if f"NOISE-{way}-{place}" not in told
    ]
    assert missing == []


def editor(client: Client, home: HermesHome) -> list[Any]:
    """A session as an editor holds it, two turns long."""
    client.ask("initialize", protocolVersion=1, clientCapabilities={})
    session = client.ask("session/new", cwd=str(home.project), mcpServers=[])["sessionId"]
    prompt = [{"type": "text", "text": "go"}]
    return [
        client.ask("session/prompt", sessionId=session, prompt=prompt)["stopReason"] for _ in "12"
    ]


def test_an_editor(model_factory: ModelFactory, hermes: HomeFactory, errors: Path) -> None:
    """`hermes acp`: from the import of an extension to the end of the session."""
    read = ToolUse("read_file", {"path": "a.txt"})
    model = model_factory([Reply(tool_calls=(read,)), Reply("ONE"), Reply("TWO")])
    home = hermes(model)
    (home.project / "a.txt").write_text("a\n")
    home.extension("noisy", NOISY)
    with client(home, *hermes_command(), "acp", errors=errors) as acp:
        assert editor(acp, home) == ["end_turn", "end_turn"]
        acp.end()
    said = "".join(acp.lines)
    assert "ONE" in said
    assert "TWO" in said
    check(acp, errors)


def test_an_editor_without_extensions(
    model_factory: ModelFactory, hermes: HomeFactory, errors: Path
) -> None:
    """Where none is on, standard output is left alone: a plugin that prints still gets there."""
    home = hermes(model_factory([Reply("ONE"), Reply("TWO")]))
    folder = home.home / "plugins" / "prints"
    folder.mkdir(parents=True)
    manifest = {"name": "prints", "version": "1", "description": "x", "kind": "standalone"}
    (folder / "plugin.yaml").write_text(json.dumps(manifest))
    (folder / "__init__.py").write_text(
        "import os\ndef register(ctx):\n"
        "    say = lambda **_: os.write(1, b'\"PLUGIN\"\\n') and None\n"
        "    ctx.register_hook('pre_llm_call', say)\n"
    )
    enabled = [*home.config["plugins"]["enabled"], "prints"]
    home.write_config({"plugins": {"enabled": enabled}})
    with client(home, *hermes_command(), "acp", errors=errors) as acp:
        acp._messages = lambda: filter(lambda one: isinstance(one, dict), Client._messages(acp))  # type: ignore[method-assign]
        assert editor(acp, home) == ["end_turn", "end_turn"]
        acp.end()
    assert acp.lines.count('"PLUGIN"\n') == 2


def test_an_mcp_server(model_factory: ModelFactory, hermes: HomeFactory, errors: Path) -> None:
    """The server that offers Hermes's own tools to other programs."""
    home = hermes(model_factory([]))
    home.extension("noisy", NOISY)
    module = "agent.transports.hermes_tools_mcp_server"
    with client(home, sys.executable, "-m", module, errors=errors) as mcp:
        about = {"name": "test", "version": "1"}
        mcp.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        mcp.tell(method="notifications/initialized")
        tools = [tool["name"] for tool in mcp.ask("tools/list")["tools"]]
        assert "skills_list" in tools
        for _ in "12":
            told = mcp.ask("tools/call", name="skills_list", arguments={})
            assert not told.get("isError"), told
        mcp.end()
    check(mcp, errors, ("import", "call", "result"))


def test_the_mcp_server_for_chats(
    model_factory: ModelFactory, hermes: HomeFactory, errors: Path
) -> None:
    """`hermes mcp serve` runs no extension, or none that is heard."""
    home = hermes(model_factory([]))
    home.extension("noisy", NOISY)
    with client(home, *hermes_command(), "mcp", "serve", errors=errors) as mcp:
        about = {"name": "test", "version": "1"}
        mcp.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        mcp.tell(method="notifications/initialized")
        for tool in mcp.ask("tools/list")["tools"]:
            if tool["name"] in ("conversations_list", "channels_list"):
                assert not mcp.ask("tools/call", name=tool["name"], arguments={}).get("isError")
        mcp.end()
    assert not any("NOISE" in line for line in mcp.lines)


def test_the_backend_of_the_tui(
    model_factory: ModelFactory, hermes: HomeFactory, errors: Path
) -> None:
    """`tui_gateway` turns Python's own output away by itself, and not that of programs."""
    read = ToolUse("read_file", {"path": "a.txt"})
    home = hermes(model_factory([Reply(tool_calls=(read,)), Reply("ONE")]))
    (home.project / "a.txt").write_text("a\n")
    home.extension("noisy", NOISY)
    program = "from tui_gateway.entry import main; main()"
    with client(home, sys.executable, "-c", program, errors=errors) as tui:
        tui.until("gateway.ready")
        session = tui.ask("session.create", cols=80)["session_id"]
        tui.ask("prompt.submit", session_id=session, text="go")
        tui.until("message.complete")
        tui.end()
    assert "ONE" in "".join(tui.lines)
    check(tui, errors)


EARLY = """\
import asyncio, json, os, subprocess, sys
from hermes_ext.hosts.hermes.adapter import standard_output

def noise():
    print('NOISE', flush=True)
    os.write(1, b'NOISE')
    subprocess.run(['echo', 'NOISE'], check=True)

standard_output.keep_protocols_clean()
import acp_adapter.entry
standard_output.extensions_run()
noise()
import acp.stdio, mcp.server.stdio
from mcp.types import JSONRPCNotification
from mcp.shared.message import SessionMessage

async def editor():
    _, writer = await acp.stdio.stdio_streams()
    writer.write(b'{"jsonrpc": "2.0", "method": "acp"}\\n')
    await writer.drain()

async def tools():
    async with mcp.server.stdio.stdio_server() as (_, write):
        said = JSONRPCNotification(jsonrpc='2.0', method='mcp')
        await write.send(SessionMessage(said))
        await write.aclose()

noise()
asyncio.run(editor() if sys.argv[1] == 'acp' else tools())
noise()
os._exit(0)
"""


@pytest.mark.parametrize("protocol", ["acp", "mcp"])
def test_an_extension_before_the_protocol(
    hermes: HomeFactory, model_factory: ModelFactory, errors: Path, protocol: str
) -> None:
    """Code that runs before a program has opened its protocol is kept out as well."""
    home = hermes(model_factory([]))
    with client(home, sys.executable, "-c", EARLY, protocol, errors=errors) as early:
        early.end()
    assert [json.loads(line)["method"] for line in early.lines] == [protocol]
    assert errors.read_text().count("NOISE") == 9
