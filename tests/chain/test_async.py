"""Async handlers: awaited everywhere, never taken for a pass."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import Action, HookResult
from hermes_ext.chain import aio
from hermes_ext.chain.fold import arun, run
from hermes_ext.chain.timeouts import LEFT_PER_HANDLER, workers
from hermes_ext.turns.state import TurnState

CALL = EVENTS["intercept_tool_call"]
SHORT = 0.05


def returning(result):
    async def answer(session_id):
        await asyncio.sleep(0)
        return result

    return answer


def everywhere(call):
    """Calls from a plain thread, from the thread of a running loop, and from a worker of one."""

    async def inside():
        return call()

    async def in_worker():
        return await asyncio.to_thread(call)

    return [call(), asyncio.run(inside()), asyncio.run(in_worker())]


@pytest.mark.parametrize("hook", EVENTS)
def test_awaited_in_a_sync_host(hook):
    """Awaited with no loop, inside a running loop, and from a worker thread."""
    one = chain(handler(returning(HookResult.block("no")), hook, guard=True))
    outcomes = everywhere(lambda: run(one, EVENTS[hook], SCOPE))
    assert [outcome.message for outcome in outcomes] == ["no"] * 3


@pytest.mark.parametrize("hook", EVENTS)
async def test_awaited_beside_the_callers_loop(hook):
    """In an async host, a handler runs in the loop of its session, and the caller's goes on."""
    loops, went_on = [], asyncio.Event()
    here = asyncio.get_running_loop()

    async def look(session_id):
        loops.append(asyncio.get_running_loop())
        here.call_soon_threadsafe(went_on.set)
        return HookResult.block("no")

    one = chain(handler(look, hook))
    assert (await arun(one, EVENTS[hook], SCOPE)).message == "no"
    assert (await arun(one, EVENTS[hook], SCOPE)).message == "no"
    await asyncio.wait_for(went_on.wait(), 60)
    assert loops[0] is loops[1] is not here


def test_all_kinds_of_async_callables():
    """Partials, methods, callable objects and wrapped functions are awaited too."""

    class Guard:
        async def check(self, tool_name):
            return HookResult.block("no")

        async def __call__(self, tool_name):
            return HookResult.block("no")

    async def plain(tool_name, _extra=None):
        return HookResult.block("no")

    @functools.wraps(plain)
    def wrapper(*args, **kwargs):
        return plain(*args, **kwargs)

    for function in (plain, functools.partial(plain), Guard(), Guard().check, wrapper):
        assert outcome_of(handler(function)).message == "no"


def test_one_loop_for_all_calls_of_a_session():
    """A session's async handlers share one loop, so that clients can be kept open."""
    loops = []

    async def look(session_id):
        loops.append(asyncio.get_running_loop())

    one = chain(handler(look), handler(look))
    run(one, CALL, SCOPE)
    run(one, CALL, SCOPE)
    assert len(loops) == 4
    assert len(set(map(id, loops))) == 1


