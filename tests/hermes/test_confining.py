"""Confined calls in the real Hermes: what they may change, what works as before, what is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

HomeFactory = Callable[..., HermesHome]

# Whether a call is confined is up to a file, so that one process has both kinds.
CONFINES = (
    HEAD
    + """
from pathlib import Path

@register_hook('intercept_tool_call', guard=True)
def hold(tool_name, tool_args):
    if Path('free').exists():
        return None
    return HookResult.confine(writable=['plans'], reason='no plan yet')
"""
)

PROLOGUE = """
agent = stage.agent(enabled_toolsets=['stage', 'terminal', 'code_execution', 'file', 'delegation'])
Path('plans').mkdir()
Path('kept').write_text('kept')
process = named(agent, 'process')

def terminal(command, **options):
    [text] = stage.use(agent, ToolUse('terminal', {'command': command, **options}))
    return json.loads(text)

def in_turn(*commands):
    replies = [Reply(tool_calls=[ToolUse('terminal', {'command': each})]) for each in commands]
    told = results_of(stage.say(agent, 'go', *replies))
    return [json.loads(text)['output'] for text in told]

def typed(action, **options):
    [text] = stage.use(agent, ToolUse(process, {'action': action, **options}))
    return json.loads(text)

def code(text):
    [text] = stage.use(agent, ToolUse('execute_code', {'code': text}))
    return json.loads(text)
"""
LINE = "[hold] this command ran with the project read-only except plans/: no plan yet"


def confined_home(hermes: HomeFactory, **options: object) -> HermesHome:
    home = hermes(**options)
    home.extension("hold", CONFINES)
    return home


def test_commands(hermes: HomeFactory) -> None:
    """A command changes its writable paths and no others; all else of it is as without."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
report(
    outside=terminal('echo x > kept; echo $?'),
    inside=terminal('echo plan > plans/a.md && cat plans/a.md'),
    temporary=terminal('f=$(mktemp) && echo x > $f && cat $f'),
    status=terminal('exit 7'),
    stays=in_turn('cd plans', 'pwd', 'cd ..; pwd', 'pwd'),
    exported=in_turn('export A=1 PATH=/nowhere; echo $A', 'echo "<$A>"; ls kept'),
    long=len(terminal('head -c 200000 /dev/zero | tr "\\\\0" x')['output']),
    late=terminal('sleep 60', timeout=1),
    kept=Path('kept').read_text(),
)
""",
    )
    assert facts["outside"]["output"].splitlines()[-1] == LINE
    assert facts["inside"] == {**facts["inside"], "output": "plan", "exit_code": 0}
    assert facts["temporary"]["output"] == "x"
    assert facts["status"]["exit_code"] == 7
    stays = [one.rpartition("/")[2] for one in facts["stays"]]
    assert stays == ["", "plans", "project", "project"]
    assert facts["exported"] == ["1", "<>\nkept"]
    assert facts["long"] > 40_000
    assert facts["late"]["exit_code"] == 124
    assert facts["kept"] == "kept"
