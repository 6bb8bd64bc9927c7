"""Turns of several sessions and threads at once."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hermes_ext import HookResult, Runtime, get_turn_state, register_hook
from hermes_ext.turns.state import open_turn_count


@register_hook("transform_user_input")
def mark(user_message, state):
    state["mark"] = user_message


@register_hook("intercept_tool_call")
def count(tool_name, session_id, state):
    state.count("calls")
    assert state["mark"] == session_id
    assert get_turn_state() is state


@register_hook("intercept_tool_call", guard=True)
def repeat_limiter(tool_name, tool_args, state):
    if state.count(json.dumps([tool_name, tool_args], sort_keys=True)) > 2:
        return HookResult.block("You have tried that twice already.")
    return None


@pytest.mark.parametrize("way", ["raw", "pool", "to_thread"])
def test_threads_that_know_only_an_id(way: str) -> None:
    """Threads without any context find their own session's turn by the id that they were given."""
    sessions = ("one", "two")
    runtime = Runtime([mark])
    turns = [runtime.turn(session_id=name) for name in sessions]
    wrong: list[str] = []

    def work(name: str) -> None:
        for _ in range(500):
            state = get_turn_state(name)
            state.count("calls")
            if state["mark"] != name:
                wrong.append(name)

    try:
        for name, turn in zip(sessions, turns, strict=True):
            turn.transform_user_input(name)
        if way == "raw":
            threads = [threading.Thread(target=work, args=(name,)) for name in sessions * 8]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif way == "pool":
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(work, sessions * 8))
        else:

            async def all_of_them() -> None:
                await asyncio.gather(*[asyncio.to_thread(work, name) for name in sessions * 8])

            asyncio.run(all_of_them())
        assert wrong == []
        assert [turn.state["calls"] for turn in turns] == [4000, 4000]
    finally:
        for turn in turns:
            turn.close()


def test_parallel_calls_count_exactly() -> None:
    """Two thousand calls of eight threads in one turn are two thousand, also while it is read."""
    runtime = Runtime([mark, count])
    with runtime.turn(session_id="s") as turn:
        turn.transform_user_input("s")
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                dict(turn.state.items())
                list(turn.state)

        reader = threading.Thread(target=read)
        reader.start()

        def call(number: int) -> Any:
            with turn.state.lock:
                turn.state["n"] = turn.state.get("n", 0) + 1
            turn.state[f"key {number}"] = number
            return turn.intercept_tool_call("terminal", {"n": number})

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(call, range(2000)))
        done.set()
        reader.join()
        assert not any(outcome.blocked for outcome in outcomes)
        assert (turn.state["calls"], turn.state["n"]) == (2000, 2000)
    assert dict(turn.state) == {}


def test_repeat_limiter_over_twenty_concurrent_turns() -> None:
    """The third same call of a turn is blocked, in any order of keys; turns share nothing."""
    runtime = Runtime([mark, repeat_limiter])

    def session(name: str) -> list[list[bool]]:
        told = []
        for _ in range(5):
            with runtime.turn(session_id=name) as turn:
                turn.transform_user_input(name)
                calls = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2}]
                told.append([turn.intercept_tool_call("jot", args).blocked for args in calls])
        return told

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(session, [f"s{n % 10}" for n in range(20)]))
    assert results == [[[False, False, False, True]] * 5] * 20
    assert open_turn_count() == 0
