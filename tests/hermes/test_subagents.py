"""Subagents: judged like the main agent, under their own session, with a state of their own."""

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
def note(hook, text, known):
    names = ('session_id', 'conversation_id', 'turn_id', 'parent_session_id')
    names += ('is_subagent', 'origin')
    found = {name: known.get(name) for name in names}
    found['noted'] = known['session_state'].count('noted')
    __main__.seen.append([hook, text, found, dict(known['state'])])

@register_hook('transform_user_input')
def put(user_message, state, **known):
    note('input', user_message, {**known, 'state': state})
    state['who'] = user_message
    state.count('turns')

@register_hook('intercept_tool_call', guard=True)
def judge(tool_name, tool_args, **known):
    note(tool_name, tool_args.get('text', ''), known)
    if 'evil' in str(tool_args):
        return HookResult.block('no evil')
"""
)


@pytest.mark.parametrize("how", ["background", "in the parent's tool call"])
def test_a_delegated_task(hermes: HomeFactory, how: str) -> None:
    """A child is judged under its own ids, has its own state, and may outlive the parent's turn.

    What is kept for the conversation is one for both.
    """
    home = hermes()
    home.extension("watcher", WATCHER)
    facts = play(
        home,
        """
        from hermes_ext.turns.state import open_turn_count
        from tools.registry import registry
        background = BACKGROUND
        child_done, parent_done = threading.Event(), threading.Event()

        def delegate(args, **_):
            from tools.delegate_tool import delegate_task
            return delegate_task(goal='child work', background=False, parent_agent=agent)
        registry.register(name='delegate_now', toolset='stage', handler=delegate, schema={
            'name': 'delegate_now', 'description': 'x',
            'parameters': {'type': 'object', 'properties': {}}})

        steps = {}
        def script(request):
            texts = [m.get('content') for m in request.messages if m['role'] == 'user']
            who = 'child' if 'child work' in str(texts) else 'parent'
            step = steps[who] = steps.get(who, 0) + 1
            if who == 'child':
                if step == 1:
                    if background:
                        parent_done.wait(60)
                    return Reply(tool_calls=(jot('child'), jot('evil'), write('c1'), write('evil')))
                child_done.set()
                return Reply('Child done.')
            if step == 1:
                delegating = ToolUse('delegate_task', {'goal': 'child work'})
                return Reply(tool_calls=(delegating if background else ToolUse('delegate_now'),))
            if step == 2:
                return Reply(tool_calls=(jot('parent'),))
            return Reply('Parent done.')
        stage.script = script
        agent = stage.agent(enabled_toolsets=['stage', 'file', 'delegation'])
        result = agent.run_conversation('parent work')
        parent_done.set()
        assert child_done.wait(60)
        from time import monotonic
        end = monotonic() + 30
        while open_turn_count() and monotonic() < end:
            threading.Event().wait(0.05)
        report(seen=seen, jots=stage.jots, open=open_turn_count(), parent=agent.session_id,
               results=results_of(result))
        """.replace("BACKGROUND", str(how == "background")),
    )
    by_text = {
        (hook, text.splitlines()[0] if text else ""): (known, state)
        for hook, text, known, state in facts["seen"]
    }
    assert sorted(facts["jots"]) == ["child 1", "parent 1"]
    assert (home.project / "c1").exists()
    assert not (home.project / "evil").exists()
    parent, parent_state = by_text["jot", "parent"]
    child, child_state = by_text["jot", "child"]
    assert parent["session_id"] == facts["parent"] != child["session_id"]
    assert child["parent_session_id"] == facts["parent"]
    assert (parent["is_subagent"], child["is_subagent"]) == (False, True)
    assert (parent["origin"], child["origin"]) == ("user", "subagent")
    assert parent["conversation_id"] == child["conversation_id"]
    assert parent["turn_id"] != child["turn_id"]
    assert parent_state == {"who": "parent work", "turns": 1}
    assert child_state["who"].startswith("child work")
    assert child_state["turns"] == 1
    noted = [known["noted"] for _, _, known, _ in facts["seen"]]
    assert sorted(noted) == list(range(1, len(noted) + 1))
    assert facts["open"] == 0
