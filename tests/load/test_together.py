"""No lock of ours is held while a handler or a tool runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import Runtime, register_hook

MANY = 32
LONG = 120.0  # what never comes to be waited for, unless a lock is held

Arrive = Callable[[], None]


def inline(arrive: Arrive, go: threading.Event) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", tools=["meet"])
    def meet(tool_name, state, session_state):
        arrive()
        assert go.wait(LONG)

    return meet


def limited(arrive: Arrive, go: threading.Event) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", guard=True, timeout=LONG, tools=["meet"])
    def meet(tool_name, state, session_state):
        arrive()
        assert go.wait(LONG)

    return meet


def awaited(arrive: Arrive, go: threading.Event) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", tools=["meet"])
    async def meet(tool_name, state, session_state):
        arrive()
        while not go.is_set():
            await asyncio.sleep(0.01)

    return meet


@pytest.mark.parametrize("kind", [inline, limited, awaited])
def test_handlers_meet(tmp_path: Path, kind: Callable[..., Callable[..., Any]]) -> None:
    """Thirty-two calls of one turn are in their handler at once, and everything else goes on."""
    arrived, go = threading.Semaphore(0), threading.Event()

    @register_hook("intercept_tool_call", tools=["other"])
    def other(tool_name, state, session_state):
        state.count("others")
        session_state.count("others")

    runtime = Runtime([kind(arrived.release, go), other], home=tmp_path)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(MANY) as pool:
        try:
            calls = [pool.submit(turn.intercept_tool_call, "meet", {"n": n}) for n in range(MANY)]
            for _ in range(MANY):
                assert arrived.acquire(timeout=LONG)
            assert not turn.intercept_tool_call("other", {}).blocked
            assert (turn.state["others"], turn.state.count("mine")) == (1, 1)
            turn.bind(session_id="s2", turn_id="t2")
            with runtime.turn(session_id="another") as another:
                assert not another.intercept_tool_call("other", {}).blocked
        finally:
            go.set()
        assert not any(call.result().blocked for call in calls)
    runtime.close()


def test_tools_meet(tmp_path: Path) -> None:
    """Thirty-two tools wait for one another, between the call's hook and the result's."""

    @register_hook("intercept_tool_call", guard=True)
    def judge(tool_name, state):
        state.count("judged")

    @register_hook("transform_tool_result")
    def look(result, state):
        state.count("seen")

    runtime = Runtime([judge, look], home=tmp_path)
    everybody = threading.Barrier(MANY)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(MANY) as pool:

        def call(number: int) -> None:
            assert not turn.intercept_tool_call("meet", {"n": number}).blocked
            everybody.wait(LONG)
            turn.transform_tool_result("meet", {"n": number}, "met")

        list(pool.map(call, range(MANY)))
        assert (turn.state["judged"], turn.state["seen"]) == (MANY, MANY)
    runtime.close()
