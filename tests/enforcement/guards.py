"""Failing guards: whatever becomes of a guard while it is asked, the call does not run."""

from __future__ import annotations

from pathlib import Path

from tests.enforcement.table import Group, Tried, Way, home_of
from tests.hermes.stage import HEAD, play

_FAILING = (
    HEAD
    + """
import asyncio, os, signal, sys, threading

def deeper():
    return deeper()

def raises(error):
    raise error

def prints():
    print('x' * 1_000_000)
    raise ValueError('after all that')

def moves():
    os.environ['HERMES_HOME'] = '/dev/null/nowhere'
    os.environ.pop('PATH', None)
    os.chdir('/')
    sys.path.clear()
    raise ValueError('after all that')

def rules_signals():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise ValueError('after all that')

def waits_for_the_agent():
    with __main__.held:
        return None

class Liar:
    action = 'pass'
    def __eq__(self, other):
        return True
    def __bool__(self):
        return False
    __hash__ = None

KINDS = {
    'raises': lambda: raises(ValueError('x')),
    'exits': lambda: sys.exit(0),
    'generator exit': lambda: raises(GeneratorExit()),
    'cancelled': lambda: raises(asyncio.CancelledError()),
    'stop iteration': lambda: raises(StopIteration()),
    'deep': deeper,
    'memory': lambda: raises(MemoryError()),
    'endless': lambda: threading.Event().wait(),
    'late': lambda: threading.Event().wait(4) or HookResult.block('late'),
    'lock': waits_for_the_agent,
    'text': lambda: 'block',
    'true': lambda: True,
    'false': lambda: False,
    'dict': lambda: {'action': 'block'},
    'class': lambda: HookResult,
    'liar': Liar,
    'capital': lambda: HookResult('Block', 'x'),
    'unknown': lambda: HookResult('deny', 'x'),
    'no message': lambda: HookResult('block'),
    'rewrite': lambda: HookResult.rewrite({'text': 'evil too'}),
    'answer': lambda: HookResult.answer('evil'),
    'coroutine': lambda: asyncio.sleep(0),
    'generator': lambda: (each for each in ()),
    'prints': prints,
    'moves': moves,
}

@register_hook('intercept_tool_call', guard=True, tools=['jot'], timeout=2)
def guard(tool_args):
    kind = __main__.how.get('kind')
    return KINDS[kind]() if kind else None

# Without a time limit it runs in the thread in which Hermes runs the call; only the main thread may
# set handlers.
@register_hook('intercept_tool_call', guard=True, tools=['jot'], timeout=0)
def guard_unlimited(tool_args):
    kind = __main__.how.get('unlimited')
    __main__.how['in main'] = threading.current_thread() is threading.main_thread()
    return {**KINDS, 'signals': rules_signals}[kind]() if kind else None

@register_hook('intercept_tool_call', guard=True, tools=['jot'], timeout=2)
async def guard_async(tool_args):
    kind = __main__.how.get('async')
    if kind == 'endless':
        await asyncio.Event().wait()
    return KINDS[kind]() if kind else None
"""
)

_SAY = {
    "raises": "raises",
    "exits": "calls `sys.exit`",
    "generator exit": "raises `GeneratorExit`",
    "cancelled": "raises `CancelledError`",
    "stop iteration": "raises `StopIteration`",
    "deep": "calls itself until there is no stack",
    "memory": "raises `MemoryError`",
    "endless": "never returns",
    "late": "returns after its time",
    "lock": "waits for a lock that the agent holds",
    "text": "returns the text `block`",
    "true": "returns `True`",
    "false": "returns `False`",
    "dict": "returns a dict that says `block`",
    "class": "returns the class `HookResult`",
    "liar": "returns an object that is equal to everything",
    "capital": "returns an action in capital letters",
    "unknown": "returns an action that does not exist",
    "no message": "returns a block without a message",
    "rewrite": "rewrites the call, which no guard may",
    "answer": "answers the call, which no guard may",
    "coroutine": "returns a coroutine",
    "generator": "returns a generator",
    "prints": "prints a megabyte, and raises",
    "signals": "changes signal handlers, and raises",
    "moves": "changes environment, directory and `sys.path`, and raises",
}
_ASYNC = ("raises", "exits", "cancelled", "deep", "endless", "text", "capital", "coroutine")

