"""The state of a turn: there for every call of the turn, gone when it ends, nobody else's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

WATCHER = (
    HEAD
    + """
@register_hook('transform_user_input')
def begin(user_message, state):
    __main__.seen.append(['input', user_message, dict(state)])
    state[user_message] = True
    if user_message == 'blocked':
        return HookResult.block('not that')

@register_hook('before_llm_call')
def request(state):
    state.count('requests')

@register_hook('intercept_tool_call')
def call(tool_name, tool_args, state, session_state, session_id, turn_id, origin):
    text = tool_args.get('text') or tool_args.get('path') or ''
    calls = session_state.count('calls')
    __main__.seen.append([tool_name, text, dict(state), session_id, turn_id, origin, calls])
"""
)

# Tools by which a turn ends early, or goes on under another session id.
TOOLS = """
from tools.registry import registry

def tool(name):
    def register(run):
        registry.register(name=name, toolset='stage', handler=lambda args, **_: run(args), schema={
            'name': name, 'description': 'x', 'parameters': {'type': 'object', 'properties': {}}})
        return run
    return register

@tool('explode')
def explode(args):
    raise KeyboardInterrupt

@tool('stop')
def stop(args):
    agent.interrupt('enough')
    return '{}'

@tool('rename')
def rename(args):
    agent.session_id = 'another-session'
    return '{}'
"""


def test_six_ways_to_end(hermes: HomeFactory) -> None:
    """However a turn ends, its state is gone in the next, and no turn stays open."""
    home = hermes(config={"agent": {"api_max_retries": 1, "auto_recovery_cycles": 0}})
    home.extension("watcher", WATCHER)
    facts = play(
        home,
        TOOLS
        + """
from hermes_ext.turns.state import open_turn_count
agent = stage.agent()
left, kinds = [], {}

def turn(name, *replies):
    try:
        result = stage.say(agent, name, *replies)
        kinds[name] = [result.get(key) for key in ('completed', 'interrupted', 'failed', 'blocked')]
    except BaseException as error:
        kinds[name] = type(error).__name__
    left.append(open_turn_count())
    agent.clear_interrupt()
    stage.use(agent, jot('after ' + name))
    left.append(open_turn_count())

turn('normal', Reply(tool_calls=(jot('in normal'),)))
turn('exception', Reply(tool_calls=(ToolUse('explode'),)))
turn('interrupt', Reply(tool_calls=(ToolUse('stop'), jot('never'))))
turn('blocked')
turn('provider', Reply(tool_calls=(jot('before it fails'),)), *[Reply(status=500)] * 6)
agent.max_iterations = 1
turn('limit', Reply(tool_calls=(jot('in limit'),)), Reply('The summary.'))
report(seen=seen, left=left, kinds=kinds)
""",
        timeout=240,
    )
    kinds = facts["kinds"]
    assert kinds["normal"][0] is True
    assert kinds["exception"] == "KeyboardInterrupt"
    assert kinds["interrupt"][1] is True
    assert kinds["blocked"] == [True, False, False, True]
    assert kinds["provider"][2] is True
    assert kinds["limit"][0] is False
    assert set(facts["left"]) == {0}
    assert [state for hook, _, state, *_ in facts["seen"] if hook == "input"] == [{}] * 12
    after = [one for one in facts["seen"] if one[0] == "jot" and one[1].startswith("after ")]
    assert [state for _, _, state, *_ in after] == [{"go": True, "requests": 1}] * 6
    during = {one[1]: one[2] for one in facts["seen"] if one[0] == "jot"}
    assert during["in normal"] == {"normal": True, "requests": 1}
    assert during["in limit"] == {"limit": True, "requests": 1}


def test_a_session_that_is_renamed(hermes: HomeFactory) -> None:
    """A session id that changes by hand in mid-turn leaves the turn its state."""
    home = hermes()
    home.extension("watcher", WATCHER)
    facts = play(
        home,
        TOOLS
        + """
from hermes_ext.turns.state import open_turn_count
agent = stage.agent(session_id='first')
both = (write('a'), write('b'))
stage.say(agent, 'renamed', Reply(tool_calls=(ToolUse('rename'), jot('same batch'))),
          Reply(tool_calls=(jot('next batch'), *both)))
