"""A handler without a limit that takes long is named, once for each call."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hermes_ext import Runtime, get_turn_state, register_hook
from hermes_ext.turns.slow import Watchdog, watchdog

LONG = 60.0


class Stage:
    """A call whose handler waits, and what is reported of it."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Semaphore(0), threading.Event()
        self.lines: list[str] = []

    def wait(self) -> None:
        self.entered.release()
        assert self.go.wait(LONG)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.go.set()


def inline(stage: Stage, **options: Any) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", **options)
    def slow(tool_name):
        stage.wait()

    return slow


def awaited(stage: Stage, **options: Any) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", **options)
    async def slow(tool_name):
        stage.entered.release()
        while not stage.go.is_set():
            await asyncio.sleep(0.01)

    return slow


def blocking(stage: Stage, **options: Any) -> Callable[..., Any]:
    @register_hook("intercept_tool_call", **options)
    async def slow(tool_name):
        stage.wait()

    return slow


@register_hook("intercept_tool_call", priority=1)
def before(tool_name):
    return None


@pytest.mark.parametrize("others", [1, 40], ids=["few", "many"])
@pytest.mark.parametrize("host", ["sync", "async"])
@pytest.mark.parametrize("made", [inline, awaited, blocking])
def test_it_is_named_once(
    made: Callable[[Stage], Any], host: str, others: int, stage: Stage, caplog: Any
) -> None:
    """With file, line, hook and seconds; in the log, and by the host, in its turn."""
    runtime = Runtime([*[before] * others, made(stage)])
    runtime.on_slow = lambda line: stage.lines.append(f"{get_turn_state()['mark']}: {line}")
    dog = Watchdog(after=10, every=LONG)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(1) as pool:
        turn.state["mark"] = "here"
        if host == "sync":
            call = pool.submit(turn.intercept_tool_call, "t", {})
        else:
            call = pool.submit(asyncio.run, turn.aintercept_tool_call("t", {}))
        assert stage.entered.acquire(timeout=LONG)
        with caplog.at_level(logging.WARNING, "hermes_ext"):
            for now in (0, 5, 9.9):
                dog.look(now)
            assert stage.lines == []
            for now in (10.5, 11, 30):
                dog.look(now)
        stage.go.set()
        assert not call.result(LONG).blocked
    (line,) = stage.lines
    assert line.startswith("here: test_slow_handlers/slow (")
    assert "test_slow_handlers.py:" in line
    assert "on intercept_tool_call has been running for 10 s" in line
    assert "timeout=" in line
    assert line.removeprefix("here: ") in [record.message for record in caplog.records]


def test_each_call_is_one(stage: Stage) -> None:
    """Two calls at once are two, and those of a chain's other handlers are others."""
    runtime = Runtime([before, inline(stage)])
    runtime.on_slow = stage.lines.append
    dog = Watchdog(after=10, every=LONG)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(turn.intercept_tool_call, "t", {}) for _ in range(2)]
        for _ in calls:
            assert stage.entered.acquire(timeout=LONG)
        dog.look(0)
        dog.look(11)
        assert len(stage.lines) == 2
        stage.go.set()
        assert not any(call.result(LONG).blocked for call in calls)
        dog.look(12)
        dog.look(30)
    assert len(stage.lines) == 2


def test_a_chain_of_short_ones_is_not_slow(stage: Stage) -> None:
    """Each handler has its own time."""
    runtime = Runtime([inline(stage, priority=1), inline(stage, priority=2)])
    runtime.on_slow = stage.lines.append
    dog = Watchdog(after=10, every=LONG)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(1) as pool:
        call = pool.submit(turn.intercept_tool_call, "t", {})
        assert stage.entered.acquire(timeout=LONG)
        dog.look(0)
        dog.look(8)
        stage.go.set()
        assert stage.entered.acquire(timeout=LONG)
        call.result(LONG)
        dog.look(16)
    assert stage.lines == []


def test_one_with_a_limit_is_not_named(stage: Stage) -> None:
    """It has its own end."""
    runtime = Runtime([inline(stage, timeout=LONG)])
    runtime.on_slow = stage.lines.append
    dog = Watchdog(after=10, every=LONG)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(1) as pool:
        call = pool.submit(turn.intercept_tool_call, "t", {})
        assert stage.entered.acquire(timeout=LONG)
        dog.look(0)
        dog.look(100)
        stage.go.set()
        assert not call.result(LONG).blocked
    assert stage.lines == []


def test_it_looks_by_itself(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a turn is open, in one thread for the process."""
    monkeypatch.setattr(watchdog, "after", 0.02)
    monkeypatch.setattr(watchdog, "every", 0.01)
    said = threading.Event()

    def listen(line: str) -> None:
        stage.lines.append(line)
        said.set()

    def watching() -> int:
        return [one.name for one in threading.enumerate()].count("hermes-ext-watchdog")

    runtime = Runtime([inline(stage)])
    runtime.on_slow = listen
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(1) as pool:
        call = pool.submit(turn.intercept_tool_call, "t", {})
        assert said.wait(LONG)
        stage.go.set()
        assert not call.result(LONG).blocked
        there = watching()
        with runtime.turn(session_id="other"):
            assert watching() == there
    assert len(stage.lines) == 1


def test_between_two_looks_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking costs as much as there are threads: not more often than `every`."""
    looked = queue.SimpleQueue[float]()
    monkeypatch.setattr(watchdog, "every", 0.05)
    monkeypatch.setattr(watchdog, "look", looked.put)
    with Runtime([before]).turn(session_id="s"):
        first, second, third = (looked.get(timeout=LONG) for _ in range(3))
    assert second - first >= 0.05
    assert third - second >= 0.05


def test_a_listener_that_fails_changes_nothing(stage: Stage) -> None:
    def fail(line: str) -> None:
        raise ValueError

    runtime = Runtime([inline(stage)])
    runtime.on_slow = fail
    dog = Watchdog(after=10, every=LONG)
    with runtime.turn(session_id="s") as turn, ThreadPoolExecutor(1) as pool:
        call = pool.submit(turn.intercept_tool_call, "t", {})
        assert stage.entered.acquire(timeout=LONG)
        dog.look(0)
        dog.look(11)
        stage.go.set()
        assert not call.result(LONG).blocked


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "no terminal"])
def test_hermes_shows_it_where_somebody_looks(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, and not in what a program reads."""
    from hermes_ext.hosts.hermes.adapter.person import notices

    read, write = os.openpty() if terminal else os.pipe()
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "__stderr__", stream)
        notices.slow("it takes long")
        print("end", file=stream, flush=True)
    said = os.read(read, 1000).decode()
    os.close(read)
    assert ("hermes-ext: it takes long" in said) is terminal
