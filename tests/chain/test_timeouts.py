"""Handlers with a time limit: the chain goes on, late results are dropped, threads are bounded."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import HookResult
from hermes_ext.chain.fold import run
from hermes_ext.chain.threads import threads
from hermes_ext.chain.timeouts import (
    LEFT_PER_HANDLER,
    LEFT_PER_SESSION,
    TimedOut,
    Workers,
    workers,
)

SHORT = 0.05


@pytest.fixture
def gate():
    """Blocks whoever waits for it, until the test is over."""
    event = threading.Event()
    yield event
    event.set()
    deadline = time.monotonic() + 60
    while workers.left_behind and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    assert not workers.left_behind


def stuck_at(gate, result=None):
    def stuck(session_id):
        gate.wait()
        return result

    return stuck


def passing(session_id):
    return None


class Limit:
    """A handler, as far as the workers know."""

    is_async = False

    def __init__(self, timeout):
        self.timeout = timeout


@pytest.mark.parametrize("hook", EVENTS)
@pytest.mark.parametrize("guard", [False, True], ids=["transformer", "guard"])
def test_the_turn_goes_on(hook, guard, gate):
    """A handler that hangs is left; its policy decides, and the message names the limit."""
    seen = []
    began = time.monotonic()
    outcome = outcome_of(
        handler(stuck_at(gate), hook, guard=guard, timeout=SHORT, extension="slow", priority=1),
        handler(lambda session_id: seen.append(1), hook, guard=guard, timeout=0, priority=2),
    )
    assert time.monotonic() - began < 30
    (error,) = outcome.errors
    assert error.kind == "timeout"
    assert f"slow, {hook}: " in str(error)
    assert "stuck took longer than 0.05 s" in str(error)
    if guard or hook == "intercept_tool_call":
        assert outcome.blocked_by == "slow"
        assert seen == []
    else:
        assert seen == [1]


def test_a_late_result_is_dropped(gate):
    """A block that comes after the limit changes nothing any more."""
    stuck = handler(stuck_at(gate, HookResult.block("late")), timeout=SHORT, on_error="pass")
    outcome = outcome_of(stuck)
    gate.set()
    assert not outcome.blocked


def test_the_result_in_time_counts():
    """A handler with a limit decides as any other, and runs in a thread of its own."""
    seen = []

    def decide(tool_args):
        seen.append(threading.current_thread())
        return HookResult.rewrite({**tool_args, "x": 1})

    outcome = outcome_of(handler(decide, timeout=60))
    assert outcome.value["x"] == 1
    assert seen[0] is not threading.current_thread()
    assert seen[0].daemon


def test_guards_have_a_limit_by_default():
    """A guard runs in a thread with a limit of 10 seconds; with `timeout=0` it runs inline."""
    seen = []

    def look(session_id):
        seen.append(threading.current_thread() is threading.main_thread())

    assert handler(look, guard=True).timeout == 10
    outcome_of(handler(look, guard=True))
    outcome_of(handler(look, guard=True, timeout=0))
    outcome_of(handler(look))
    assert seen == [False, True, True]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), GeneratorExit()], ids=repr)
def test_failures_in_a_thread_are_failures(error):
    """What is raised in the thread is the handler's failure, with its traceback."""

    def fail(session_id):
        raise error

    outcome = outcome_of(handler(fail, timeout=60))
    assert outcome.errors[0].cause is error
    assert "in fail" in outcome.errors[0].traceback
    assert "_timeouts.py" not in outcome.errors[0].traceback.replace("test_timeouts.py", "")


