"""What runs is what was judged, with the file system as the judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, evaluated_last, pip_plugin, play, plugin

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

def post_tool_call(tool_call_id, status, **context):
    __main__.posts.append([tool_call_id, status])

def register(ctx):
    __main__.ctx, __main__.posts = ctx, []
    ctx.register_hook('post_tool_call', post_tool_call)
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
                seen.clear(), posts.clear()
                how = {way: {'text': text, 'content': text}}
                one, two = f'{way}-{text}-1', f'{way}-{text}-2'
                results = stage.use(agent, jot('plain'), write(one), write(two))
                if way == 'thread':
                    stop.set()
                counts = [call[-1] for call in seen]
                ways[f'{way} {text}'] = [stage.jots, results, counts, posts[:]]
        report(ways=ways)
        """,
        later=later,
    )
    ways = facts["ways"]
    assert [way for way, (jots, *_) in ways.items() if any("evil" in line for line in jots)] == []
    written = {path.name: path.read_text() for path in home.project.iterdir()}
    assert [name for name, text in written.items() if "evil" in text] == []
    for way in ("request", "place", "execution"):
        jots, results, _, posts = ways[f"{way} evil"]
        assert len({call_id for call_id, _ in posts}) == len(posts) == 3
        # A call that is refused late, in the last step, is an error to observers.
        late = way == "execution" or evaluated_last()
        assert {status for _, status in posts} <= ({"blocked", "error"} if late else {"blocked"})
        assert (jots, f"{way}-evil-1" in written) == ([], False)
        assert ["[no-evil] no evil" in text for text in results] == [True, True, True]
        jots, _, numbers, posts = ways[f"{way} fine"]
        assert len({call_id for call_id, _ in posts}) == len(posts) == 3
        assert jots == ["fine 1"]
        assert written[f"{way}-fine-1"] == written[f"{way}-fine-2"] == "fine"
        assert set(numbers) == {1, 2, 3}  # counted once, however often it was judged
        once = way == "request" or (way == "execution" and evaluated_last())
        assert len(numbers) == (3 if once else 6)
    assert ways["late evil"][0] == ["plain 1"]


def test_arguments_of_the_agents_own_tools(hermes: HomeFactory) -> None:
    """What a plugin changes is evaluated for a tool that no registry runs, too.

    Observers hear of a call that is refused at the last step, in a batch too.
    """
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    plugin(home, "changer", CHANGER)
    facts = play(
        home,
        """
        agent = stage.agent(enabled_toolsets=['todo', 'session_search'])
        def todos(text):
            return {'todos': [{'id': '1', 'content': text, 'status': 'pending'}]}
        facts = {}
        for text in ('evil', 'fine'):
            how = {'place': todos(text)}
            results = stage.use(agent, ToolUse(named(agent, 'todo'), todos('plain')))
            facts[text] = [results, [item['content'] for item in agent._todo_store.read()]]
        posts.clear()
        how = {'execution': {'query': 'evil'}}
        two = [ToolUse('session_search', {'query': text}) for text in ('one', 'two')]
        report(**facts, together=[stage.use(agent, *two), posts])
        """,
    )
    results, todos = facts["evil"]
    assert "[no-evil] no evil" in results[0]
    assert todos == []
    assert facts["fine"][1] == ["fine"]
    results, posts = facts["together"]
    assert ["[no-evil] no evil" in text for text in results] == [True, True]
    assert [status for _, status in posts] == ["error" if evaluated_last() else "blocked"] * 2


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
    """A rewritten call that a plugin changes once more is refused, and both are named.

    What a plugin changes before the call is evaluated is rewritten like anything else.
    """
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
    before = ("request", "execution") if evaluated_last() else ("request",)
    assert [facts[way][1] for way in before] == [["theirs! 1"]] * len(before)
    for way in {"place", "execution"}.difference(before):
        results, jots = facts[way]
        assert jots == []
        assert "[stamp] the arguments of jot were changed by" in results[0]
        assert "changer" in results[0]


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


