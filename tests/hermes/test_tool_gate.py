"""What runs is what was judged, with the file system as the judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, pip_plugin, play, plugin

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

NO_EVIL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def no_evil(tool_name, tool_args, tool_call_id, state):
    number = state.count('calls')
    __main__.seen.append([tool_name, dict(tool_args), tool_call_id, number])
    if 'evil' in repr(tool_args):
        return HookResult.block('no evil')
"""
)

# One plugin with every way to change the arguments of a call; the driver sets `__main__.how`.
CHANGER = """
import __main__, threading

def how():
    return getattr(__main__, 'how', {})

def tool_request(tool_name, args, **context):
    if 'request' in how():
        return {'args': {**args, **how()['request']}}

def pre_tool_call(tool_name, args, **context):
    if 'place' in how():
        args.update(how()['place'])
    if 'thread' in how():
        stop = __main__.stop = threading.Event()
        def keep_changing():
            while not stop.is_set():
                args.update(how()['thread'])
        threading.Thread(target=keep_changing, daemon=True).start()

def tool_execution(tool_name, args, next_call, **context):
    changed = {**args, **how().get('execution', {})}
    result = next_call(changed)
    changed.update(how().get('late', {}))
    return result

def register(ctx):
    __main__.ctx = ctx
    ctx.register_middleware('tool_request', tool_request)
    ctx.register_middleware('tool_execution', tool_execution)
    ctx.register_hook('pre_tool_call', pre_tool_call)
"""


@pytest.mark.parametrize("kind", ["folder", "package"])
def test_arguments_changed_by_another_plugin(hermes: HomeFactory, kind: str) -> None:
    """Arguments that a plugin changes at any step are judged as they will run, and counted once."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    later = [pip_plugin(home, "changer", CHANGER)] if kind == "package" else []
    if kind == "folder":
        plugin(home, "changer", CHANGER)
    facts = play(
        home,
        """
        agent = stage.agent()
        ways = {}
        for way in ('request', 'place', 'execution', 'thread', 'late'):
            for text in ('evil', 'fine') if way != 'thread' else ('evil',):
                seen.clear()
                how = {way: {'text': text, 'content': text}}
                one, two = f'{way}-{text}-1', f'{way}-{text}-2'
                results = stage.use(agent, jot('plain'), write(one), write(two))
                if way == 'thread':
                    stop.set()
                ways[f'{way} {text}'] = [stage.jots, results, [call[-1] for call in seen]]
        report(ways=ways)
        """,
        later=later,
    )
    ways = facts["ways"]
    assert [way for way, (jots, *_) in ways.items() if any("evil" in line for line in jots)] == []
    written = {path.name: path.read_text() for path in home.project.iterdir()}
    assert [name for name, text in written.items() if "evil" in text] == []
    for way in ("request", "place", "execution"):
        jots, results, _ = ways[f"{way} evil"]
        assert (jots, f"{way}-evil-1" in written) == ([], False)
        assert ["[no-evil] no evil" in text for text in results] == [True, True, True]
        jots, _, numbers = ways[f"{way} fine"]
        assert jots == ["fine 1"]
        assert written[f"{way}-fine-1"] == written[f"{way}-fine-2"] == "fine"
        assert set(numbers) == {1, 2, 3}  # counted once, however often it was judged
        assert len(numbers) == (3 if way == "request" else 6)
    assert ways["late evil"][0] == ["plain 1"]


def test_calls_past_the_loop(hermes: HomeFactory) -> None:
    """A tool that a plugin runs by itself is judged, in a turn and outside, by whatever door."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    plugin(home, "changer", CHANGER)
    plugin(
        home,
        "doors",
        """
import __main__, json

def through(door, args):
    from model_tools import handle_function_call
    from tools.registry import registry
    if door == 'registry':
        return registry.dispatch('jot', args)
    if door == 'dispatch_tool':
        return __main__.ctx.dispatch_tool('jot', args)
    if door == 'function_call':
        return handle_function_call('jot', args, task_id='t', session_id='s', tool_call_id='x')
    if door == 'unchecked_call':
        return handle_function_call(
            'jot', args, skip_pre_tool_call_hook=True, skip_tool_request_middleware=True
        )

def tool_execution(tool_name, args, next_call, **context):
    doors, __main__.doors = getattr(__main__, 'doors', ()), ()
    for door in doors:
        __main__.told.append([door, through(door, dict(__main__.instead))])
    return next_call(args)

def post_tool_call(tool_name, args, **context):
    again, __main__.again = getattr(__main__, 'again', None), None
    if again:
        __main__.told.append(['again', through(again, dict(args))])

def register(ctx):
    ctx.register_middleware('tool_execution', tool_execution)
    ctx.register_hook('post_tool_call', post_tool_call)
    __main__.through = through
""",
    )
    facts = play(
        home,
        """
        agent = stage.agent()
        all_doors = ('registry', 'dispatch_tool', 'function_call', 'unchecked_call')
        facts = {}
        for text in ('evil', 'fine'):
            told, doors, instead = [], all_doors, {'text': text, 'n': '7'}
            stage.use(agent, write(f'beside-{text}'))
            facts['in ' + text] = [told, stage.jots]
            outside = [[door, through(door, dict(instead))] for door in all_doors]
            facts['outside ' + text] = [outside, stage.jots]
        # What was judged once runs once: an observer that runs the same call again is judged anew.
        import agent.tool_dispatch_helpers as helpers
        helpers._PARALLEL_SAFE_TOOLS |= {'jot'}
        for path, calls in (('alone', [jot('a')]), ('parallel', [jot('a'), jot('b')])):
            told, again = [], 'registry'
            seen.clear()
            stage.use(agent, *calls)
            facts[path] = [stage.jots, len([call for call in seen if call[0] == 'jot'])]
        report(**facts)
        """,
    )
    for where in ("in", "outside"):
        told, jots = facts[f"{where} evil"]
        assert jots == []
        assert len(told) == 4
        assert all("[no-evil] no evil" in result for _, result in told)
        told, jots = facts[f"{where} fine"]
        assert len(told) == 4
        assert jots == ["fine 7"] * 4  # the registry's own callers get the coerced arguments too
    assert (len(facts["alone"][0]), facts["alone"][1]) == (2, 2)
    assert (len(facts["parallel"][0]), facts["parallel"][1]) == (3, 3)