def test_context_variables_are_seen():
    """A handler with a limit sees the caller's context variables; what it sets stays its own."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("callers")
    seen = []

    def look(session_id):
        seen.append(variable.get())
        variable.set("handlers")

    one = chain(handler(look, timeout=60))
    run(one, EVENTS["intercept_tool_call"], SCOPE)
    run(one, EVENTS["intercept_tool_call"], SCOPE)
    assert seen == ["callers", "callers"]
    assert variable.get() == "callers"


def test_idle_threads_are_used_again():
    """A second call does not start a second thread."""
    pool = Workers()
    limit = Limit(60)
    threads = {pool.call(limit, threading.current_thread, ())[0] for _ in range(20)}
    assert len(threads) == 1


def test_threads_left_behind_are_bounded(gate):
    """When too many calls of a handler are stuck, the next fails at once and says why."""
    pool = Workers(left_per_handler=2, left_in_all=3)
    stuck, other, third = Limit(SHORT), Limit(60), Limit(5)

    for _ in range(2):
        assert isinstance(pool.call(stuck, gate.wait, ())[1], TimedOut)
    _, refused = pool.call(stuck, gate.wait, ())
    assert isinstance(refused, TimedOut)
    assert refused.text(SHORT) == (
        "was not called: 2 calls that ran out of time are still running in this session"
    )

    assert pool.call(other, lambda: "fine", ()) == ("fine", None)
    other.timeout = SHORT
    assert isinstance(pool.call(other, gate.wait, ())[1], TimedOut)
    _, refused = pool.call(third, lambda: "fine", ())
    assert "3 calls" in refused.text(5)
    assert pool.left_behind == 3


def test_what_a_session_leaves_behind_costs_the_others_nothing(gate):
    """A handler that hangs in one session, as often as it may, is called in another as before."""
    pool = Workers()
    stuck = Limit(0.001)
    bad, good = (SCOPE.replace(session_id=name) for name in ("bad", "good"))
    for _ in range(LEFT_PER_HANDLER):
        assert isinstance(pool.call(stuck, gate.wait, (), bad)[1], TimedOut)
    assert pool.call(stuck, gate.wait, (), bad)[1].still_running
    for _ in range(LEFT_PER_SESSION - LEFT_PER_HANDLER):
        assert isinstance(pool.call(Limit(0.001), gate.wait, (), bad)[1], TimedOut)
    assert pool.call(Limit(60), len, ("",), bad)[1].still_running == LEFT_PER_SESSION
    stuck.timeout = 60
    assert pool.call(stuck, len, ("",), good) == (0, None)
    assert pool.left_behind == LEFT_PER_SESSION


def test_the_process_has_a_bound_too(gate):
    """Sessions that each leave something behind reach it together; then all handlers fail."""
    pool = Workers(left_in_all=3)
    stuck = Limit(0.001)
    for number in range(3):
        scope = SCOPE.replace(session_id=f"s{number}")
        assert isinstance(pool.call(stuck, gate.wait, (), scope)[1], TimedOut)
    _, refused = pool.call(Limit(60), len, ("",), SCOPE.replace(session_id="another"))
    assert refused.text(1) == (
        "was not called: 3 calls that ran out of time are still running in this process"
    )


def test_a_thread_that_cannot_be_started(monkeypatch):
    """No thread left in the machine: that handler fails, and nothing is raised."""

    def no_more(self):
        raise RuntimeError("can't start new thread")

    async def passes(session_id):
        return None

    # No thread of an earlier call that comes back just now, either.
    monkeypatch.setattr("hermes_ext.chain.threads._IDLE_KEPT", 0)
    threads.renew_locks()
    monkeypatch.setattr(threading.Thread, "start", no_more)
    scope = SCOPE.replace(session_id="no-threads", conversation_id="no-threads")
    for function in (passing, passes):
        outcome = outcome_of(handler(function, guard=True), scope=scope)
        assert outcome.blocked
        assert "can't start new thread" in str(outcome.errors[0])


def test_threads_come_back(gate):
    """Once a stuck handler returns, its thread serves again and the handler is called again."""
    pool = Workers(left_per_handler=1)
    limit = Limit(SHORT)
    assert isinstance(pool.call(limit, gate.wait, ())[1], TimedOut)
    gate.set()
    deadline = time.monotonic() + 60
    while pool.left_behind and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    limit.timeout = 60
    assert pool.call(limit, lambda: "again", ()) == ("again", None)


def test_many_threads_at_once():
    """Calls of many threads at once each get their own result."""

    def echo(session_id, tool_args):
        return HookResult.rewrite({**tool_args, "session": session_id})

    one = chain(handler(echo, timeout=30))
    wrong = []

    def work(number):
        scope = SCOPE.replace(session_id=f"s{number}")
        for _ in range(100):
            outcome = run(one, EVENTS["intercept_tool_call"], scope)
            if outcome.value["session"] != f"s{number}":
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def run_script(text):
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), time.monotonic() - began


SCRIPT = """
    import asyncio, os, sys, threading
    from hermes_ext import HookResult, ToolCall, register_hook
    from hermes_ext.chain.fold import run
    from hermes_ext.chain.manager import HookManager
    from hermes_ext.hooks.payloads import Scope
    from hermes_ext.hooks.registration import build_handlers, registrations_of

    def judge(*functions):
        marked = [one for function in functions for one in registrations_of(function)]
        chain = HookManager(build_handlers("e", marked)).chain("intercept_tool_call", "t")
        return run(chain, ToolCall("t", {}), Scope(session_id="s"))
