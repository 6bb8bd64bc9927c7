"""Numbers of turns in the real Hermes: whatever becomes of the history, they go up by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.terminal import ENTER, terminal
from tests.hermes.stage import HEAD, play
from tests.hermes.words import give_words

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

NUMBERS = """\
from pathlib import Path

from hermes_ext import register_hook


@register_hook('transform_user_input')
def note(user_message, turn_number, origin, cwd):
    with (Path(__file__).parents[2] / 'numbers').open('a') as file:
        file.write(f'{turn_number} {origin} {user_message}\\n')
"""


def numbers(home: HermesHome) -> list[tuple[int, str]]:
    """The number and the text of each turn that a person began."""
    lines = (home.home / "numbers").read_text(encoding="utf-8").splitlines()
    found = [line.split(" ", 2) for line in lines]
    return [(int(number), text) for number, _, text in found]


def answer(request: ModelRequest) -> Reply:
    return Reply(f"Heard {request.last_user}, of {len(request.messages)} messages.")


def test_undo_retry_compress_and_resume(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """In one chat and the next process's, which goes on with its conversation."""
    home = hermes(
        model_factory(answer, auxiliary=lambda _: Reply("A summary.")),
        config={"approvals": {"destructive_slash_confirm": False}},
    )
    home.extension("numbers", NUMBERS)
    give_words(home)
    with terminal((*hermes_command(), "chat"), home.project, home.env(), rows=90) as person:

        def turn(text: str) -> None:
            said = len(numbers(home)) if (home.home / "numbers").exists() else 0
            person.press(text)
            person.wait(text)
            person.press(ENTER)
            person.wait(lambda: (home.home / "numbers").exists() and len(numbers(home)) > said)
            person.wait(person.is_idle)

        def command(text: str, shows: str) -> None:
            person.press(text)
            person.wait(text)
            person.press(ENTER)
            person.wait(shows)

        person.wait(person.is_idle)
        for text in ("one", "two", "three", "four"):
            turn(text)
        command("/undo", "Undid")
        person.press("\x15")  # what was undone stands in the prompt to be edited
        person.wait(person.is_idle)
        turn("five")
        turn("/retry")
        command("/compress", "Compress")
        person.wait(person.is_idle)
        turn("seven")
    home.chat("eight", "--continue").check()
    found = numbers(home)
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert [text for _, text in found if text != "five"] == [
        *("one", "two", "three", "four", "seven", "eight")
    ]


def test_whatever_history_a_turn_gets(hermes: HomeFactory) -> None:
    """Shorter than before, none, after an interrupt, of another agent of the session."""
    home = hermes()
    home.extension(
        "numbers",
        HEAD
        + """
@register_hook('before_llm_call')
def note(turn_number, api_call_count):
    if api_call_count == 1:
        __main__.seen.append(turn_number)
""",
    )
    facts = play(
        home,
        """
        from tools.registry import registry
        schema = {'name': 'stop', 'description': 'x',
                  'parameters': {'type': 'object', 'properties': {}}}
        registry.register(name='stop', toolset='stage', schema=schema,
                          handler=lambda args, **_: agent.interrupt('enough') or '{}')
        agent = stage.agent(session_id='s')
        first = stage.say(agent, 'one')
        second = stage.say(agent, 'two', conversation_history=first['messages'])
        stage.say(agent, 'three', conversation_history=second['messages'])
        stage.say(agent, 'four', conversation_history=first['messages'])
        stage.say(agent, 'five', Reply(tool_calls=(ToolUse('stop', {}),)))
        agent.clear_interrupt()
        stage.say(agent, 'six', conversation_history=[])
        agent = stage.agent(session_id='s')
        stage.say(agent, 'seven', conversation_history=first['messages'])
        stage.say(stage.agent(session_id='other'), 'one')
        report(seen=seen)
        """,
    )
    assert facts["seen"] == [1, 2, 3, 4, 5, 6, 7, 1]


def test_two_requests_at_once(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Of one session of the API server."""
    home = hermes(model_factory(answer))
    home.extension("numbers", NUMBERS)
    with home.gateway() as gateway, ThreadPoolExecutor(4) as pool:
        said = [pool.submit(gateway.ask, f"text {n}", session="s1") for n in range(6)]
        assert all(each.result().status == 200 for each in said)
    assert sorted(number for number, _ in numbers(home)) == [1, 2, 3, 4, 5, 6]
