"""An answer without text: the turn ends, nobody is told anything, and the session goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.harness.irc import chat_server
from tests.hermes.stage import AWS_KEYS, MODES, play
from tests.hermes.surfaces import SURFACES, surface

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

LISTENS = """\
from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input')
def heard(user_message):
    if user_message.startswith('hush'):
        return HookResult.answer('')


@register_hook('before_llm_call')
def asked(messages):
    # In a chat, newer Hermes joins what was answered with silence and what is said next.
    if str(messages[-1]['content']).rpartition('\\n\\n')[2].startswith('quiet'):
        return HookResult.answer(' \\n')


@register_hook('intercept_tool_call', tools=['jot'])
def called(tool_args):
    if tool_args.get('text') == 'silent':
        return HookResult.answer('')
"""


def echo(request: ModelRequest) -> Reply:
    return Reply(f"HEARD({request.last_user})")


def said_by(name: str, shown: str) -> str:
    """What of all that a surface shows is the agent's."""
    if name == "chat":
        shown = shown.partition("\u2500\n")[2].partition("Resume this session")[0]
    return shown.strip()


def until_saved(home: HermesHome, turns: int) -> None:
    """Wait until so many turns are in the database: of a silent one nothing else is to be seen."""
    deadline = monotonic() + 60
    while sum(role == "assistant" for role, _ in home.session_rows()) < turns:
        assert monotonic() < deadline, home.session_rows()
        Event().wait(0.05)


@pytest.mark.parametrize("name", [name for name in SURFACES if name != "messaging"])
def test_nothing_is_shown(model_factory: ModelFactory, hermes: HomeFactory, name: str) -> None:
    """Neither on input nor on a request is the model asked, and the next turn works."""
    model = model_factory(echo)
    home = hermes(model)
    home.extension("listens", LISTENS)
    with surface(home, name) as say:
        for text in ("hush now", "quiet now"):
            assert said_by(name, say(text, "")) == ""
        assert model.main_requests == []
        assert "HEARD(and now" in say("and now", "HEARD(and now")
    if name != "oneshot":
        kept = [row for row in home.session_rows() if row[0] != "session_meta"]
        said = ("hush now", "quiet now", "and now")
        assert kept == [
            row
            for text in said
            for row in (
                ("user", text),
                ("assistant", f"HEARD({text})" if text == "and now" else ""),
            )
        ]


def test_one_shot_ends_well(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """`hermes -z` prints not even the end of a line, complains of nothing, and exits with 0."""
    home = hermes(model_factory([]))
    home.extension("listens", LISTENS)
    for text in ("hush now", "quiet now"):
        run = home.oneshot(text)
        assert (run.returncode, run.stdout) == (0, ""), run
        assert "no final response" not in run.stderr


def test_in_a_chat_nothing_is_sent(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """What a person hears in the end is the answer to what was not answered with silence."""
    model = model_factory(echo)
    home = hermes(model, config={"display": {"busy_input_mode": "queue"}})
    home.extension("listens", LISTENS)
    # With a home channel: to new people, older Hermes says that it has none.
    env = {"IRC_HOME_CHANNEL": "#room"}
    with chat_server() as chats, home.gateway(env=chats.env | env):
        for turns, (who, text) in enumerate((("ann", "one"), ("bob", "hush now"))):
            chats.say(who, text)
            until_saved(home, turns + 1)
        chats.say("ann", "two")
        chats.hears("ann", "two")  # a whole turn later
        assert chats.hears("bob", "") == ""
        chats.say("bob", "quiet now")
        until_saved(home, 4)
        chats.say("ann", "three")
        chats.hears("ann", "three")
        assert chats.hears("bob", "") == ""
        chats.say("bob", "four")
        assert chats.hears("bob", "four").count("HEARD") == 1
    assert len(model.main_requests) == 4


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_responses_api(model_factory: ModelFactory, hermes: HomeFactory, stream: bool) -> None:
    """`/v1/responses` says nothing in words of its own."""
    home = hermes(model_factory(echo))
    home.extension("listens", LISTENS)
    with home.gateway() as gateway:
        for text in ("hush now", "quiet now"):
            body = {"model": "hermes-agent", "input": text, "stream": stream}
            told = gateway.post("/v1/responses", body).body
            response = told["events"][-1]["response"] if stream else told
            assert response["status"] == "completed"
            texts = [part["text"] for item in response["output"] for part in item["content"]]
            assert texts in ([], [""])


DRIVER = """
stage.retry_at_once()
lanes = {}
for mode in MODES:
    agent = stage.agent_in(mode)
    told, history, shown = [], None, []
    for text, *replies in (
        ('hush', ), ('quiet', ), ('work', Reply('', (jot('silent'), jot('loud')))),
        ('and now', Reply('Heard you.')),
    ):
        before = len(stage.model.requests)
        result = stage.say(
            agent, text, *replies, conversation_history=history, stream_callback=shown.append
        )
        history = result['messages']
        told.append({
            'said': result['final_response'],
            'ended': [result['completed'], result['failed'], result['interrupted']],
            'requests': len(stage.model.requests) - before,
            'results': results_of(result),
            'roles': [message['role'] for message in history],
        })
    last = stage.agent_in(mode, max_iterations=1)
    summary = stage.say(last, 'work', Reply('', (jot('quiet'),)))
    lanes[mode] = {
        'turns': told, 'shown': ''.join(text for text in shown if text), 'jots': stage.jots,
    }
report(lanes=lanes)
"""


@pytest.mark.parametrize("mode", MODES)
def test_provider_forms(played: dict[str, Any], mode: str) -> None:
    """Whatever the provider, no request is made, and the model takes the history afterwards."""
    lane = played[mode]
    hush, quiet, work, after = lane["turns"]
    for turn in (hush, quiet):
        assert (turn["said"], turn["requests"]) == ("", 0)
        assert turn["ended"] == [True, False, False]
    assert [json.loads(result or "null") for result in work["results"][-2:]] == [
        None,
        {"written": "loud"},
    ]
    assert (after["said"], after["requests"]) == ("Heard you.", 1)
    assert lane["shown"].strip() == "Done.Heard you."


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = HermesHome(tmp_path_factory.mktemp("silent"), None, extra_env=AWS_KEYS)
    home.extension("listens", LISTENS)
    lanes: dict[str, Any] = play(home, DRIVER, timeout=200)["lanes"]
    return lanes
