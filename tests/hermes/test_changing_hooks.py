"""A plugin's `pre_tool_call` hook that changes arguments, where Hermes calls it inside the gate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, pip_plugin, play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

NO_EVIL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def no_evil(tool_name, tool_args):
    if 'evil' in repr(tool_args):
        return HookResult.block('no evil')
"""
)

# What it makes of a call: in place, or by the answer `modify`, which 0.17 to 0.19 ignore.
CHANGER = """
import __main__

def pre_tool_call(tool_name, args, **context):
    __main__.hooked.append(tool_name)
    todos = [{'id': '1', 'content': __main__.text, 'status': 'pending'}]
    new = {'todos': todos} if 'todo' in tool_name else {'text': __main__.text}
    if __main__.how == 'modify':
        return {'action': 'modify', 'args': new}
    if __main__.how == 'deep' and 'todo' in tool_name:
        args['todos'][0]['content'] = __main__.text
    else:
        args.update(new)

def register(ctx):
    __main__.hooked = []
    ctx.register_hook('pre_tool_call', pre_tool_call)
"""

DRIVER = """
agent = stage.agent()
[name] = [each for each in agent.valid_tool_names if 'todo' in each]
ways = {}
def todo(n):
    return ToolUse(name, {'todos': [{'id': '1', 'content': f'plain {n}', 'status': 'pending'}]})
for how in ('modify', 'place', 'deep'):
    for text in ('evil', 'fine'):
        for label, calls in {
            'one': [todo(1)], 'two': [todo(1), todo(2)], 'mixed': [todo(1), jot('plain')],
            'jots': [jot('plain'), jot('simple')],
        }.items():
            globals().update(how=how, text=text)
            results = stage.use(agent, *calls)
            ways[f'{how} {text} {label}'] = [stage.jots, results]
report(ways=ways, hooked=len(hooked))
"""


def test_what_a_hook_changes_is_checked(hermes: HomeFactory) -> None:
    """No call runs with arguments that a guard refuses, also for tools that Hermes runs itself."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    site = pip_plugin(home, "changer", CHANGER)
    facts = play(home, DRIVER, later=[site])
    assert facts["hooked"] > 0
    for way, (jots, results) in facts["ways"].items():
        assert not any("evil" in line for line in jots), way
        for result in results:
            assert '"content": "evil"' not in result, (way, result)
    assert any("no evil" in result for _, results in facts["ways"].values() for result in results)