def test_a_turn_that_has_ended(hermes: HomeFactory) -> None:
    """A thread that a tool left behind runs no tool once its turn is over; a later turn may."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    plugin(
        home,
        "leaver",
        """
import __main__, contextvars, json, threading

def handler(args, **context):
    from model_tools import handle_function_call
    from tools.registry import registry

    def call(number):
        def run():
            told = __main__.told
            __main__.over.wait(60)
            args = {'text': f'late {number}'}
            if number == 1:
                told.append(handle_function_call('jot', args, task_id=context.get('task_id')))
            elif number == 2:
                told.append(handle_function_call('jot', args, turn_id=__main__.turn_of()))
            elif number == 3:
                told.append(registry.dispatch('jot', args))
            elif number == 4:
                told.append(registry.dispatch('jot', args, task_id=context.get('task_id')))
            elif number == 5:
                __main__.next_is_open.wait(60)
                ids = {'task_id': context.get('task_id'), 'session_id': __main__.session}
                told.append(handle_function_call('jot', args, **ids))
        return run

    for number in (1, 3):  # threads that know their turn, as those of Hermes do
        run = contextvars.copy_context().run
        __main__.threads.append(threading.Thread(target=run, args=(call(number),)))
    for number in (2, 4, 5):  # and some that know ids only
        __main__.threads.append(threading.Thread(target=call(number)))
    for thread in __main__.threads:
        thread.start()
    return json.dumps({'left': 3})

def register(ctx):
    parameters = {'type': 'object', 'properties': {}}
    schema = {'name': 'leave', 'description': 'x', 'parameters': parameters}
    ctx.register_tool('leave', toolset='stage', schema=schema, handler=handler)
""",
    )
    facts = play(
        home,
        """
        over, next_is_open = threading.Event(), threading.Event()
        threads, told = [], []
        agent = stage.agent()
        session = agent.session_id
        turn_ids = []
        def turn_of():
            return turn_ids[0]
        stage.script = None
        results = stage.use(agent, ToolUse('leave'))
        turn_ids.append(agent._current_turn_id)
        agent._current_turn_id = ''
        over.set()
        for thread in threads[:-1]:
            thread.join()
        late = stage.jots
        def script(request):
            next_is_open.set()
            threads[-1].join()
            return Reply('Done.') if request.tool_results else Reply(
                tool_calls=(jot('next turn'),))
        stage.script = script
        agent.run_conversation('again', conversation_history=[])
        report(results=results, told=told, late=late, next=stage.jots)
        """,
    )
    assert facts["results"] == ['{"left": 3}']
    assert facts["late"] == []
    assert len(facts["told"]) == 5
    assert all("the turn that this call belongs to has ended" in text for text in facts["told"])
    assert facts["next"] == ["next turn 1"]


def test_guards_that_fail(hermes: HomeFactory) -> None:
    """A handler that crashes, and arguments of which nobody can say what they are, are a no.

    The log has the traceback of what kept a call from being judged.
    """
    home = hermes()
    home.extension(
        "crasher",
        HEAD
        + """
class Odd(Exception):
    def __str__(self):
        raise RuntimeError('no words')

@register_hook('intercept_tool_call', tools=['jot'])
def crash(tool_args):
    kind = tool_args['text']
    __main__.seen.append(kind)
    if kind == 'value':
        raise ValueError('x')
    if kind == 'exit':
        raise SystemExit(3)
    if kind == 'odd':
        raise Odd
    if kind == 'deep':
        return crash(tool_args)
    if kind == 'text':
        return 'block'
""",
    )
    plugin(
        home,
        "odd-arguments",
        """
import __main__

class Uncopyable:
    def __deepcopy__(self, memo):
        return self
    def __str__(self):
        return 'uncopyable'

def odd(args):
    args = dict(args)
    if args.get('text') == 'uncopyable':
        args['text'] = Uncopyable()
    if args.get('text') == 'cycle':
        args['more'] = args
    if args.get('text') == 'types':
        args['more'] = [(1, 2), {1: {2, 3}}, float('nan'), b'x']
    return args