_UNLIMITED = ("raises", "exits", "generator exit", "deep", "memory", "text", "moves", "signals")

_PROLOGUE = """
import signal
held = threading.RLock()
LOG = Path(os.environ['HERMES_HOME'], 'logs', 'extensions.jsonl')

def logged():
    # What the decision log has on calls of `jot`.
    from hermes_ext.hosts.hermes.adapter.state import state
    for runtime in state.runtimes.values():
        if runtime.log is not None:
            runtime.log.flush(timeout=60)
    lines = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    return [line for line in lines if line.get('tool') == 'jot']

def process():
    signals = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    return dict(os.environ), os.getcwd(), list(sys.path), signals

def put_back(before):
    environment, directory, path, signals = before
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.path[:] = path
    for each, handler in zip((signal.SIGINT, signal.SIGTERM), signals):
        signal.signal(each, handler)

def fail(agent, which, kind):
    before, known = process(), len(logged()) if GUARDED else 0
    how[which] = kind
    with held:
        told = stage.use(agent, jot('evil'))
    after = process()
    put_back(before)
    if GUARDED:
        lines = logged()[known:]
        right = [one for one in lines if one['action'] == 'block'
                 and one['blocked_by'] == 'failing' and ' failed (' in one['message']]
        if len(lines) != 1 or len(right) != 1:
            wrong.append(f'{len(lines)} lines in the decision log: {lines}')
        # What the docs say stays changed; it would be news if it did not.
        if (kind == 'moves' or kind == 'signals' and how['in main']) is (before == after):
            wrong.append(f'{before} became {after}')
        if 'failing' not in told[0]:
            wrong.append(told)
    return told
"""

_NOTES = """\
Each call that a failing guard refuses has one line in the decision log, with the failure as its
message. While a required guard is not loaded, the agent answers, and runs no tool at all.

The environment, the working directory, `sys.path`, signal handlers and standard output belong to
the process. What a guard changes there stays changed, for Hermes and for everything else: nothing
is put back, since nobody could tell it from what another thread has changed in the meantime. A
guard with a time limit (all have one, unless they say `timeout=0`) runs in a thread of its own,
where Python lets nobody set a signal handler.
"""

_BROKEN = {
    "cannot be compiled": "def guard(:\n",
    "raises when it is imported": "raise ValueError('not today')\n",
    "has a hook that does not exist": HEAD + "register_hook('intercept_tool')(lambda: None)\n",
}


_EACH_HOME = """
from hermes_constants import set_hermes_home_override
told = {}
for what, home in HOMES.items():
    set_hermes_home_override(home)
    result = stage.say(stage.agent(), 'go', Reply(tool_calls=(jot('evil'),)))
    told[what] = [stage.jots, result['final_response'], results_of(result)]
report(**told)
"""


def _not_loadable(base: Path, guarded: bool) -> dict[str, Tried]:
    """In one process, a home for each. The agent answers; no tool runs, a fine one no more."""
    homes = {}
    for number, (what, source) in enumerate(_BROKEN.items()):
        home = home_of(base / str(number), guarded, extensions={"broken": source})
        if guarded:
            home.write_config({"extensions": {"required": ["broken"]}})
        homes[what] = home
    first = next(iter(homes.values()))
    paths = {what: str(home.home) for what, home in homes.items()}
    told = play(first, _EACH_HOME.replace("HOMES", repr(paths)), HERMES_YOLO_MODE="1")
    return {
        f"a required guard {what}": Tried(
            tuple(each for each in jots if "evil" in each), answer == "Done.", str(results)
        )
        for what, (jots, answer, results) in told.items()
    }


GROUP = Group(
    "guards",
    "A guard that fails",
    [
        *(
            Way(f"{who} {_SAY[kind]}", f"return fail(agent, {which!r}, {kind!r})")
            for which, who, kinds in (
                ("kind", "a guard", [kind for kind in _SAY if kind != "signals"]),
                ("async", "an async guard", _ASYNC),
                ("unlimited", "a guard without a time limit", _UNLIMITED),
            )
            for kind in kinds
        ),
        *(Way(f"a required guard {what}", _not_loadable) for what in _BROKEN),
    ],
    prologue=_PROLOGUE,
    extensions={"failing": _FAILING},
    notes=_NOTES,
)
