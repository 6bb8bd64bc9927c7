"""Handlers that call tools, or start agents, whose handlers call again, and so on."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.chain.calls import DEEPEST
from hermes_ext.runtime import Turn

LONG = 60.0

Way = Callable[[Callable[[], Any]], Any]


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, call).result(LONG)


def in_a_loop(call: Callable[[], Any]) -> Any:
    async def main() -> Any:
        return call()

    return in_a_thread(lambda: asyncio.run(main()))


def to_thread(call: Callable[[], Any]) -> Any:
    return in_a_thread(lambda: asyncio.run(asyncio.to_thread(call)))


def in_a_raw_thread(call: Callable[[], Any]) -> Any:
    """One that knows nothing of who has started it."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join(LONG)
    return found[0]


def in_a_raw_pool(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(LONG)


WAYS: dict[str, Way] = {
    "a raw thread": in_a_raw_thread,
    "a raw pool": in_a_raw_pool,
    "itself": lambda call: call(),
    "a thread": in_a_thread,
    "a loop": in_a_loop,
    "to_thread": to_thread,
}


@pytest.fixture
def seen() -> list[Any]:
    """The outcomes of the calls that handlers make, from the inside out."""
    return []


def calling_again(seen: list[Any], way: Way, **options: Any) -> tuple[Any, list[Turn]]:
    turns: list[Turn] = []

    @register_hook("intercept_tool_call", **options)
    def again(tool_args):
        outcome = way(lambda: turns[0].intercept_tool_call("terminal", {"command": "ls"}))
        seen.append(outcome)

    return again, turns


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "options", [{}, {"timeout": LONG}, {"guard": True}], ids=["inline", "limited", "guard"]
)
def test_calls_are_refused_beyond_three(seen: list[Any], way: Way, options: dict[str, Any]) -> None:
    """However the handler calls, and in whatever thread it runs: it names the handler."""
    again, turns = calling_again(seen, way, **options)
    with Runtime([again]).turn(session_id="s") as turn:
        turns.append(turn)
        before = threading.active_count()
        assert not turn.intercept_tool_call("terminal", {"command": "ls"}).blocked
        assert threading.active_count() <= before + DEEPEST + 3
    assert len(seen) == DEEPEST + 1
    refused, *others = seen
    assert not any(outcome.blocked for outcome in others)
    assert refused.blocked_by == "hermes-ext"
    assert "test_nested_calls/again" in refused.message
    assert "test_nested_calls.py:" in refused.message
    assert "at most 3 are allowed" in refused.message


@pytest.mark.parametrize("way", ["awaits", "blocks", "in a thread", "in an executor"])
@pytest.mark.parametrize("host", ["sync", "async"])
def test_async_handlers(seen: list[Any], way: str, host: str) -> None:
    """They are refused at the same depth, and none waits for a loop that waits for it."""

    @register_hook("intercept_tool_call")
    async def again(tool_args):
        if way == "awaits":
            outcome = await turn.aintercept_tool_call("terminal", {})
        elif way == "blocks":
            outcome = turn.intercept_tool_call("terminal", {})
        elif way == "in a thread":
            outcome = await asyncio.to_thread(turn.intercept_tool_call, "terminal", {})
        else:
            loop = asyncio.get_running_loop()
            outcome = await loop.run_in_executor(None, turn.intercept_tool_call, "terminal", {})
        seen.append(outcome.blocked)

    with Runtime([again]).turn(session_id="s") as turn:
        if host == "sync":
            outcome = turn.intercept_tool_call("terminal", {})
        else:
            outcome = asyncio.run(turn.aintercept_tool_call("terminal", {}))
    assert not outcome.blocked
    assert seen == [True, False, False, False]


@pytest.mark.parametrize(
    ("agent", "call"),
    [
        ("itself", "itself"),
        ("itself", "a raw thread"),
        ("a raw thread", "itself"),
        ("a raw pool", "itself"),
    ],
)
def test_agents_that_start_agents(seen: list[Any], agent: str, call: str) -> None:
    """Turns that a handler begins are counted too, whichever thread they or their calls are in."""

    @register_hook("transform_user_input")
    def start(user_message, session_id):
        def talk() -> None:
            with runtime.turn(session_id=session_id + "x") as turn:
                outcomes.append(WAYS[call](lambda: turn.transform_user_input(user_message)))

        seen.append(session_id)
        if len(seen) < 20:
            WAYS[agent](talk)

    outcomes: list[Any] = []
    runtime = Runtime([start])
    with runtime.turn(session_id="s") as turn:
        assert not turn.transform_user_input("hello").blocked
    assert seen == ["s", "sx", "sxx", "sxxx"]
    assert [outcome.blocked for outcome in outcomes] == [True, False, False, False]
    assert "test_nested_calls/start" in outcomes[0].message


