"""A lock that a handler holds when it runs out of time keeps nobody waiting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.chains import handler

from hermes_ext import HookResult, Runtime, get_session_state, get_turn_state, register_hook
from hermes_ext.chain.loans import SharedLock
from hermes_ext.turns.state import TurnState

SHORT = 0.05
LONG = 60.0  # what never comes to be waited for, unless a lock is held

KINDS = ["state", "session_state"]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What handlers wait for that are left behind, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def holder(kind: str, gate: threading.Event, way: str, written: threading.Event) -> Any:
    """A guard that is left behind with the lock, and writes when it goes on."""

    def hold(values: Any) -> None:
        with values.lock:
            values["before"] = 1
            values["list"] = [1]
            gate.wait(LONG)
            values["late"] = 1
            values.count("n")
            values.setdefault("more", 1)
            values["list"] = [*values["list"], 2]
        with values.lock, values.lock:
            values.update({"later": 1})
        written.set()

    options: dict[str, Any] = {"guard": True, "timeout": SHORT, "tools": ["hold"]}
    if way == "sync":

        @register_hook("intercept_tool_call", **options)
        def guard(state, session_state):
            hold(state if kind == "state" else session_state)

    elif way == "async, blocking":

        @register_hook("intercept_tool_call", **options)
        async def guard(state, session_state):  # type: ignore[no-redef]
            hold(state if kind == "state" else session_state)

    elif way == "async":

        @register_hook("intercept_tool_call", **options)
        async def guard(state, session_state):  # type: ignore[no-redef]
            values = state if kind == "state" else session_state
            with values.lock:
                values["before"] = 1
                while not gate.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.01)
                values["late"] = values["later"] = 1
            values.count("n")
            written.set()

    else:

        @register_hook("intercept_tool_call", **options)
        def guard():  # type: ignore[no-redef]
            hold(get_turn_state() if kind == "state" else get_session_state())

    return guard


def looker(kind: str, **options: Any) -> Any:
    @register_hook("intercept_tool_call", tools=["look"], **options)
    def look(state, session_state):
        values = state if kind == "state" else session_state
        with values.lock:
            values.count("looked")
            values.setdefault("set", 0)
        return HookResult.answer(json.dumps(dict(values)))

    return look


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["sync", "async", "async, blocking", "by function"])
@pytest.mark.parametrize("options", [{}, {"timeout": LONG}], ids=["inline", "limited"])
def test_the_turn_goes_on(
    kind: str,
    way: str,
    options: dict[str, Any],
    gate: threading.Event,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the values as they are, and a lock that works; what is written late is nowhere."""
    written = threading.Event()
    handlers = [holder(kind, gate, way, written), looker(kind, **options)]
    runtime = Runtime(handlers, home=tmp_path)
    with runtime.turn(session_id="s") as turn:
        with caplog.at_level(logging.WARNING, "hermes_ext"):
            assert turn.intercept_tool_call("hold", {}).blocked
        (line,) = [record.message.splitlines()[0] for record in caplog.records]
        assert "guard took longer than 0.05 s" in line
        assert f"still held {kind}.lock" in line
        seen = json.loads(turn.intercept_tool_call("look", {}).value)
        assert {"before": 1, "looked": 1}.items() <= seen.items()
        gate.set()
        assert written.wait(LONG)
        seen = json.loads(turn.intercept_tool_call("look", {}).value)
        assert seen["looked"] == 2
        assert not seen.keys() & {"late", "later", "n", "more"}
        assert seen.get("list", [1]) == [1]
    with runtime.turn(session_id="s") as turn:  # the conversation's next one
        seen = json.loads(turn.intercept_tool_call("look", {}).value)
        assert seen["looked"] == (1 if kind == "state" else 3)
        assert "late" not in seen
    runtime.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_turn_does_not_wait(kind: str, gate: threading.Event, tmp_path: Path) -> None:
    """Also where the turn that left the handler is over, and while it still holds its lock."""
    runtime = Runtime([holder(kind, gate, "sync", threading.Event()), looker(kind)], home=tmp_path)
    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("hold", {}).blocked
    with runtime.turn(session_id="s") as turn:
        assert json.loads(turn.intercept_tool_call("look", {}).value)["looked"] == 1
    runtime.close()


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_calls_go_on(kind: str, gate: threading.Event, tmp_path: Path) -> None:
    """Calls that wait for the lock get it when its holder is left, and none of them is lost."""
    entered = threading.Event()

    @register_hook("intercept_tool_call", guard=True, timeout=0.3, tools=["hold"])
    def hold(state, session_state):
        with (state if kind == "state" else session_state).lock:
            entered.set()
            gate.wait(LONG)

    @register_hook("intercept_tool_call", tools=["look"])
    def add(state, session_state):
        values = state if kind == "state" else session_state
        with values.lock:
            values["n"] = values.get("n", 0) + 1

    runtime = Runtime([hold, add], home=tmp_path)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(9) as pool:
        holding = pool.submit(turn.intercept_tool_call, "hold", {})
        assert entered.wait(LONG)
        calls = [pool.submit(turn.intercept_tool_call, "look", {}) for _ in range(40)]
        assert holding.result(LONG).blocked
        assert not any(call.result(LONG).blocked for call in calls)
        name = __name__.rpartition(".")[2]
        values = turn.state if kind == "state" else runtime.session_state("s", name)
        assert values["n"] == 40
    runtime.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"timeout": LONG}], ids=["inline", "limited"])