def test_context_variables_are_seen():
    """An async handler in a sync host sees the caller's context variables."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("callers")
    seen = []

    async def look(session_id):
        seen.append(variable.get())

    outcome_of(handler(look))
    assert seen == ["callers"]


@pytest.fixture
def in_both():
    """Runs a chain by `run` and by `arun`."""

    def both(one, event=CALL):
        return [run(one, event, SCOPE), asyncio.run(arun(one, event, SCOPE))]

    return both


def test_failures(in_both):
    """What an async handler raises is its failure, whatever it is."""

    async def fail(session_id):
        raise SystemExit(3)

    for outcome in in_both(chain(handler(fail))):
        assert outcome.blocked
        assert isinstance(outcome.errors[0].cause, SystemExit)
        assert "in fail" in outcome.errors[0].traceback


def test_cancellation_is_a_failure(in_both):
    """A handler that is cancelled, or says so, has failed: never a pass."""

    async def cancelled(session_id):
        raise asyncio.CancelledError

    async def cancels_itself(session_id):
        asyncio.current_task().cancel()
        await asyncio.sleep(10)

    def sync(session_id):
        raise asyncio.CancelledError

    for function in (cancelled, cancels_itself, sync):
        for outcome in in_both(chain(handler(function))):
            assert outcome.blocked
            assert outcome.errors[0].kind == "cancelled"


def test_timeouts(in_both):
    """An async handler that waits too long is cancelled, and its policy decides."""
    ended = []

    async def slow(session_id):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    async def fine(session_id):
        return HookResult.ask("?")

    one = chain(
        handler(slow, timeout=SHORT, on_error="pass", priority=1), handler(fine, priority=2)
    )
    for outcome in in_both(one):
        assert [error.kind for error in outcome.errors] == ["timeout"]
        assert outcome.action is Action.ASK
    assert ended == [1, 1]


def test_a_handler_that_refuses_to_be_cancelled():
    """One that swallows its cancellation holds up nobody: its call is over before it is."""
    over = threading.Event()

    async def stubborn(session_id):
        end = time.monotonic() + 60
        while not over.is_set() and time.monotonic() < end:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return HookResult.block("late")

    one = chain(handler(stubborn, timeout=SHORT, on_error="pass"))

    async def called():
        began = time.monotonic()
        outcome = await arun(one, CALL, SCOPE)
        over.set()  # the loop ends when the handler does
        return outcome, time.monotonic() - began

    outcome, took = asyncio.run(called())
    assert took < 30
    assert outcome.errors[0].kind == "timeout"
    over.clear()
    began = time.monotonic()
    outcome = run(one, CALL, SCOPE)
    over.set()
    assert time.monotonic() - began < 30
    assert outcome.errors[0].kind == "timeout"


async def test_the_callers_cancellation_is_the_callers():
    """When the caller's task is cancelled, that is raised, and no later handler runs."""
    started, cancelled, later = threading.Event(), threading.Event(), []

    async def waits(session_id):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    one = chain(
        handler(waits, on_error="pass", priority=1),
        handler(lambda session_id: later.append(1), priority=2),
    )
    task = asyncio.create_task(arun(one, CALL, SCOPE))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(cancelled.wait, 60)
    assert later == []


async def test_the_callers_cancellation_while_a_thread_works():
    """The same while a sync handler with a limit runs in its thread."""
    started, gate = threading.Event(), threading.Event()

    def waits(session_id):
        started.set()
        gate.wait()

    task = asyncio.create_task(arun(chain(handler(waits, timeout=30)), CALL, SCOPE))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()


async def test_a_sync_handler_with_a_limit_leaves_the_loop_free():
    """While such a handler works in its thread, the caller's loop goes on."""
    gate = threading.Event()
    one = chain(handler(lambda session_id, _gate=gate: _gate.wait() and None, timeout=30))
    task = asyncio.create_task(arun(one, CALL, SCOPE))
    await asyncio.sleep(0)
    gate.set()
    assert (await task) is one.passed


async def test_a_sync_handler_that_hangs():
    """Its limit counts in an async host too."""
    gate = threading.Event()

    def stuck(session_id):
        gate.wait()

    outcome = await arun(chain(handler(stuck, timeout=SHORT)), CALL, SCOPE)
    gate.set()
    assert outcome.errors[0].kind == "timeout"
    assert outcome.blocked


def in_session(name, conversation=None):
    return SCOPE.replace(session_id=name, conversation_id=conversation or name)


def blocking(gate, entered=None, **options):
    async def blocks(session_id):
        if session_id.startswith("bad"):
            if entered is not None:
                entered.set()
            gate.wait()
            return HookResult.block("at last")
        await asyncio.sleep(0)
        return HookResult.block("no")

    return handler(blocks, **options)


def test_a_loop_that_is_blocked_is_replaced():
    """A handler that blocks its session's loop fails by itself; later ones get a new loop."""
    gate = threading.Event()
    outcome = run(chain(blocking(gate, timeout=SHORT)), CALL, in_session("bad"))
    assert outcome.errors[0].kind == "timeout"
    after = run(
        chain(handler(returning(HookResult.block("no")), timeout=60)), CALL, in_session("bad")
    )
    gate.set()
    assert after.message == "no"