"""


def test_exit_is_not_delayed():
    """A process ends although handlers, sync and async, are stuck for ever."""
    printed, took = run_script(
        SCRIPT
        + """
    @register_hook("intercept_tool_call", timeout=0.05, on_error="pass")
    def stuck(tool_name):
        threading.Event().wait()

    @register_hook("intercept_tool_call", timeout=0.05, on_error="pass")
    async def stuck_too(tool_name):
        await asyncio.Event().wait()

    print(*(error.kind for error in judge(stuck, stuck_too).errors))
    """
    )
    assert printed == ["timeout", "timeout"]
    assert took < 30


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval"), reason="needs os.fork")
def test_after_a_fork():
    """A forked child has none of the threads and makes its own."""
    printed, _ = run_script(
        SCRIPT
        + """
    @register_hook("intercept_tool_call", guard=True)
    def guard(tool_name):
        return HookResult.block("sync")

    @register_hook("transform_tool_result")
    @register_hook("intercept_tool_call", guard=True, priority=1)
    async def async_guard(tool_name):
        return HookResult.ask("async")

    outcome = judge(guard, async_guard)
    print(outcome.message, len(outcome.asks), flush=True)
    child = os.fork()
    if child == 0:
        outcome = judge(guard, async_guard)
        print(outcome.message, len(outcome.asks), flush=True)
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    )
    assert printed == ["sync", "1", "sync", "1"]


def test_passing_guards_leave_nothing():
    """Guards that pass keep no thread busy and no call counted."""
    one = chain(handler(passing, guard=True))
    for _ in range(50):
        assert run(one, EVENTS["intercept_tool_call"], SCOPE) is one.passed
    assert workers.left_behind == 0


class Slow:
    """A value, and an exception's argument, each of whose methods waits."""

    gate: threading.Event

    def __repr__(self):
        self.gate.wait(30)
        return "slow"

    __str__ = __repr__

    def __deepcopy__(self, memo):
        self.gate.wait(30)
        return self


class SlowText(Exception):
    def __str__(self):
        Slow.gate.wait(30)
        return "slow"


def raises(error):
    def made():
        raise error

    return made


def raises_inside_another():
    try:
        raise SlowText
    except SlowText:
        raise ValueError("outer")  # noqa: B904


def slow_to_close():
    def steps():
        try:
            yield
        finally:
            Slow.gate.wait(30)

    made = steps()
    next(made)
    return made


SLOW_TO_READ = {
    "an error": raises(SlowText()),
    "an error's argument": raises(ValueError(Slow())),
    "an error behind the error": raises_inside_another,
    "what is no result": Slow,
    "metadata": lambda: HookResult.pass_(metadata={"a": Slow()}),
    "a new value": lambda: HookResult.rewrite({"command": Slow()}),
    "a generator's end": slow_to_close,
}


@pytest.mark.parametrize("what", SLOW_TO_READ)
@pytest.mark.parametrize("awaited", [False, True])
def test_reading_what_a_handler_came_to_is_part_of_its_time(what, awaited, gate):
    """Code of its own that its result or its error brings along has the handler's limit."""
    Slow.gate = gate

    def plain(session_id):
        return SLOW_TO_READ[what]()

    async def in_a_loop(session_id):
        return plain(session_id)

    outcome = outcome_of(handler(in_a_loop if awaited else plain, timeout=SHORT))
    assert outcome.blocked
    assert [error.kind for error in outcome.errors] == ["timeout"]