@pytest.mark.parametrize("options", [{}, {"timeout": LONG}], ids=["inline", "limited"])
def test_what_the_threads_have_is_not_kept(options: dict[str, Any]) -> None:
    """Who waits for an agent is told from the stacks of the threads: no thread keeps a turn so."""
    at_hand, looked_at, let_go, over = (threading.Event() for _ in range(4))

    def bystander() -> None:
        turn = runtime.turn(session_id="mine 0")
        at_hand.set()
        looked_at.wait(LONG)
        turn.close()
        del turn
        let_go.set()
        over.wait(LONG)

    @register_hook("transform_user_input", **options)
    def start(user_message, session_id):
        if len(session_id) < 10:
            in_a_raw_thread(lambda: talk(session_id + "1"))

    def talk(session_id: str) -> None:
        with runtime.turn(session_id=session_id) as turn:
            turn.transform_user_input("hello")

    runtime = Runtime([start])
    thread = threading.Thread(target=bystander)
    thread.start()
    assert at_hand.wait(LONG)
    talk("mine 1")
    looked_at.set()
    assert let_go.wait(LONG)
    gc.collect()
    kept = [one for one in gc.get_objects() if isinstance(one, Turn)]
    assert not [turn for turn in kept if turn.session_id.startswith("mine")]
    over.set()
    thread.join(LONG)


def test_handlers_that_call_each_other(seen: list[Any]) -> None:
    """The text names both, and nobody else of their chains."""

    @register_hook("intercept_tool_call", tools=["ping"])
    def ping(tool_args):
        seen.append(turn.intercept_tool_call("pong", {}))

    @register_hook("intercept_tool_call", tools=["pong"])
    def pong(tool_args):
        seen.append(turn.intercept_tool_call("ping", {}))

    @register_hook("intercept_tool_call", priority=1)
    def bystander(tool_args):
        return None

    with Runtime([bystander, ping, pong]).turn(session_id="s") as turn:
        assert not turn.intercept_tool_call("ping", {}).blocked
    assert len(seen) == DEEPEST + 1
    assert "/ping (" in seen[0].message
    assert "/pong (" in seen[0].message
    assert "bystander" not in seen[0].message


def test_calls_within_the_bound_are_allowed() -> None:
    """A handler may use a tool, and one that is called again for it may too."""

    @register_hook("intercept_tool_call", tools=["a", "b", "c"])
    def use(tool_name):
        outcome = turn.intercept_tool_call(chr(ord(tool_name) + 1), {})
        return HookResult.answer(f"{tool_name}{outcome.as_tool_result() or ''}")

    with Runtime([use]).turn(session_id="s") as turn:
        for _ in range(3):
            assert turn.intercept_tool_call("a", {}).value == "abc"


def test_parallel_calls_are_not_inside_each_other() -> None:
    """Neither in threads nor in tasks, with and without the caller's context."""
    together = threading.Barrier(8)

    @register_hook("intercept_tool_call", tools=["meet"])
    def meet(tool_name):
        together.wait(LONG)

    @register_hook("intercept_tool_call", tools=["later"])
    async def later(tool_name):
        await asyncio.sleep(0.01)

    with Runtime([meet, later]).turn(session_id="s") as turn, ThreadPoolExecutor(8) as pool:
        context = contextvars.copy_context()
        for submit in (pool.submit, lambda *job: pool.submit(context.copy().run, *job)):
            calls = [submit(turn.intercept_tool_call, "meet", {"n": n}) for n in range(8)]
            assert not any(call.result(LONG).blocked for call in calls)

        async def all_of_them() -> list[Any]:
            calls = (turn.aintercept_tool_call("later", {"n": n}) for n in range(20))
            return await asyncio.gather(*calls)

        assert not any(outcome.blocked for outcome in asyncio.run(all_of_them()))


def test_a_call_after_a_handler_is_not_inside_it() -> None:
    """What a handler left running counts as inside; what comes after its return does not."""

    @register_hook("intercept_tool_call")
    def once(tool_args):
        return None

    with Runtime([once]).turn(session_id="s") as turn:
        for _ in range(3 * DEEPEST):
            assert not turn.intercept_tool_call("terminal", {}).blocked