def test_a_loop_that_was_replaced_ends_once_nothing_blocks_it():
    gate, used, ended = threading.Event(), [], threading.Event()

    class Ends(asyncio.SelectorEventLoop):
        def close(self):
            super().close()
            ended.set()

    async def blocks(session_id):
        loop = asyncio.get_running_loop()
        loop.__class__ = Ends
        used.append(loop)
        gate.wait()

    for _ in range(2):
        blocked = chain(handler(blocks, timeout=SHORT))
        assert run(blocked, CALL, in_session("bad")).errors[0].kind == "timeout"
    gate.set()
    first, second = used
    assert ended.wait(60)
    assert first.is_closed()
    assert not second.is_closed()


@pytest.mark.parametrize("conversation", ["", "shared"])
def test_a_session_delays_itself_only(conversation):
    """While a handler blocks in one session, another's are awaited, and may run out of time."""
    gate, entered, outcomes = threading.Event(), threading.Event(), []
    bad, good = in_session("bad", conversation), in_session("good", conversation)
    one = chain(blocking(gate, entered))
    thread = threading.Thread(target=lambda: outcomes.append(run(one, CALL, bad)))
    thread.start()
    assert entered.wait(60)

    async def late(session_id):
        await asyncio.Event().wait()

    waiting = chain(handler(late, timeout=SHORT))
    for _ in range(3):
        assert run(one, CALL, good).message == "no"
        assert run(waiting, CALL, good).errors[0].kind == "timeout"
    assert run(waiting, CALL, bad).errors[0].kind == "timeout"
    gate.set()
    thread.join()
    assert outcomes[0].message == "at last"


async def test_a_blocking_handler_leaves_an_async_host_free():
    """It blocks neither the host's loop nor the handlers of other sessions."""
    gate, entered = threading.Event(), threading.Event()
    one = chain(blocking(gate, entered))
    stuck = asyncio.create_task(arun(one, CALL, in_session("bad")))
    await asyncio.to_thread(entered.wait)
    for number in range(3):
        outcome = await asyncio.wait_for(arun(one, CALL, in_session(f"good{number}")), 60)
        assert outcome.message == "no"
    assert not stuck.done()
    gate.set()
    assert (await stuck).message == "at last"


