"""Async handlers: awaited everywhere, never taken for a pass."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
import time

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import Action, HookResult
from hermes_ext._chain import aio
from hermes_ext._chain.fold import arun, run

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
async def test_awaited_in_the_callers_loop(hook):
    """In an async host, a handler runs in the caller's own loop."""
    loops = []

    async def look(session_id):
        loops.append(asyncio.get_running_loop())
        return HookResult.block("no")

    outcome = await arun(chain(handler(look, hook)), EVENTS[hook], SCOPE)
    assert outcome.message == "no"
    assert loops == [asyncio.get_running_loop()]


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


def test_one_loop_for_all_calls():
    """In a sync host all async handlers share one loop, so that clients can be kept open."""
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
    started, cancelled, later = asyncio.Event(), asyncio.Event(), []

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
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 60)
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


def test_a_loop_that_is_blocked_is_replaced():
    """A handler that blocks the shared loop fails by itself; later ones get a new loop."""
    gate = threading.Event()

    async def blocks(session_id):
        gate.wait()

    outcome = outcome_of(handler(blocks, timeout=SHORT))
    assert outcome.errors[0].kind == "timeout"
    after = outcome_of(handler(returning(HookResult.block("no")), timeout=60))
    gate.set()
    assert after.message == "no"


def test_blocked_loops_are_bounded():
    """While too many loops are blocked, async handlers fail at once and say why."""
    gate = threading.Event()

    async def blocks(session_id):
        gate.wait()

    blocking = handler(blocks, timeout=SHORT)
    errors = [outcome_of(blocking).errors[0] for _ in range(aio.LOOPS_LEFT + 1)]
    gate.set()
    assert "took longer" in str(errors[0])
    assert "4 calls that ran out of time are still running" in str(errors[-1])
    waiting = handler(returning(HookResult.block("no")), timeout=60)
    deadline = time.monotonic() + 60
    while outcome_of(waiting).errors and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert outcome_of(waiting).message == "no"


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
