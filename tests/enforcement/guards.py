"""Failing guards: whatever becomes of a guard while it is asked, the call does not run."""

from __future__ import annotations

from tests.enforcement.table import Group, Way
from tests.hermes.stage import HEAD

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
    "moves": "changes environment, directory and `sys.path`, and raises",
}
_ASYNC = ("raises", "exits", "cancelled", "deep", "endless", "text", "capital", "coroutine")

_DRIVES = """
kept, path = dict(os.environ), list(sys.path)
how[{which!r}] = {kind!r}
with held:
    told = stage.use(agent, jot('evil'))
os.environ.clear()
os.environ.update(kept)
sys.path[:] = path
return told
"""

GROUP = Group(
    "guards",
    "A guard that fails",
    [
        *(Way(f"a guard {says}", _DRIVES.format(which="kind", kind=k)) for k, says in _SAY.items()),
        *(
            Way(f"an async guard {_SAY[kind]}", _DRIVES.format(which="async", kind=kind))
            for kind in _ASYNC
        ),
    ],
    prologue="held = threading.RLock()\n",
    extensions={"failing": _FAILING},
)