def tool_request(tool_name, args, **context):
    if __main__.step == 'request':
        return {'args': odd(args)}

def pre_tool_call(tool_name, args, **context):
    if __main__.step == 'pre':
        args.update(odd(args))

def tool_execution(tool_name, args, next_call, **context):
    return next_call(odd(args) if __main__.step == 'execution' else args)

def register(ctx):
    ctx.register_middleware('tool_request', tool_request)
    ctx.register_hook('pre_tool_call', pre_tool_call)
    ctx.register_middleware('tool_execution', tool_execution)
""",
    )
    facts = play(
        home,
        """
        import io, logging
        logged = []
        handler = logging.Handler()
        handler.emit = lambda record: record.exc_text and logged.append(record.getMessage())
        logging.getLogger('hermes_ext').addHandler(handler)
        agent = stage.agent()
        step = ''
        kinds = ('value', 'exit', 'odd', 'deep', 'text', 'fine')
        crashed = stage.use(agent, *[jot(kind) for kind in kinds])
        facts = {'crashed': [crashed, stage.jots]}
        for step in ('request', 'pre', 'execution'):
            logged.clear()
            kinds = ['uncopyable', 'types', 'after']
            if step == 'execution':  # Hermes itself ends a turn whose arguments contain themselves
                kinds.insert(2, 'cycle')
            with io.StringIO() as sys.__stderr__:
                results = stage.use(agent, *[jot(kind) for kind in kinds])
                facts[step] = [results, stage.jots, sys.__stderr__.getvalue(), logged[:]]
        report(**facts)
        """,
    )
    results, jots = facts["crashed"]
    assert jots == ["fine 1"]
    assert ["[crasher]" in text for text in results] == [True] * 5 + [False]
    said = {
        "request": "could not judge a call of jot at its first step",
        "pre": "could not judge a call of jot",
        "execution": "could not judge a call of jot at the last gate",
    }
    if evaluated_last():
        said["request"] = said["execution"]
        said["pre"] = "could not check what a hook made of a call of jot"
    for step, line in said.items():
        results, jots, shown, logged = facts[step]
        assert logged[0] == f"hermes-ext {line}"
        assert jots[-1] == "after 1"
        assert "hermes-ext: blocked jot: the call could not be judged" in shown
        assert not [line for line in jots if line.startswith("uncopyable")]
        assert "could not be judged" in results[0]


LIAR = """
import __main__

class Sly(dict):
    def get(self, key, default=None):
        return 'evil' if key in ('text', 'content') else dict.get(self, key, default)
    def __getitem__(self, key):
        return self.get(key)

class SlyText(str):
    def __str__(self):
        return 'evil'
    __format__ = lambda self, spec: 'evil'
    encode = lambda self, *args: b'evil'

def changed(args, step):
    if __main__.step != (step, 'dict') and __main__.step != (step, 'text'):
        return args
    if __main__.step[1] == 'dict':
        return Sly(args)
    return {key: SlyText(each) if isinstance(each, str) else each for key, each in args.items()}

def tool_request(tool_name, args, **context):
    return {'args': changed(args, 'request')}

def tool_execution(tool_name, args, next_call, **context):
    return next_call(changed(args, 'execution'))

def register(ctx):
    ctx.register_middleware('tool_request', tool_request)
    ctx.register_middleware('tool_execution', tool_execution)