def test_a_lock_that_is_held_inside(
    kind: str, options: dict[str, Any], gate: threading.Event, tmp_path: Path
) -> None:
    """By a handler of a call that the one makes that is left behind."""
    written = threading.Event()

    @register_hook("intercept_tool_call", guard=True, timeout=0.2, tools=["outer"])
    def outer(state):
        assert get_turn_state() is state
        turn.intercept_tool_call("inner", {})
        written.set()

    @register_hook("intercept_tool_call", tools=["inner"], **options)
    def inner(state, session_state):
        assert get_turn_state() is state
        values = state if kind == "state" else session_state
        with values.lock:
            values["before"] = 1
            gate.wait(LONG)
            values["late"] = 1

    runtime = Runtime([outer, inner, looker(kind)], home=tmp_path)
    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("outer", {}).blocked
        seen = json.loads(turn.intercept_tool_call("look", {}).value)
        assert {"before": 1, "looked": 1}.items() <= seen.items()
        gate.set()
        assert written.wait(LONG)
        if not options:
            assert "late" not in json.loads(turn.intercept_tool_call("look", {}).value)
    runtime.close()


def test_a_lock_that_is_taken_after_the_limit_keeps_nobody_out(gate: threading.Event) -> None:
    """A handler that was left locks what is its own."""
    locked = threading.Event()

    @register_hook("intercept_tool_call", guard=True, timeout=SHORT, tools=["hold"])
    def hold(state):
        gate.wait(LONG)
        with state.lock:
            state.count("n")
            locked.set()
            threading.Event().wait(1)

    runtime = Runtime([hold, looker("state")])
    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("hold", {}).blocked
        gate.set()
        assert locked.wait(LONG)
        assert turn.state.lock.acquire(timeout=0)
        turn.state.lock.release()
        assert "n" not in turn.state


def test_a_turn_ends_while_its_lock_is_held() -> None:
    """By a handler without a limit, in another thread."""
    entered, go = threading.Event(), threading.Event()

    @register_hook("intercept_tool_call")
    def hold(state):
        with state.lock:
            entered.set()
            go.wait(LONG)

    turn = Runtime([hold]).turn(session_id="s")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(turn.intercept_tool_call, "hold", {})
        assert entered.wait(LONG)
        closing = threading.Thread(target=turn.close)
        closing.start()
        closing.join(LONG)
        assert not closing.is_alive()
        go.set()


