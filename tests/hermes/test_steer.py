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