"""


def test_arguments_that_lie(hermes: HomeFactory) -> None:
    """An object that tells the guard one thing and the tool another runs as what it holds."""
    home = hermes()
    home.extension("no-evil", NO_EVIL)
    plugin(home, "liar", LIAR)
    facts = play(
        home,
        """
        agent = stage.agent()
        for step in [(at, kind) for at in ('request', 'execution') for kind in ('dict', 'text')]:
            stage.use(agent, jot('fine'), write('-'.join(step), 'fine'))
        report(jots=stage.jots)
        """,
    )
    assert facts["jots"] == ["fine 1"] * 4
    names = ("execution-dict", "execution-text", "request-dict", "request-text")
    assert {path.name: path.read_text() for path in home.project.iterdir()} == dict.fromkeys(
        names, "fine"
    )


def test_a_required_extension_is_missing(hermes: HomeFactory) -> None:
    """Without a required extension the agent answers, and no tool runs; the reason is told."""
    home = hermes(extensions={"required": ["gone", "broken"]})
    home.extension("broken", "import no_such_module\n")
    facts = play(
        home,
        """
        from model_tools import handle_function_call
        agent = stage.agent()
        answer = stage.say(agent, 'hello', Reply('Hello.'))['final_response']
        results = stage.use(agent, jot('x'), write('a'), write('b'), ToolUse(named(agent, 'todo')))
        results.append(handle_function_call('jot', {'text': 'outside'}))
        report(answer=answer, results=results, jots=stage.jots)
        """,
    )
    assert facts["answer"] == "Hello."
    assert facts["jots"] == []
    assert list(home.project.iterdir()) == []
    assert len(facts["results"]) == 5
    for text in facts["results"]:
        assert "[hermes-ext]" in text
        assert "gone" in text
        assert "broken" in text


def test_malformed_calls(hermes: HomeFactory) -> None:
    """Whatever the model sends as arguments or name, nothing crashes and no guard is fooled."""
    home = hermes()
    home.extension(
        "no-terminal",
        HEAD
        + """
@register_hook('intercept_tool_call', guard=True, tools=['terminal'])
def no(tool_name, tool_args):
    __main__.seen.append([tool_name, type(tool_args).__name__])
    return HookResult.block('no shell')

@register_hook('intercept_tool_call')
def look(tool_name, tool_args):
    __main__.seen.append([tool_name, type(tool_args).__name__])
""",
    )
    facts = play(
        home,
        """
        from model_tools import handle_function_call
        from tools.registry import registry
        agent = stage.agent(enabled_toolsets=['stage', 'terminal'])
        command = '{"command": "touch fooled"}'
        odd = ['', 'null', '[]', '"{}"', '{"a":1}{"a":1}', '[{"command": "touch fooled"}]',
               command + command, '"' + command.replace('"', r'\\"') + '"', command]
        names = ('Terminal', ' terminal ', 'TERMINAL', 'terminal_tool', 'Terminal_Tool', '',
                 'terminalterminal', 'termnal', 'terminal" x="', 'functions.terminal')
        calls = [ToolUse('terminal', args) for args in odd]
        calls += [ToolUse(name, command) for name in names]
        ends = [stage.say(agent, 'go', Reply(tool_calls=(call,)))['completed'] for call in calls]
        direct = []
        for name in ('terminal', 'Terminal', 'terminal ', '', None):
            for args in ({'command': 'touch fooled'}, None, '', [], command):
                for run in (handle_function_call, registry.dispatch):
                    direct.append(isinstance(run(name, args), str))
        report(ends=ends, direct=direct, kinds=sorted({kind for _, kind in seen}), seen=len(seen))
        """,
        timeout=240,
    )
    assert list(home.project.iterdir()) == []
    assert all(facts["ends"])
    assert all(facts["direct"])
    assert facts["kinds"] == ["dict"]
    assert facts["seen"] > 10


def test_one_verdict_lets_one_call_run(hermes: HomeFactory) -> None:
    """An observer or a tool that runs the same call once more has it evaluated once more."""
    home = hermes()
    home.extension(
        "once",
        HEAD
        + """
@register_hook('intercept_tool_call', guard=True, tools=['jot', 'twice'])
def once(tool_name, state):
    if state.count(f'once.{tool_name}') > 1:
        return HookResult.block('once is enough')
""",
    )
    plugin(
        home,
        "doubler",
        """
import __main__

def post_tool_call(tool_name, args, tool_call_id, **context):
    from hermes_cli.middleware import run_tool_execution_middleware
    from tools.registry import registry
    if tool_name == 'jot' and not __main__.again:
        __main__.again.append(True)
        run = lambda final: registry.dispatch('jot', final)
        __main__.seen.append(
            run_tool_execution_middleware('jot', dict(args), run, tool_call_id=tool_call_id))