async def test_in_an_async_host(gate: threading.Event) -> None:
    """The same where the calls are awaited, and where the caller is cancelled."""
    entered = threading.Event()

    @register_hook("intercept_tool_call", guard=True, timeout=0.2, tools=["hold"])
    def hold(state):
        with state.lock:
            entered.set()
            gate.wait(LONG)
            state["late"] = 1

    runtime = Runtime([hold, looker("state")])
    async with runtime.turn(session_id="s") as turn:
        assert (await turn.aintercept_tool_call("hold", {})).blocked
        assert not (await turn.aintercept_tool_call("look", {})).blocked
        entered.clear()
        task = asyncio.create_task(turn.aintercept_tool_call("hold", {}))
        await asyncio.to_thread(entered.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        outcome = await turn.aintercept_tool_call("look", {})
        assert json.loads(outcome.value)["looked"] == 2


def test_what_is_lent_is_the_state() -> None:
    """A handler with a limit has the turn's state for all that a dict can be used for."""
    seen: list[Any] = []

    @register_hook("intercept_tool_call", guard=True)
    def use(state, session_state):
        assert get_turn_state() is state
        assert isinstance(state, TurnState)
        assert (state == {"a": 1, "b": [2]}, state != {"a": 1}, state == {"a": 1}) == (
            *(True, True),
            False,
        )
        assert (len(state), bool(state), "a" in state, "c" in state) == (2, True, True, False)
        assert (state["a"], state.get("c", 3), [*state], list(reversed(state))) == (
            *(1, 3),
            ["a", "b"],
            ["b", "a"],
        )
        assert dict(state) == {**state} == state.copy() == {"a": 1, "b": [2]}
        assert json.loads(json.dumps(state)) == {"a": 1, "b": [2]}
        assert (state | {"x": 1}, {"x": 1} | state) == (
            {"a": 1, "b": [2], "x": 1},
            {"x": 1, "a": 1, "b": [2]},
        )
        assert repr(state) == "{'a': 1, 'b': [2]}"
        state |= {"c": 3}
        state["d"] = 4
        assert state.pop("c") == 3
        del state["d"]
        assert state.setdefault("e", 5) == 5
        assert state.popitem() == ("e", 5)
        state.update(f=6)
        assert state.count("n", 2) == 2
        seen.append(json.dumps(state.copy()))
        session_state["k"] = 1
        assert get_session_state()["k"] == 1
        with state.lock, session_state.lock:
            state.clear()
        assert json.dumps(state) == "{}"

    with Runtime([use]).turn(session_id="s") as turn:
        turn.state.update(a=1, b=[2])
        outcome = turn.intercept_tool_call("x", {})
        assert not outcome.blocked, outcome
        assert seen == ['{"a": 1, "b": [2], "f": 6, "n": 2}']
        assert dict(turn.state) == {}


def test_a_shared_lock_is_a_lock() -> None:
    """Re-entrant, with a limit, and released by its holder only."""
    lock, held, go = SharedLock(), threading.Event(), threading.Event()
    with lock, lock:
        pass
    with pytest.raises(RuntimeError):
        lock.release()

    def hold() -> None:
        with lock:
            held.set()
            go.wait(LONG)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(LONG)
    assert not lock.acquire(False)
    assert not lock.acquire(timeout=0.01)
    lock.replace()
    assert lock.acquire(timeout=LONG)
    lock.release()
    go.set()
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_lock_that_is_not_released_ends_with_its_call(
    kind: str, raises: bool, awaited: bool, tmp_path: Path
) -> None:
    """Whoever comes next, in whatever thread, does not wait for a call that is over."""

    def take(values: Any) -> None:
        values.lock.acquire()
        values.lock.acquire()
        values["taken"] = True
        if raises:
            raise ValueError

    def take_now(state, session_state):
        take(state if kind == "state" else session_state)

    async def take_in_a_loop(state, session_state):
        take_now(state, session_state)

    def look(state, session_state):
        values = state if kind == "state" else session_state
        free = values.lock.acquire(blocking=False)
        found.append((free, values.get("taken")))

    found: list[Any] = []
    taking = take_in_a_loop if awaited else take_now
    runtime = Runtime(
        [
            handler(taking, timeout=LONG, on_error="pass"),
            handler(look),
        ],
        home=tmp_path,
    )
    with runtime.turn(session_id="s") as turn:
        assert not turn.intercept_tool_call("terminal", {}).blocked
    runtime.close()
    assert found == [(True, True)]
