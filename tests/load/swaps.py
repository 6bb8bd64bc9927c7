"""Handlers exchanged under threads that call them: each call sees one generation of them, whole.

    python -m tests.load.swaps --swaps 1000000 [--json]

Generation n has four handlers that each add n to a list, and a guard that lets only lists of n
through. The threads look at each verdict; some call tools by ever new names, so that the compiled
chains that are kept are thrown away under all of them too.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen
from tests.chains import handler
from tests.load.figures import show

from hermes_ext import HookResult, Runtime, Turn
from hermes_ext.chain.manager import HookManager
from hermes_ext.hooks.handler import Handler
from hermes_ext.rules import Rules

ADDING = 4
GENERATIONS = 32


@frozen
class Figures:
    """A run. generations: how many different ones the calls have met."""

    swaps: int
    threads: int
    calls: int
    seconds: float
    generations: int
    torn: tuple[str, ...]


def generation(number: int) -> list[Handler]:
    """The handlers of one generation."""

    def add(tool_args: dict[str, Any]) -> Any:
        return HookResult.rewrite({"seen": [*tool_args["seen"], number]})

    def judge(tool_args: dict[str, Any]) -> Any:
        if tool_args["seen"] != [number] * ADDING:
            return HookResult.block(f"generation {number} judges {tool_args['seen']}")
        return None

    adding = [handler(add, extension=f"adds-{place}") for place in range(ADDING)]
    return [*adding, handler(judge, extension="judge", guard=True, timeout=0)]


class _Caller:
    """A thread's calls. fresh: each under another tool's name."""

    turn: Turn

    def __init__(self, runtime: Runtime, name: str, fresh: bool, over: threading.Event) -> None:
        self.calls = 0
        self.seen: set[int] = set()
        self.torn: list[str] = []
        self.called = threading.Event()
        self._runtime = runtime
        self._name = name
        self._fresh = fresh
        self._over = over

    def run(self) -> None:
        with self._runtime.turn(session_id=self._name) as turn:
            self.turn = turn
            over = False
            while not over:
                over = self._over.is_set()
                self.call(turn)
                self.called.set()

    def call(self, turn: Turn) -> None:
        tool = f"{self._name}-{self.calls}" if self._fresh else "terminal"
        outcome = turn.intercept_tool_call(tool, {"seen": []})
        self.calls += 1
        seen = outcome.final({}).get("seen") or ["nothing"]
        if outcome.blocked or len(seen) != ADDING or len(set(seen)) != 1:
            self.torn.append(f"{seen}: {outcome.message}")
        self.seen.add(seen[0])


def run(swaps: int, threads: int = 8) -> Figures:
    """So many swaps while the threads call, each at least once before them and once after."""
    made: Sequence[list[Handler]] = [generation(number) for number in range(GENERATIONS)]
    runtime = Runtime(made[0])
    manager = runtime.manager
    over = threading.Event()
    callers = [_Caller(runtime, f"s{n}", n % 4 == 3, over) for n in range(threads)]
    running = [threading.Thread(target=caller.run) for caller in callers]
    begun = time.monotonic()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads take turns in the middle of things
    try:
        for thread in running:
            thread.start()
        for caller in callers:
            assert caller.called.wait(120)
        for number in range(1, swaps + 1):
            manager = HookManager(made[number % GENERATIONS], manager)
            for caller in callers:  # which else would keep what their turns began with
                caller.turn.rules = Rules(manager)
    finally:
        over.set()
        for thread in running:
            thread.join()
        sys.setswitchinterval(interval)
    return Figures(
        swaps,
        threads,
        sum(caller.calls for caller in callers),
        round(time.monotonic() - begun, 1),
        len(set().union(*(caller.seen for caller in callers))),
        tuple(text for caller in callers for text in caller.torn)[:20],
    )


def main() -> int:
    """Print the figures; 1 if a call was torn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--swaps", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    asked = parser.parse_args()
    figures = run(asked.swaps, asked.threads)
    show(asdict(figures), as_json=asked.json)
    return 1 if figures.torn else 0


if __name__ == "__main__":
    sys.exit(main())
