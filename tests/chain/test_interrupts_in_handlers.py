"""A person's Ctrl-C comes through a chain; a KeyboardInterrupt that code raises is its failure."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import Action, HookResult
from hermes_ext._interrupts import typed
from hermes_ext.chain.fold import arun, run

CALL = EVENTS["intercept_tool_call"]


def plain():
    raise KeyboardInterrupt


def with_a_text():
    raise KeyboardInterrupt("stop")


def of_another_class():
    class Stop(KeyboardInterrupt):
        pass

    raise Stop


def raised_again():
    try:
        plain()
    except KeyboardInterrupt:
        raise


def made_before():
    error = KeyboardInterrupt()
    try:
        raise ValueError
    except ValueError:
        raise error  # noqa: B904


def through_finally():
    try:
        plain()
    finally:
        len("")


def while_one_is_handled():
    try:
        plain()
    except KeyboardInterrupt:
        plain()


def through_a_context():
    @contextlib.contextmanager
    def manager():
        try:
            yield
        finally:
            pass

    with manager():
        plain()


def in_a_generator():
    def each():
        yield 1
        plain()

    list(each())


def thrown_into_a_new_generator():
    def each():
        yield 1

    each().throw(KeyboardInterrupt)


def thrown_into_a_generator():
    def each():
        while True:
            yield 1

    made = each()
    next(made)
    made.throw(KeyboardInterrupt)


def from_a_future():
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_exception(KeyboardInterrupt())
    future.result()


def from_another_thread():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(plain).result()


def in_a_loop():
    async def main():
        plain()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def by_a_function_of_c():
    sorted([1, 2], key=lambda _: plain())


def by_the_default_handler():
    signal.default_int_handler(signal.SIGINT, None)


WAYS = [
    plain,
    with_a_text,
    of_another_class,
    raised_again,
    made_before,
    through_finally,
    while_one_is_handled,
    through_a_context,
    in_a_generator,
    thrown_into_a_new_generator,
    thrown_into_a_generator,
    from_a_future,
    from_another_thread,
    in_a_loop,
    by_a_function_of_c,
    by_the_default_handler,
]


def of(way):
    def interrupt(session_id):
        way()

    return interrupt


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "options",
    [{}, {"guard": True, "timeout": 0}, {"timeout": 60}, {"guard": True}],
    ids=["inline", "guard inline", "limited", "guard"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_nobody_typed_is_a_failure(way, options):
    """However it is raised, in the main thread and in others; those after the handler run."""
    outcome = outcome_of(handler(of(way), **options))
    assert outcome.blocked
    assert isinstance(outcome.errors[0].cause, KeyboardInterrupt)

    later = handler(lambda session_id: HookResult.ask("?"), priority=200)
    outcome = outcome_of(handler(of(way), on_error="pass", **options | {"guard": False}), later)
    assert outcome.action is Action.ASK
    assert len(outcome.errors) == 1


@pytest.mark.parametrize("way", [plain, raised_again, from_a_future, in_a_generator])
def test_in_an_async_handler(way):
    """The same where it is awaited, by a sync host and by an async one."""

    async def interrupt(session_id):
        await asyncio.sleep(0)
        way()

    async def at_once(session_id):
        way()

    for function in (interrupt, at_once):
        one = chain(handler(function))
        for outcome in (run(one, CALL, SCOPE), asyncio.run(arun(one, CALL, SCOPE))):
            assert isinstance(outcome.errors[0].cause, KeyboardInterrupt)


def test_in_a_task_that_a_handler_leaves():
    """One in a task beside the handler ends nothing; the next handler is awaited as usual."""

    async def begin(session_id):
        async def task():
            raise KeyboardInterrupt

        begin.task = asyncio.ensure_future(task())
        await asyncio.sleep(0.01)

    async def block(session_id):
        return HookResult.block("no")

    assert run(chain(handler(begin)), CALL, SCOPE).action is Action.PASS
    assert outcome_of(handler(block, timeout=60)).message == "no"
    assert isinstance(begin.task.exception(), KeyboardInterrupt)


class Odd:
    """A value whose methods raise."""

    def __repr__(self):
        raise KeyboardInterrupt

    __str__ = __eq__ = __deepcopy__ = __repr__
    __hash__ = None  # type: ignore[assignment]


class OddError(Exception):
    def __str__(self):
        raise KeyboardInterrupt


def test_in_the_methods_of_values():
    """One that a returned, compared, copied or raised value raises."""

    def fails(session_id):
        raise OddError

    rewrites = handler(lambda tool_args: HookResult.rewrite({"command": Odd()}))
    for one in (handler(lambda session_id: Odd()), handler(fails)):
        outcome = outcome_of(one)
        assert outcome.blocked
        assert str(outcome.errors[0])
    assert outcome_of(rewrites).blocked


def test_while_arguments_are_made():
    """One that the host's own session state raises."""

    def broken(extension):
        raise KeyboardInterrupt

    for options in ({}, {"timeout": 60}):
        one = chain(handler(lambda session_state: None, **options))
        outcome = run(one, CALL, SCOPE.replace(session_state_of=broken))
        assert isinstance(outcome.errors[0].cause, KeyboardInterrupt)