report(seen=seen, left=open_turn_count())
""",
    )
    renamed = [one for one in facts["seen"] if "renamed" in one[2]]
    assert [one[0] for one in renamed] == ["rename", "jot", "jot", "write_file", "write_file"]
    assert [one[3] for one in renamed][-1] == "another-session"
    assert len({one[4] for one in renamed}) == 1
    assert facts["left"] == 0


def test_a_session_that_is_compressed(hermes: HomeFactory) -> None:
    """A session id that changes by compression in mid-turn leaves the turn its state.

    What is kept for the conversation goes on afterwards, in the turn and in the next.
    """
    home = hermes(
        config={
            "compression": {
                "enabled": True,
                "threshold": 0.5,
                "in_place": False,
                "protect_last_n": 2,
                "protect_first_n": 1,
            },
            "model": {"context_length": 100_000},
        }
    )
    home.extension("watcher", WATCHER)
    facts = play(
        home,
        """
from hermes_ext.turns.state import open_turn_count
agent = stage.agent(session_id='long')
talk = [Reply(tool_calls=(jot(f'{n} ' + 'words ' * 2000),)) for n in range(12)]
talk[8] = Reply(tool_calls=(jot('pressed'),), usage=Usage(90_000, 5))
stage.say(agent, 'compressed', *talk)
name = agent.session_id
stage.say(agent, 'afterwards', Reply(tool_calls=(jot('next turn'),)))
report(seen=seen, name=name, left=open_turn_count())
""",
        timeout=240,
    )
    compressed = [one for one in facts["seen"] if "compressed" in one[2]]
    assert len(compressed) == 12
    assert facts["name"] != "long"  # it was compressed
    assert {one[3] for one in compressed} == {"long", facts["name"]}
    assert len({one[4] for one in compressed}) == 1
    assert [one[6] for one in compressed] == list(range(1, 13))
    assert [one[6] for one in facts["seen"] if "afterwards" in one[2]] == [13]
    assert facts["left"] == 0


def test_a_background_review(hermes: HomeFactory) -> None:
    """A review, with the session's id, neither sees nor clears the state of the next turn.

    It runs beside that turn, or before it where Hermes ends a review when the person speaks.
    """
    home = hermes(config={"memory": {"nudge_interval": 1}})
    home.extension("watcher", WATCHER)
    facts = play(
        home,
        TOOLS
        + """
from time import monotonic
from hermes_ext import get_turn_state
from hermes_ext.turns.state import open_turn_count
begin_review, reviewed = threading.Event(), threading.Event()
steps = []
def auxiliary(request):
    if not request.tools:
        return Reply('A summary.')
    steps.append(request)
    if len(steps) == 1:
        begin_review.wait(60)
        return Reply(tool_calls=(ToolUse('memory', {
            'action': 'add', 'target': 'memory', 'content': 'likes zebras'}),))
    return Reply('Nothing to save.')
stage.auxiliary = auxiliary

def until_open(count):
    end = monotonic() + 60
    while open_turn_count() > count and monotonic() < end:
        threading.Event().wait(0.05)

@tool('wait_for_review')
def wait_for_review(args):
    begin_review.set()
    until_open(1)
    return json.dumps({'open': open_turn_count()})

agent = stage.agent(session_id='shared', enabled_toolsets=['stage', 'file', 'memory'])
stage.say(agent, 'first')
agent._memory_nudge_interval = 0
stage.model.wait_for(lambda requests: any(not one.is_main for one in requests))
overlapping = open_turn_count()
from agent import background_review
if hasattr(background_review, 'cancel_background_review_for_live_turn'):
    begin_review.set()
    until_open(0)
result = stage.say(agent, 'second', Reply(tool_calls=(jot('beside'), write('a'), write('b'))),
                   Reply(tool_calls=(ToolUse('wait_for_review'),)),
                   Reply(tool_calls=(jot('afterwards'), write('c'), write('d'))))
report(seen=seen, overlapping=overlapping, left=open_turn_count(), results=results_of(result),
       reviews=len(steps))