STAMP = (
    HEAD
    + """
@register_hook('intercept_tool_call')
def stamp(tool_args):
    return HookResult.rewrite({**tool_args, 'text': tool_args['text'] + '!'})
"""
)


@pytest.mark.parametrize("kind", ["folder", "package"])
def test_two_who_rewrite(hermes: HomeFactory, kind: str) -> None:
    """A rewritten call that a plugin changes once more is refused, and both are named."""
    home = hermes()
    home.extension("stamp", STAMP)
    later = [pip_plugin(home, "changer", CHANGER)] if kind == "package" else []
    if kind == "folder":
        plugin(home, "changer", CHANGER)
    facts = play(
        home,
        """
        agent = stage.agent()
        facts = {}
        for way in ('none', 'request', 'place', 'execution'):
            how = {way: {'text': 'theirs'}}
            facts[way] = [stage.use(agent, jot('ours')), stage.jots]
        report(**facts)
        """,
        later=later,
    )
    assert facts["none"][1] == ["ours! 1"]
    assert facts["request"][1] == ["theirs! 1"]  # changed before we judged: the two compose
    for way in ("place", "execution"):
        results, jots = facts[way]
        assert jots == []
        assert "[stamp] the arguments of jot were changed by the plugin changer" in results[0]


def test_ids_and_types(hermes: HomeFactory) -> None:
    """Guards see the types that the tool gets, and no call rides on another's verdict by its id."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    facts = play(
        home,
        """
        agent = stage.agent()
        facts = {}
        stage.use(agent, jot('five', '5'))
        facts['coerced'] = [seen[0][1], stage.jots]
        for name, id in (('same', 'same'), ('empty', '')):
            seen.clear()
            calls = [jot('fine', 1, id=id), jot('evil', 2, id=id)]
            files = [write(f'{name}-{text}', text, id=id) for text in ('fine', 'evil')]
            stage.use(agent, *calls, *files)
            facts[name] = [stage.jots, seen[:]]
        report(**facts)
        """,
    )
    assert facts["coerced"] == [{"text": "five", "n": 5}, ["five 5"]]
    for name in ("same", "empty"):
        jots, seen = facts[name]
        assert jots == ["fine 1"]
        assert (home.project / f"{name}-fine").exists()
        assert not (home.project / f"{name}-evil").exists()
        ids = [call_id for _, _, call_id, _ in seen]
        assert all(ids)
        assert len(set(ids)) == len(ids) == 4