def test_in_a_thread_of_the_host():
    """In no other thread than the main one is it a person's, wherever it comes from."""
    found: list[Any] = []

    def work():
        found.append(outcome_of(handler(of(by_the_default_handler))))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].blocked


@pytest.mark.parametrize("error", [SystemExit(1), GeneratorExit(), asyncio.CancelledError()])
async def test_other_ends_in_an_async_host(error):
    """What ends programs, generators and tasks is the handler's failure, also beside a loop."""

    def fail(session_id):
        raise error

    async def afail(session_id):
        raise error

    for one in (
        handler(fail),
        handler(fail, timeout=60),
        handler(afail),
        handler(afail, guard=True),
    ):
        outcome = await arun(chain(one), CALL, SCOPE)
        assert type(outcome.errors[0].cause) is type(error)


# -- a real one ---------------------------------------------------------------------------------

CHILD = """
import asyncio, contextlib, os, signal, sys, threading, time
from hermes_ext import HookResult, Runtime, register_hook

def ready():
    print("ready", flush=True)

@contextlib.contextmanager
def suppressing():
    try:
        yield
    finally:
        len("")

{handler}

turn = Runtime([slow]).turn(session_id="s")
try:
    outcome = turn.intercept_tool_call("terminal", {{}})
except KeyboardInterrupt:
    print("interrupted", flush=True)
except BaseException as error:
    print("raised", repr(error), flush=True)
else:
    print("outcome", outcome.message, flush=True)
os._exit(0)
"""

SLEEPS = "ready(); time.sleep(60)"
BODIES = {
    "sleeping": SLEEPS,
    "in a tight loop": "ready()\n    while True: pass",
    "counting": "ready()\n    for n in range(10**12): n + 1",
    "calling": "ready()\n    while True: len('a')",
    "in a generator": "ready()\n    for _ in iter(int, 1): next(n for n in (1, 2))",
    "waiting for a lock": "ready(); threading.Event().wait(60)",
    "in a with block": "ready()\n    while True:\n        with suppressing(): str(1)",
    "raising it again": (f"try: {SLEEPS}\n    except KeyboardInterrupt: raise"),
    "raising it by name": f"try: {SLEEPS}\n    except KeyboardInterrupt as e: raise e",
    "raising one of its own": f"try: {SLEEPS}\n    except BaseException: raise KeyboardInterrupt",
    "wrapping it": f"try: {SLEEPS}\n    except BaseException as e: raise ValueError from e",
    "cleaning up": f"try: {SLEEPS}\n    finally: len('')",
    "catching errors": f"try: {SLEEPS}\n    except Exception: pass",
    "in a with that sleeps": f"with suppressing(): {SLEEPS}",
    "in a loop of its own": "ready(); asyncio.run(asyncio.sleep(60))",
}
HANDLERS = {
    name: f"@register_hook('intercept_tool_call')\ndef slow(tool_name):\n    {body}\n"
    for name, body in BODIES.items()
} | {
    "a guard in its thread": (
        "@register_hook('intercept_tool_call', guard=True, timeout=60)\n"
        f"def slow(tool_name):\n    {SLEEPS}\n"
    ),
    "an async handler": (
        "@register_hook('intercept_tool_call')\n"
        "async def slow(tool_name):\n    ready(); await asyncio.sleep(60)\n"
    ),
    "an async handler that blocks": (
        f"@register_hook('intercept_tool_call')\nasync def slow(tool_name):\n    {SLEEPS}\n"
    ),
    "a host with a signal handler": (
        "def stop(number, frame):\n    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, stop)\n"
        f"@register_hook('intercept_tool_call')\ndef slow(tool_name):\n    {SLEEPS}\n"
    ),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_a_real_one_comes_through(name: str) -> None:
    """Sent by another process while a handler is at work in the main thread."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD).format(handler=HANDLERS[name])],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        said = child.stdout.readline()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert said == "interrupted\n"


def test_one_without_a_traceback_is_not_typed() -> None:
    assert typed(KeyboardInterrupt()) is None
