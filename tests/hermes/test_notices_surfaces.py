"""Where each surface reports a blocked call and a fault of the configuration, and where not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.harness.irc import chat_server
from tests.harness.stdio import served

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

GUARD = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no_plan(tool_args):
    return HookResult.block('no plan yet')
"""

IN_CHAT = "┊ house-rules blocked write_file: no plan yet (/extensions why)"
AGAIN_IN_CHAT = "┊ house-rules blocked write_file once more: no plan yet (/extensions why)"
ON_STDERR = [
    "hermes-ext: house-rules blocked write_file: no plan yet (hermes extensions why)",
    "hermes-ext: house-rules blocked write_file once more: no plan yet (hermes extensions why)",
]
FAULT = "extensions.log: found "


def script(request: ModelRequest) -> Reply:
    """Two files at once, then an answer."""
    if request.messages[-1]["role"] == "tool":
        return Reply("All done.")
    return Reply(
        tool_calls=tuple(ToolUse("write_file", {"path": n, "content": "x"}) for n in ("a", "b"))
    )


@pytest.fixture
def home(hermes: HomeFactory, model_factory: ModelFactory) -> HermesHome:
    """A guard that refuses every file, and a fault in the configuration."""
    quiet = {"tool_progress": "off", "busy_input_mode": "queue"}
    made = hermes(model_factory(script), extensions={"log": "x"}, config={"display": quiet})
    made.extension("house-rules", GUARD)
    return made


def ours(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("hermes-ext: ", "┊"))]


def test_a_script_reads_it_on_standard_error(home: HermesHome) -> None:
    """Of `-z` and `chat -q`; standard output has none of our lines."""
    run = home.oneshot("go").check()
    assert run.stdout.startswith("All done.\n")  # newer Hermes says which files were not written
    assert ours(run.stdout) == []
    fault, *lines = ours(run.stderr)
    assert FAULT in fault
    assert lines == ON_STDERR
    run = home.chat("go").check()
    assert "hermes-ext" not in run.stdout
    assert "┊ house-rules" not in run.stdout
    fault, *lines = ours(run.stderr)
    assert FAULT in fault
    assert lines == ON_STDERR


def test_a_chat_has_what_rules_did_and_the_gateway_what_is_wrong(home: HermesHome) -> None:
    """The person in the chat sees the block; the fault is for whoever runs the gateway. Of the
    API server both are on standard error, and no answer has them.
    """
    with chat_server() as chats, home.gateway(env=chats.env) as gateway:
        chats.say("ann", "go")
        chats.hears("ann", AGAIN_IN_CHAT)
        heard = chats.hears("ann", "All done.")
        assert heard.count(IN_CHAT) == 1
        assert FAULT not in heard
        assert [line for line in ours(gateway.output) if FAULT not in line] == []
        assert gateway.output.count("hermes-ext: ") == 1
        for stream in (False, True):
            answer = gateway.ask("go on", stream=stream)
            assert "All done." in answer.text
            assert "house-rules" not in answer.text
        assert [line for line in ours(gateway.output) if FAULT not in line] == 2 * ON_STDERR


_TUI = """
events = []

def answer(message):
    events.append(message.get('params') or {})

def happens(event):
    until(lambda one: (one.get('params') or {}).get('type') == event)

def converse(told):
    happens('gateway.ready')
    session = ask('session.create', {'cols': 80})['session_id']
    for _ in range(2):
        ask('prompt.submit', {'session_id': session, 'text': 'go'})
        happens('message.complete')
    status = [e['payload'] for e in events if e.get('type') == 'status.update']
    Path(told).write_text(json.dumps(status))

def serve():
    from tui_gateway.entry import main
    main()
"""


def test_the_tui_has_status_events(home: HermesHome) -> None:
    """A block and a fault are each a status event of the session, the fault once."""
    told = home.base / "told.json"
    run = served(home, _TUI, str(told))
    events = json.loads(told.read_text())
    texts = [event["text"] for event in events]
    assert texts.count(IN_CHAT) == 2  # one for each turn
    assert texts.count(AGAIN_IN_CHAT) == 2
    (fault,) = [event for event in events if FAULT in event["text"]]
    assert fault["kind"] == "warn"
    assert fault["text"].startswith("hermes-ext: ")
    assert ours(run.stderr) == []


_ACP = """
def answer(message):
    if message.get('method') == 'session/request_permission':
        raise AssertionError('nobody is to be asked about a call that is refused')

def converse(text):
    ask('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
    session = ask('session/new', {'cwd': os.getcwd(), 'mcpServers': []})['sessionId']
    prompt = [{'type': 'text', 'text': text}]
    ask('session/prompt', {'sessionId': session, 'prompt': prompt})

def serve():
    from acp_adapter.entry import main
    main([])
"""


def test_an_editors_protocol_has_nothing_but_messages(home: HermesHome) -> None:
    """`hermes acp` writes only JSON-RPC to standard output; our lines go to standard error."""
    run = served(home, _ACP, "go")  # its client reads each line of the output as JSON
    fault, *lines = ours(run.stderr)
    assert FAULT in fault
    assert lines == ON_STDERR
