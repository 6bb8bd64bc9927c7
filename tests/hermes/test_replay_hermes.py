"""`replay` of a log that the real Hermes wrote: as it was, and with an edited setting."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = pytest.mark.hermes

RULES = (
    HEAD
    + """
@register_hook("transform_user_input")
def shorter(user_message):
    return HookResult.rewrite(user_message.removeprefix("please "))

@register_hook("before_llm_call")
def remind(messages, config):
    return HookResult.inject_system(config["reminder"])

@register_hook("intercept_tool_call")
def one_more(tool_name, tool_args):
    if tool_name == "jot":
        return HookResult.rewrite({**tool_args, "n": tool_args["n"] + 1})

@register_hook("intercept_tool_call", guard=True)
def few(state, config):
    if state.count("calls") > config["most"]:
        return HookResult.block("too many")

@register_hook("transform_tool_result")
def hush(result):
    return HookResult.rewrite(result.replace("secret", "-"))
"""
)
MANIFEST = {
    "config": {"properties": {"most": {"default": 3}, "reminder": {"default": "Be brief."}}}
}
TURNS = 3

DRIVER = """
from hermes_ext.hosts.hermes.adapter import host
agent = stage.agent()
for turn in range(3):
    first = Reply(tool_calls=[jot(f"secret {n}", n) for n in range(3)])
    stage.say(agent, f"please {turn}", first, Reply(tool_calls=[write(f"{turn}.txt"), jot("x")]))
host.runtime().log.flush(30)
report(done=True)
"""


COMMAND = """
import sys
from hermes_ext.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_log_of_the_real_hermes(hermes: Callable[..., HermesHome]) -> None:
    """Nothing changes of itself; a setting changes exactly the calls that it decides."""
    home = hermes(extensions={"log": "payloads"})
    home.extension("rules", RULES, MANIFEST)
    play(home, DRIVER)

    unchanged = json.loads(home.cli("extensions", "replay", "--json").check().stdout)

    assert (unchanged["changed"], unchanged["not_replayable"]) == ([], [])
    assert unchanged["compared"] == TURNS * (1 + 3 + 5 + 3)  # input, requests, calls, results

    home.write_config({"extensions": {"rules": {"most": 4}}})
    run = home.python(COMMAND, "replay", "--json")

    assert run.returncode == 1
    verdicts = [(each["then"], each["now"]) for each in json.loads(run.stdout)["changed"]]
    assert [(then["action"], now["action"]) for then, now in verdicts] == [
        ("block", "pass")  # the file in each turn, its fourth call; the fifth stays blocked
    ] * TURNS
