"""Slash commands of extensions, typed where people type them: terminal, TUI and chats.

The same on each: the command sets the state of the conversation, and the next turn has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.irc import chat_server
from tests.harness.terminal import ENTER, terminal

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

PLAN = """\
from hermes_ext import HookResult, register_command, register_hook


@register_command('ext-plan', args_hint='on|off', help='turn plan mode on or off')
def plan(args, session_id, conversation_id, session_state, cwd, platform):
    if args == 'fail':
        raise ValueError('no such mode')
    session_state['plan'] = args
    known = bool(session_id and conversation_id and cwd)
    return f'Plan mode {args} by {platform}, {known}.'


@register_command('ext-later')
async def later(args):
    return f'Later {args}.'


@register_command('help')
def help_():
    return 'Never seen.'


@register_hook('before_llm_call')
def remind(session_state):
    return HookResult.inject_system(f"PLAN IS {session_state.get('plan')}")
"""


def heard(request: ModelRequest) -> Reply:
    return Reply(f"Heard {request.last_user}, {request.system.rpartition('PLAN ')[2]}.")


def home_with_plan(hermes: HomeFactory, model_factory: ModelFactory) -> HermesHome:
    # Hermes has said its answer before the turn is over; what is typed just then waits.
    quiet = {"tool_progress": "off", "busy_input_mode": "queue"}
    home = hermes(model_factory(heard), config={"display": quiet})
    home.extension("plan-mode", PLAN)
    return home


def test_at_the_terminal(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """A person at `hermes chat` types a command: it answers, and the model never sees it."""
    home = home_with_plan(hermes, model_factory)
    with terminal((*hermes_command(), "chat"), home.project, home.env()) as person:
        person.wait("Type your message")
        for typed, shown in (
            ("/ext-plan on", "Plan mode on by cli, True."),
            ("/ext-plan fail", "/ext-plan failed: ValueError: no such mode"),
            ("/ext-later x", "Later x."),
            ("hello", "Heard hello, IS on."),
        ):
            person.press(typed)
            person.wait(typed)  # an Enter that comes with other keys is taken for a pasted one
            person.press(ENTER)
            person.wait(shown)


def test_in_chats(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """A command counts in the chat it was typed in, and a name that Hermes has itself is told."""
    home = home_with_plan(hermes, model_factory)
    with chat_server() as chats, home.gateway(env=chats.env) as gateway:
        for who, said, shown in (
            ("ann", "/ext-plan on", "Plan mode on by irc, True."),
            ("bob", "hello", "Heard hello, IS None."),
            ("ann", "hello", "Heard hello, IS on."),
            ("ann", "/ext-plan fail", "/ext-plan failed: ValueError: no such mode"),
            ("ann", "/ext-later x", "Later x."),
            ("ann", "/ext-plan off", "Plan mode off by irc, True."),
            ("ann", "again", "Heard again, IS off."),
        ):
            chats.say(who, said)
            chats.hears(who, shown)
        assert "/help of the extension plan-mode is never called" in gateway.output


_TUI = """\
import json, os, sys, threading

stdin, to_server = os.pipe()
from_server, stdout = os.pipe()
os.dup2(stdin, 0)
os.dup2(stdout, 1)
sent, got = os.fdopen(to_server, 'w'), os.fdopen(from_server)
told = []

def until(matches):
    for line in got:
        message = json.loads(line)
        if matches(message):
            return message
    raise EOFError('the server has ended')

def ask(method, **params):
    number = len(told) + 1
    told.append(None)
    message = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}
    sent.write(json.dumps(message) + chr(10))
    sent.flush()
    return until(lambda one: one.get('id') == number)

def client():
    try:
        until(lambda one: one.get('params', {}).get('type') == 'gateway.ready')
        session = ask('session.create', cols=80)['result']['session_id']
        # Before that Hermes has loaded no plugin, and knows no command of any.
        until(lambda one: one.get('params', {}).get('type') == 'session.info')
        answers = [
            ask('slash.exec', session_id=session, command='/ext-plan on')['result']['output'],
            ask('command.dispatch', session_id=session, name='ext-later', arg='x')['result'],
            ask('slash.exec', session_id=session, command='/ext-plan fail')['result']['output'],
        ]
        ask('prompt.submit', session_id=session, text='hello')
        ended = until(lambda one: one.get('params', {}).get('type') == 'message.complete')
        open(sys.argv[1], 'w').write(json.dumps([*answers, json.dumps(ended)]))
    finally:
        os._exit(0)

threading.Thread(target=client, daemon=True).start()
from tui_gateway.entry import main
main()
"""


def test_in_the_tui(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """The TUI's server answers them by both of its methods, in the session's state."""
    home = home_with_plan(hermes, model_factory)
    told = home.base / "told.json"
    run = home.python(_TUI, str(told), timeout=240)
    assert told.exists(), run
    plan, later, failed, turn = json.loads(told.read_text())
    assert plan == "Plan mode on by tui, True."
    assert later["output"] == "Later x."
    assert "/ext-plan failed: ValueError: no such mode" in failed
    assert "Heard hello, IS on." in turn