""",
        timeout=240,
    )
    assert facts["overlapping"] == 1  # the review, before the second turn began
    assert facts["reviews"] == 2
    assert '{"open": 1}' in facts["results"]
    inputs = [one[1] for one in facts["seen"] if one[0] == "input"]
    assert inputs == ["first", "second"]  # the review's own prompt is no input of a person
    own = [one for one in facts["seen"] if one[0] != "input" and one[5] == "user"]
    assert [one[0] for one in own] == [
        *("jot", "write_file", "write_file"),
        "wait_for_review",
        *("jot", "write_file", "write_file"),
    ]
    assert all(one[2]["second"] and "first" not in one[2] for one in own)
    assert own[-1][2]["requests"] == 3
    review = [one for one in facts["seen"] if one[0] != "input" and one[5] == "background"]
    assert [one[0] for one in review] == ["memory"]
    assert review[0][2] == {"requests": 1}
    assert review[0][3] == own[0][3] == "shared"
    assert review[0][4] != own[0][4]
    assert facts["left"] == 0


LIMITER = (
    HEAD
    + """
import json

@register_hook('transform_user_input')
def greet(user_message, state):
    state['message'] = user_message

@register_hook('before_llm_call')
def cached(messages, state):
    if state['message'].startswith('hello'):
        return HookResult.answer('Hello.')

@register_hook('intercept_tool_call')
def limit(tool_name, tool_args, state):
    if state.count(json.dumps([tool_name, tool_args], sort_keys=True)) > 2:
        return HookResult.block('You have tried that twice already.')
"""
)


def test_many_turns(hermes: HomeFactory) -> None:
    """Eighty turns of eight agents, each counting its own calls, leave nothing in memory."""
    home = hermes()
    home.extension("limiter", LIMITER)
    facts = play(
        home,
        """
        import gc
        from concurrent.futures import ThreadPoolExecutor
        from hermes_ext.turns import state as _turn
        from hermes_ext.hosts.hermes.adapter.gate import tools
        from hermes_ext.hosts.hermes.adapter import host
        from hermes_ext.turns.turn import Turn

        def script(request):
            # The same call thrice, in other words each time, and another one; in two replies,
            # because newer Hermes runs the same call of one reply once.
            who = request.last_user
            same = (f'{{"text": "{who}", "n": 1}}', f'{{"n": 1, "text": "{who}"}}',
                    f'{{"n": "1", "text": "{who}"}}')
            calls = (*[ToolUse('jot', args) for args in (same[0], same[2], same[1])], jot(who, 2))
            turn = [one['role'] for one in request.messages]
            made = turn[::-1].index('user')
            return (Reply(tool_calls=calls[:2]) if not made else
                    Reply(tool_calls=calls[2:]) if made == 3 else Reply('Done.'))

        wrong = []
        def turns(agent):
            for turn in range(10):
                if turn % 5:
                    result = agent.run_conversation(f'hello {turn}')
                    right = result['final_response'] == 'Hello.'
                else:
                    result = agent.run_conversation(f'go {agent.session_id}')
                    told = ['twice already' in text for text in results_of(result)]
                    right = told == [False, False, True, False]
                if not right:
                    wrong.append([agent.session_id, turn, result['final_response']])

        stage.script = script
        agents = [stage.agent(session_id=f's{n}', enabled_toolsets=['stage']) for n in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(turns, agents))
        # What is still to be written of a turn knows the turn.
        assert host.runtime().log.flush(60)
        # A timer of newer Hermes keeps the context of its turn until the scheduler's thread drops
        # it, some time after it was cancelled; the last one it keeps for good.
        for thing in gc.get_objects():
            if type(thing).__name__ == 'ScheduledHandle' and thing.cancelled:
                thing._context = None
        gc.collect()
        kinds = (Turn, _turn.TurnState, tools.Verdict)
        report(open=_turn.open_turn_count(), wrong=wrong, jots=len(stage.jots),
               alive=sum(isinstance(thing, kinds) for thing in gc.get_objects()))
        """,
        timeout=240,
    )
    assert facts["wrong"] == []
    assert facts["jots"] == 8 * 2 * 3
    assert facts["open"] == 0
    assert facts["alive"] == 0
