"""Hermes rediscovers its plugins in mid-session, which forgets all their hooks: the gates stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play, plugin

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

HomeFactory = Callable[..., HermesHome]


def test_no_call_slips_through(hermes: HomeFactory) -> None:
    """While plugins are discovered again and again, every call is judged, once, and none runs."""
    home = hermes()
    home.extension(
        "nothing",
        HEAD
        + """
@register_hook('intercept_tool_call', guard=True)
def no(tool_name, tool_args):
    __main__.seen.append(tool_args.get('text') or tool_args['path'])
    return HookResult.block('nothing runs')

@register_hook('before_llm_call')
def note(api_call_count):
    return HookResult.inject_system('NOTE-OF-THE-TURN')
""",
    )
    plugin(
        home,
        "neighbour",
        "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **_: None)\n",
    )
    facts = play(
        home,
        """
        from hermes_cli.plugins import discover_plugins, get_plugin_manager
        from hermes_ext.hosts.hermes.adapter.wraps.attaching import standings
        agent = stage.agent()
        stop, rounds, cleared = threading.Event(), [], []
        def discover():
            while not stop.is_set():
                discover_plugins(force=True)
                rounds.append(1)
        def watch():
            while not stop.is_set():
                if not get_plugin_manager()._hooks.get('pre_tool_call'):
                    cleared.append(1)
        threads = [threading.Thread(target=run) for run in (discover, watch)]
        for thread in threads:
            thread.start()
        replies = [Reply(tool_calls=tuple(
            [jot(f'{batch}-{n}') for n in range(6)] + [write(f'{batch}-{n}.txt') for n in range(3)]
        )) for batch in range(3)]
        result = stage.say(agent, 'go', *replies)
        stop.set()
        for thread in threads:
            thread.join()
        requests = [request.system.count('NOTE-OF-THE-TURN') for request in stage.model.requests]
        report(seen=seen, results=results_of(result), rounds=len(rounds), cleared=len(cleared),
               requests=requests, jots=stage.jots, seams=[each.status for each in standings()])
        """,
        timeout=240,
    )
    assert list(home.project.iterdir()) == []
    assert len(facts["seen"]) == len(set(facts["seen"])) == 27
    assert len(facts["results"]) == 27
    assert all("[nothing] nothing runs" in text for text in facts["results"])
    assert facts["requests"] == [1] * 4
    assert facts["rounds"] > 1
    assert facts["cleared"] > 0  # the hooks of plugins were gone while tools were called
    assert set(facts["seams"]) <= {"attached", "waiting"}
