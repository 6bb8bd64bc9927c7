"""Where threads are started: in one pool, but for the places that have a reason."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

from hermes_ext.chain.threads import Lane

SOURCE = Path(__file__).parents[1] / "src" / "hermes_ext"

_STARTS = {"Thread", "ThreadPoolExecutor", "Timer", "to_thread", "run_in_executor"}

POOL = "the pool itself"
EXECUTOR = "asyncio takes nothing but a ThreadPoolExecutor for the executor of a loop"
BLOCK = "they end with the block that starts them, which waits for them"
HOST = "a question belongs to the host's loop, which has threads for what would hold it up"
DISK = "the host's loop goes on while the disk is looked at for a confinement"
END = "it ends the process, whatever state the package is in"

PLACES = {
    "chain.aio": EXECUTOR,
    "chain.threads": POOL,
    "cli._patience": f"{BLOCK}; and printing imports no chain",
    "hosts.hermes.canary.trial": BLOCK,
    "hosts.hermes.canary.watch": END,
    "testing._extension": BLOCK,
    "testing.model_server.server": BLOCK,
    "turns.approval": HOST,
    "turns.turn": DISK,
}


def _starts(node: ast.AST) -> bool:
    """Whether this makes threads: a call, or a class that is made from one which does."""
    if isinstance(node, ast.ClassDef):
        return any(_name(base) in _STARTS for base in node.bases)
    return isinstance(node, ast.Call) and _name(node.func) in _STARTS


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_threads_come_from_the_pool() -> None:
    """The other places that start one have a reason, and the list of them is not stale."""
    found = {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for file in SOURCE.rglob("*.py")
        if any(map(_starts, ast.walk(ast.parse(file.read_text(encoding="utf-8")))))
    }
    assert found == PLACES.keys()


class TestLane:
    """Calls that wait for each other."""

    def test_so_many_at_a_time(self) -> None:
        """The third of two at a time waits until one has ended."""
        lane, gate, begun = Lane("lane", 2), threading.Event(), threading.Semaphore(0)

        def call() -> None:
            begun.release()
            assert gate.wait(60)

        futures = [lane.submit(call) for _ in range(3)]
        assert begun.acquire(timeout=60)
        assert begun.acquire(timeout=60)
        assert [each.running() for each in futures] == [True, True, False]
        gate.set()
        assert [each.result(60) for each in futures] == [None] * 3

    def test_what_a_call_raises_is_its_result(self) -> None:
        """The lane goes on with the next one."""
        lane = Lane("lane", 1)
        with pytest.raises(ZeroDivisionError):
            lane.submit(lambda: 1 // 0).result(60)
        assert lane.submit(lambda: "next").result(60) == "next"

    def test_no_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where none can be started the call is not taken, and the next may be."""
        lane = Lane("lane", 1)

        def make(name: str, call: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr("hermes_ext.chain.threads.threads.make", make)
            with pytest.raises(RuntimeError):
                lane.submit(lambda: "never")
        assert lane.submit(lambda: "made").result(60) == "made"