async def test_the_callers_cancellation_while_a_handler_blocks():
    """The caller is cancelled at once, and the session's next handlers are awaited."""
    gate, entered = threading.Event(), threading.Event()
    one = chain(blocking(gate, entered))
    task = asyncio.create_task(arun(one, CALL, in_session("bad")))
    await asyncio.to_thread(entered.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    after = chain(handler(returning(HookResult.block("no")), timeout=60))
    assert (await arun(after, CALL, in_session("bad"))).message == "no"
    gate.set()


def test_calls_left_behind_are_bounded(in_both):
    """While too many calls are stuck, a session's next ones fail at once and say why."""
    gate = threading.Event()
    one = chain(blocking(gate, timeout=0.01))
    bad = in_session("bad")
    errors = [run(one, CALL, bad).errors[0] for _ in range(LEFT_PER_HANDLER + 1)]
    assert "took longer" in str(errors[0])
    assert f"{LEFT_PER_HANDLER} calls that ran out of time are still running" in str(errors[-1])
    assert "in this session" in str(errors[-1])
    assert [outcome.message for outcome in in_both(chain(blocking(gate)))] == ["no", "no"]
    gate.set()
    deadline = time.monotonic() + 60
    while workers.left_behind and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert outcome_of(handler(returning(None), timeout=60), scope=bad).action is Action.PASS


def test_what_belongs_to_a_loop_goes_on_working():
    """A lock of asyncio's that an extension keeps serves all calls of a session."""
    lock, counted = asyncio.Lock(), []

    async def count(session_id):
        async with lock:
            seen = len(counted)
            await asyncio.sleep(0.001)
            counted.append(seen)

    async def late(session_id):
        await asyncio.Event().wait()

    one, scope = chain(handler(count)), in_session("keeps")
    with ThreadPoolExecutor(4) as pool:
        for outcome in pool.map(lambda _: run(one, CALL, scope), range(12)):
            assert outcome is one.passed
    assert outcome_of(handler(late, timeout=SHORT), scope=scope).errors

    async def from_a_host():
        return await asyncio.gather(*(arun(one, CALL, scope) for _ in range(4)))

    assert asyncio.run(from_a_host()) == [one.passed] * 4
    assert counted == list(range(16))


def test_loops_of_sessions_that_are_over_are_closed():
    """Some are kept for a session's next turn; one whose turn is open keeps its loop."""
    seen = {}

    async def look(session_id):
        loop = asyncio.get_running_loop()
        assert seen.setdefault(session_id, loop) is loop or session_id != "open"

    one = chain(handler(look))
    open_turn = in_session("open").replace(state=TurnState())
    run(one, CALL, open_turn)
    for number in range(3 * aio.LOOPS_KEPT):
        assert run(one, CALL, in_session(f"over{number}")) is one.passed
    assert run(one, CALL, open_turn) is one.passed
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        left = [loop for loop in seen.values() if not loop.is_closed()]
        if len(left) <= aio.LOOPS_KEPT + 1:
            break
        threading.Event().wait(0.01)
    assert seen["open"] in left
    assert 1 < len(left) <= aio.LOOPS_KEPT + 1
    open_turn.state.over = True


@pytest.mark.parametrize("way", ["stop", "exit in a callback", "close"])
@pytest.mark.filterwarnings("ignore")
def test_a_handler_that_meddles_with_its_loop(way):
    """One that stops the loop, or breaks it by an error in a callback, has its result."""

    async def meddle(session_id):
        loop = asyncio.get_running_loop()
        if way == "stop":
            loop.stop()
        elif way == "close":
            with contextlib.suppress(RuntimeError):
                loop.close()
        else:
            loop.call_soon(sys.exit)
        await asyncio.sleep(0.01)
        return HookResult.block("no")

    for _ in range(3):
        assert outcome_of(handler(meddle, timeout=60)).message == "no"


async def test_context_variables_in_an_async_host():
    """A handler sees the caller's context variables; what it sets stays its own."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("callers")
    seen = []

    async def look(session_id):
        seen.append(variable.get())
        variable.set("handlers")

    one = chain(handler(look), handler(look))
    await arun(one, CALL, SCOPE)
    assert seen == ["callers", "callers"]
    assert variable.get() == "callers"


def test_a_handler_may_run_a_chain_itself():
    """An async handler that calls a sync host's chain with async handlers does not deadlock."""
    inner = chain(handler(returning(HookResult.block("inner")), timeout=60))

    async def outer(session_id):
        return HookResult.block(run(inner, CALL, SCOPE).message + " outer")

    assert outcome_of(handler(outer, timeout=60)).message == "inner outer"


def test_strict_and_timed(in_both):
    """Examining works for async handlers and for those in threads."""

    async def change(tool_args):
        tool_args["env"].clear()

    def change_too(tool_args):
        tool_args.clear()

    one = chain(handler(change), handler(change_too, timeout=60))
    for outcome in (
        run(one, CALL, SCOPE, strict=True, timed=True),
        asyncio.run(arun(one, CALL, SCOPE, strict=True, timed=True)),
    ):
        assert [step.mutated for step in outcome.steps] == [True, True]
        assert all(step.duration_ns for step in outcome.steps)


async def test_everyone_passes():
    """An async run in which all passed gives the shared outcome."""
    one = chain(handler(returning(None)), handler(lambda session_id: None))
    assert await arun(one, CALL, SCOPE) is one.passed


async def test_nothing_is_bound():
    """Arguments that cannot be made fail the handler in an async run as well."""

    def broken(extension):
        raise OSError("disk full")

    async def look(session_state):
        raise AssertionError

    outcome = await arun(chain(handler(look)), CALL, SCOPE.replace(session_state_of=broken))
    assert "disk full" in str(outcome.errors[0])


def test_waiting_for_anything():
    """A sync host can wait for an awaitable, from anywhere; what it raises is raised."""

    async def give():
        return 42

    async def fail():
        raise KeyError("x")

    assert everywhere(lambda: aio.wait_for(give())) == [42] * 3
    with pytest.raises(KeyError):
        aio.wait_for(fail())