def handler(args, **context):
    from tools.registry import registry
    __main__.runs.append(dict(args))
    if len(__main__.runs) == 1:
        __main__.seen.append(registry.dispatch('twice', args))
    return '{}'

def register(ctx):
    ctx.register_hook('post_tool_call', post_tool_call)
    schema = {'name': 'twice', 'description': 'x', 'parameters': {'type': 'object',
        'properties': {}}}
    ctx.register_tool('twice', toolset='stage', schema=schema, handler=handler)
""",
    )
    facts = play(
        home,
        """
        runs, again = [], []
        results = stage.use(stage.agent(), jot('a', id='c1'), ToolUse('twice', {}, 'c2'))
        report(seen=seen, jots=stage.jots, runs=runs)
        """,
    )
    assert facts["jots"] == ["a 1"]
    assert len(facts["runs"]) == 1
    assert len(facts["seen"]) == 2
    assert all("[once] once is enough" in text for text in facts["seen"])


@pytest.mark.parametrize("door", ["middleware", "dispatch"])
def test_the_leave_of_another_turn(hermes: HomeFactory, door: str) -> None:
    """What lets a call of one turn run lets the same call of a turn inside of it not run."""
    home = hermes()
    home.extension(
        "outer-only",
        HEAD
        + """
@register_hook('intercept_tool_call', guard=True, tools=['jot'])
def outer_only(session_id):
    if session_id != 'outer':
        return HookResult.block('not in this session')
""",
    )
    plugin(
        home,
        "nester",
        """
import __main__

ARGS = {'text': 'x', 'n': 1}

def execute(next_call):
    from hermes_cli.middleware import run_tool_execution_middleware
    return run_tool_execution_middleware('jot', dict(ARGS), next_call, tool_call_id='c1')

def handler(args, **context):
    return execute(lambda final: __main__.inner())

def pre_llm_call(session_id=None, **context):
    from tools.registry import registry
    if session_id == 'inner':
        run = lambda final: registry.dispatch('jot', dict(final))
        told = execute(run) if __main__.door == 'middleware' else run(ARGS)
        __main__.seen.append(told)

def register(ctx):
    ctx.register_hook('pre_llm_call', pre_llm_call)
    schema = {'name': 'nest', 'description': 'x', 'parameters': {'type': 'object',
        'properties': {}}}
    ctx.register_tool('nest', toolset='stage', schema=schema, handler=handler)
""",
    )
    facts = play(
        home,
        f"door = {door!r}\n"
        """
def inner():
    stage.agent(session_id='inner').run_conversation('inside')
    return '{}'
results = stage.use(stage.agent(session_id='outer'), ToolUse('nest', {}, 'c0'))
report(seen=seen, jots=stage.jots, results=results)
""",
    )
    assert facts["results"] == ["{}"]
    assert facts["jots"] == []
    [told] = facts["seen"]
    assert "[outer-only] not in this session" in told


def test_a_turn_that_ends_while_a_person_is_asked(hermes: HomeFactory) -> None:
    """A yes that comes after the end runs nothing, and the model learns why."""
    home = hermes()
    home.extension(
        "careful",
        HEAD
        + """
@register_hook('intercept_tool_call', guard=True, tools=['jot'])
def careful():
    return HookResult.ask('Really?')
""",
    )
    facts = play(
        home,
        """
        from hermes_ext.turns.state import open_turns
        from tools import approval
        from tools.terminal_tool import set_approval_callback
        def person(command, text, **options):
            seen.append(text)
            thread = threading.Thread(target=open_turns.find(lambda turn: True).close)
            thread.start()
            thread.join()
            return 'once'
        set_approval_callback(person)
        results = stage.use(stage.agent(), jot('late'))
        report(results=results, seen=seen, jots=stage.jots,
               gate=hasattr(approval, 'request_tool_approval'))
        """,
        HERMES_INTERACTIVE="1",
    )
    assert facts["jots"] == []
    if facts["gate"]:
        assert len(facts["seen"]) == 1
        assert "the turn that this call belongs to has ended" in facts["results"][0]
