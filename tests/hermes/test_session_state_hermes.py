"""Session state in the real Hermes: kept for the conversation, whatever ends turn or process."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

COUNTER = """\
import os
import signal

from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input')
def count(user_message, session_state):
    turns = session_state.count('turns')
    if user_message == 'die':
        os.kill(os.getpid(), signal.SIGKILL)
    return HookResult.answer(f'TURN-{turns} of the conversation')
"""


def test_chats_that_go_on(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """`--continue` and `--resume` go on counting in a new process, also after `kill -9` in the
    middle of a turn; a new chat begins at one, and the file stays sound.
    """
    home = hermes(model_factory([]))
    home.extension("counter", COUNTER)
    for args, word, turn in (
        ((), "one", 1),
        (("--continue",), "two", 2),
        (("--continue",), "die", None),
        (("--resume", "FIRST"), "four", 4),
        ((), "another chat", 1),
    ):
        first = home.session_ids()[0] if turn != 1 else ""
        run = home.chat(word, *(first if part == "FIRST" else part for part in args))
        if turn is None:
            assert run.returncode == -signal.SIGKILL
            continue
        assert re.findall(r"TURN-\d+", run.check().stdout) == [f"TURN-{turn}"], run
    with closing(sqlite3.connect(home.home / "extensions-state.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


NOTES = (
    HEAD
    + """
@register_hook('transform_user_input')
def typed(user_message, session_state):
    __main__.seen.append(['{name}', user_message, dict(session_state)])

@register_hook('intercept_tool_call')
def call(tool_args, session_state):
    session_state.count('calls', {by})
    if tool_args.get('text'):
        session_state['texts'] = session_state.get('texts', []) + [tool_args['text']]
"""
)

# Tools by which a turn ends early.
TOOLS = """
from tools.registry import registry

def ending(name, run):
    registry.register(name=name, toolset='stage', handler=lambda args, **_: run(), schema={
        'name': name, 'description': 'x', 'parameters': {'type': 'object', 'properties': {}}})

def explode():
    raise KeyboardInterrupt

ending('explode', explode)
ending('stop', lambda: agent.interrupt('enough') or '{}')
"""


def test_ends_of_turns(hermes: HomeFactory) -> None:
    """What was written stays when the turn ends by an error, an interrupt or the provider, and
    no other extension and no other conversation sees it, in this process or the next.
    """
    home = hermes(config={"agent": {"api_max_retries": 1, "auto_recovery_cycles": 0}})
    for name, by in (("notes", 1), ("others", 100)):
        home.extension(name, NOTES.format(name=name, by=by))
    first = play(
        home,
        TOOLS
        + """
kinds = {}
def turn(name, *replies):
    try:
        result = stage.say(agent, name, *replies)
        kinds[name] = [key for key in ('completed', 'interrupted', 'failed') if result.get(key)]
    except BaseException as error:
        kinds[name] = type(error).__name__
    agent.clear_interrupt()

agent = stage.agent(session_id='ours')
turn('normal', Reply(tool_calls=(jot('a'),)))
turn('exception', Reply(tool_calls=(jot('b'),)), Reply(tool_calls=(ToolUse('explode'),)))
turn('interrupt', Reply(tool_calls=(jot('c'), ToolUse('stop'))))
turn('provider', Reply(tool_calls=(jot('d'),)), *[Reply(status=500)] * 6)
theirs = stage.agent(session_id='theirs')
stage.use(theirs, jot('z'))
turn('last')
report(seen=seen, kinds=kinds)
""",
        timeout=240,
    )
    assert first["kinds"] == {
        "normal": ["completed"],
        "exception": "KeyboardInterrupt",
        "interrupt": ["interrupted"],
        "provider": ["failed"],
        "last": ["completed"],
    }
    kept = [
        {},
        {"calls": 1, "texts": ["a"]},
        {"calls": 3, "texts": ["a", "b"]},
        {"calls": 5, "texts": ["a", "b", "c"]},
        {},  # the other conversation
        {"calls": 6, "texts": ["a", "b", "c", "d"]},
    ]
    assert [state for name, _, state in first["seen"] if name == "notes"] == kept
    others = [{**state, "calls": state["calls"] * 100} if state else {} for state in kept]
    assert [state for name, _, state in first["seen"] if name == "others"] == others

    again = play(
        home,
        """
        for session in ('ours', 'theirs', 'new'):
            stage.say(stage.agent(session_id=session), 'again')
        report(seen=seen)
        """,
    )
    assert [state for name, _, state in again["seen"] if name == "notes"] == [
        kept[-1],
        {"calls": 1, "texts": ["z"]},
        {},
    ]


LIMIT = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def limit(session_state):
    if session_state.count('calls') > 2:
        return HookResult.block('twice is enough')
"""


def folder(file: Path) -> None:
    file.mkdir()


def garbage(file: Path) -> None:
    file.write_bytes(b"this is not a database, it is a note" * 200)


@pytest.mark.parametrize("obstacle", [folder, garbage])
def test_a_store_that_is_away(
    model_factory: ModelFactory, hermes: HomeFactory, obstacle: Callable[[Path], None]
) -> None:
    """A guard that needs it refuses each call, the terminal and `doctor` say why and what to do;
    once it is back, all is as it was.
    """

    def write(request: ModelRequest) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("Done.")
        return Reply(tool_calls=(ToolUse("write_file", {"path": "a", "content": "x"}),))

    home = hermes(model_factory(write))
    home.extension("limit", LIMIT)
    home.write_config({"extensions": {"required": ["limit"]}})
    obstacle(home.home / "extensions-state.db")
    args: tuple[str, ...] = ()
    for _ in range(2):
        run = home.chat("go", *args).check()
        assert not (home.project / "a").exists()
        said = [line for line in run.stderr.splitlines() if "session state is unavailable" in line]
        assert len(said) == 1, run
        assert str(home.home / "extensions-state.db") in said[0]
        assert "guards refuse" in said[0]
        args = ("--continue",)
    doctor = home.cli("extensions", "doctor")
    assert doctor.returncode == 1
    assert "session state is unavailable" in doctor.stdout
    shutil.move(home.home / "extensions-state.db", home.base / "away")
    for written in (True, True, False):
        (home.project / "a").unlink(missing_ok=True)
        home.chat("go", "--continue").check()
        assert (home.project / "a").exists() is written
