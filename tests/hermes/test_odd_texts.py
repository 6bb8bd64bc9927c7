"""Text that no host can send, from every action of every hook, in the real loop."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import AWS_KEYS, MODES, play

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]


# The name of a file that is not UTF-8, as `os.listdir` gives it; and halves of characters.
ODD = """\
import __main__, os
from pathlib import Path
from hermes_ext import HookResult, register_command, register_hook

[name] = [each for each in os.listdir(Path(os.environ['HERMES_HOME'], 'names'))]
NAME = f'{name} \\ud83d'


def doing(action):
    return __main__.now == action


@register_hook('transform_user_input')
def typed(user_message, user_content):
    if doing('input rewrite'):
        return HookResult.rewrite(f'see {NAME}')
    if doing('input parts'):
        return HookResult.rewrite([{'type': 'text', 'text': f'see {NAME}'}])
    if doing('input answer'):
        return HookResult.answer(f'answered {NAME}')
    if doing('input block'):
        return HookResult.block(f'blocked {NAME}')


@register_hook('before_llm_call')
def asked(messages):
    if doing('inject_system'):
        return HookResult.inject_system(NAME)
    if doing('inject_user'):
        return HookResult.inject_user(NAME)
    if doing('kept system'):
        return HookResult.inject_system(NAME, keep='turn')
    if doing('kept user'):
        return HookResult.inject_user(NAME, keep='turn')
    if doing('messages'):
        return HookResult.rewrite([*messages, {'role': 'user', 'content': NAME}])
    if doing('not json'):
        return HookResult.rewrite([*messages, {'role': 'user', 'content': 'x', 'n': float('nan')}])
    if doing('circle'):
        more = {'role': 'user', 'content': 'x'}
        more['self'] = more
        return HookResult.rewrite([*messages, more])
    if doing('request answer'):
        return HookResult.answer(f'answered {NAME}')
    if doing('request block'):
        return HookResult.block(f'blocked {NAME}')
    if doing('nul'):
        return HookResult.inject_system('NUL\\0 and \\x1b[0m')


@register_hook('intercept_tool_call', tools=['jot'])
def called(tool_args):
    if doing('call rewrite'):
        return HookResult.rewrite({**tool_args, 'text': NAME})
    if doing('call answer'):
        return HookResult.answer(f'answered {NAME}')
    if doing('call block'):
        return HookResult.block(f'blocked {NAME}')
    if doing('call ask'):
        return HookResult.ask(f'may {NAME}?', key=NAME)


@register_hook('transform_tool_result', tools=['jot'])
def result(result):
    if doing('result rewrite'):
        return HookResult.rewrite(f'result {NAME}')
    if doing('result block'):
        return HookResult.block(f'blocked {NAME}')


@register_command('names')
def names():
    return NAME
"""
ACTIONS = (
    "input rewrite",
    "input parts",
    "input answer",
    "input block",
    "inject_system",
    "inject_user",
    "kept system",
    "kept user",
    "messages",
    "not json",
    "circle",
    "request answer",
    "request block",
    "nul",
    "call rewrite",
    "call answer",
    "call block",
    "call ask",
    "result rewrite",
    "result block",
)

DRIVER = """
stage.retry_at_once()
now, told = '', {}
for mode in MODES:
    for action in ACTIONS:
        now = ''
        agent = stage.agent_in(mode)
        before, now = len(stage.model.requests), action
        replies = (Reply('', (jot('one'),)),)
        first = stage.say(agent, 'go', *replies)
        now = ''
        then = stage.say(agent, 'and now', conversation_history=first['messages'])
        bodies = [one.body for one in stage.model.requests[before:]]
        told[f'{mode} {action}'] = {
            'ended': [first['final_response'], first['completed'], then['final_response']],
            'requests': len(bodies),
            'bodies': json.dumps(bodies, ensure_ascii=False, default=str),
            'messages': json.dumps(first['messages'], default=str),
            'saved': json.dumps(agent._session_db.get_messages(agent.session_id), default=str),
        }
from hermes_ext.hosts.hermes.adapter import host
runtime = host.runtime()
runtime.log.flush(timeout=10)
report(told=told, command=runtime.command('names', '', session_id='s'))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> HermesHome:
    config = {"extensions": {"log": "payloads"}, "approvals": {"mode": "off"}}
    made = HermesHome(tmp_path_factory.mktemp("odd"), None, extra_env=AWS_KEYS, config=config)
    folder = made.home / "names"
    folder.mkdir()
    os.close(os.open(os.fsencode(folder) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY))
    made.extension("odd", ODD)
    return made


@pytest.fixture(scope="module")
def played(home: HermesHome) -> dict[str, Any]:
    head = f"ACTIONS = {ACTIONS!r}\n"
    return play(home, head + DRIVER, timeout=300)


SEEN = "caf\ufffd.md \ufffd"


@pytest.mark.parametrize("mode", MODES)
def test_the_turn_goes_on(played: dict[str, Any], mode: str) -> None:
    """Whatever was returned, there is no retry, the turn is complete and so is the next one."""
    for action in ACTIONS:
        told = played["told"][f"{mode} {action}"]
        final, completed, after = told["ended"]
        assert completed, (action, final)
        assert "API call failed" not in final, action
        assert after == "Done.", action
        without = action.endswith(("answer", "block")) and not action.startswith(("call", "result"))
        assert told["requests"] == (1 if without else 3), action
        told["bodies"].encode("utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_it_arrives_as_the_host_would_send_it(played: dict[str, Any], mode: str) -> None:
    """With U+FFFD, as the text of a plain plugin of Hermes does, and so it is saved."""
    failing = ("call rewrite", "not json", "circle", "nul")
    for action in ACTIONS:
        if action in failing:
            continue
        told = played["told"][f"{mode} {action}"]
        if action not in ("input block", "input answer", "request answer", "request block"):
            assert SEEN in told["bodies"], action
        if "inject" in action or action.startswith("kept") or action == "messages":
            assert SEEN not in json.dumps(json.loads(told["saved"]), ensure_ascii=False)
            continue
        for kept in ("messages", "saved"):
            text = json.dumps(json.loads(told[kept]), ensure_ascii=False)
            assert SEEN in text.replace("\\\\ufffd", "\ufffd"), (action, kept)
            text.encode("utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_replaced(played: dict[str, Any], mode: str) -> None:
    """Is the handler's failure: an argument, and what JSON does not have."""
    told = played["told"]
    refused = told[f"{mode} call rewrite"]["messages"]
    assert "[odd] called failed (InvalidResult), so this call is refused" in refused
    for action in ("not json", "circle"):
        assert told[f"{mode} {action}"]["requests"] == 3
    assert "NUL" in told[f"{mode} nul"]["bodies"]


def test_the_log_and_a_command(home: HermesHome, played: dict[str, Any]) -> None:
    """Every line of the decision log is UTF-8 and JSON, and names the handler that failed."""
    raw = (home.home / "logs" / "extensions.jsonl").read_bytes()
    lines = [json.loads(line) for line in raw.decode("utf-8").splitlines()]
    assert lines
    failed = [line for line in lines if "lone surrogate at $.text" in json.dumps(line)]
    assert {(line["extension"], line["handler"]) for line in failed} == {("odd", "called")}
    for why in ("nan at $", "contains itself"):
        assert any(why in json.dumps(line) for line in lines), why
    played["command"].encode("utf-8")
    assert "caf" in played["command"]
