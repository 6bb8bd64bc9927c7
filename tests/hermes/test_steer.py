"""Text that steers a running turn is input: it is rewritten, answered or blocked on its way."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]


def test_steering(hermes: HomeFactory) -> None:
    """Steering text passes the hook with its origin and the turn's state; a blocked one is gone."""
    home = hermes()
    home.extension(
        "editor",
        HEAD
        + """
@register_hook('transform_user_input')
def edit(user_message, origin, state, session_id):
    __main__.seen.append([user_message, origin, dict(state), session_id])
    state.setdefault('first', user_message)
    if 'zebra' in user_message:
        return HookResult.rewrite(user_message.replace('zebra', 'giraffe'))
    if 'secret' in user_message:
        return HookResult.block('keep it to yourself')
    if 'what time' in user_message:
        return HookResult.answer('noon')
    if 'parts' in user_message:
        return HookResult.rewrite([{'type': 'text', 'text': 'in parts'}])
    if 'crash' in user_message:
        raise ValueError('no')
""",
    )
    facts = play(
        home,
        """
        from tools.registry import registry
        texts = ['use the zebra', 'my secret is tiger', 'what time is it', 'plain', 'crash now']
        texts.append(' ')
        accepted, shown = [], []

        def steer(args, **_):
            # From another thread, as the surfaces do it.
            def run():
                for text in texts:
                    accepted.append(agent.steer(text))
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            return '{}'
        registry.register(name='steer_me', toolset='stage', handler=steer, schema={
            'name': 'steer_me', 'description': 'x',
            'parameters': {'type': 'object', 'properties': {}}})

        agent = stage.agent(session_id='steered',
                            status_callback=lambda kind, text: shown.append(text))
        result = stage.say(agent, 'begin', Reply(tool_calls=(ToolUse('steer_me'),)))
        # After the turn: kept for the next one, and seen all the same.
        texts = ['late zebra', 'late secret tiger']
        late = [agent.steer(text) for text in texts]
        stage.say(agent, 'again', Reply(tool_calls=(jot('x'),)))
        sent = [json.dumps(request.body) for request in stage.model.requests]
        report(seen=seen, accepted=accepted, late=late, sent=sent, shown=shown)
        """,
    )
    assert facts["accepted"] == [True, True, True, True, True, False]
    assert facts["late"] == [True, True]
    in_turn = facts["seen"][:6]
    assert [one[:2] for one in in_turn[1:]] == [
        [text, "steer"]
        for text in ("use the zebra", "my secret is tiger", "what time is it", "plain", "crash now")
    ]
    assert all(one[2] == {"first": "begin"} and one[3] == "steered" for one in in_turn[1:])
    assert [one[:3] for one in facts["seen"][6:8]] == [
        ["late zebra", "steer", {}],
        ["late secret tiger", "steer", {}],
    ]
    sent = "\n".join(facts["sent"])
    for word in ("use the giraffe", "plain", "crash now", "late giraffe"):
        assert word in sent
    assert "zebra" not in sent
    assert "tiger" not in sent
    shown = json.dumps(facts["shown"])
    assert "[editor] keep it to yourself" in shown
    assert "noon" in shown
    assert home.occurrences("tiger") == []


def test_breaking_a_request_off(hermes: HomeFactory) -> None:
    """Text that breaks a request off passes the hook once, and only what it became is sent."""
    home = hermes()
    home.extension(
        "editor",
        HEAD
        + """
@register_hook('transform_user_input')
def edit(user_message, origin):
    __main__.seen.append([user_message, origin])
    if 'zebra' in user_message:
        return HookResult.rewrite(user_message.replace('zebra', 'giraffe'))
    if 'secret' in user_message:
        return HookResult.block('keep it to yourself')
""",
    )
    facts = play(
        home,
        """
        agent = stage.agent()
        if not hasattr(agent, 'redirect'):
            report(known=False)
        else:
            accepted = []

            def script(request):
                while request.last_user == 'begin' and texts:
                    accepted.append(agent.redirect(texts.pop(0)))
                return Reply('Done.')
            stage.script = script
            texts = ['my secret is tiger', 'look for a zebra']
            agent.run_conversation('begin')

            def while_a_tool_runs(args, **_):
                accepted.append(agent.redirect('a zebra in a tool'))
                return '{}'
            from tools.registry import registry
            registry.register(name='turn_me', toolset='stage', handler=while_a_tool_runs, schema={
                'name': 'turn_me', 'description': 'x',
                'parameters': {'type': 'object', 'properties': {}}})
            stage.script = None
            stage.say(stage.agent(), 'again')
            agent = stage.agent()
            stage.say(agent, 'tools', Reply(tool_calls=(ToolUse('turn_me'),)))
            sent = [json.dumps(request.body) for request in stage.model.requests]
            report(known=True, accepted=accepted, seen=seen, sent=sent)
        """,
    )
    if not facts["known"]:
        pytest.skip("this Hermes cannot break a request off: only newer ones have AIAgent.redirect")
    assert facts["accepted"] == [True, True, True]
    assert [text for text, origin in facts["seen"] if origin == "steer"] == [
        "my secret is tiger",
        "look for a zebra",
        "a zebra in a tool",
    ]
    sent = "\n".join(facts["sent"])
    assert "look for a giraffe" in sent
    assert "a giraffe in a tool" in sent
    assert "zebra" not in sent
    assert "tiger" not in sent
