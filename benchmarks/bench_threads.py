"""Tools that wait for something, in more and more threads, with ten handlers and without any.

    python benchmarks/bench_threads.py            # the table
    python benchmarks/bench_threads.py --check    # exit 1 where a bar is missed

Both are measured in short interleaved rounds; the best round of each counts.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from report import Report
from report import run as run_report

from hermes_ext import HookResult, Runtime, register_hook

THREADS = (1, 8, 32)
ROUNDS = 6
CALLS = 15
WAIT = 0.02
BAR = 0.9

Call = Callable[[socket.socket], None]


def handlers() -> list[Callable[..., Any]]:
    """Ten: they look, count, rewrite, judge in a thread of their own, and look at the result."""

    def look(tool_name: str, session_id: str) -> None:
        return None

    def tally(tool_name: str, state: Any) -> None:
        state.count(tool_name)

    def change(tool_args: dict[str, Any]) -> Any:
        return HookResult.rewrite({**tool_args, "more": 1})

    def judge(tool_args: dict[str, Any]) -> Any:
        return None if tool_args["more"] else HookResult.block("no")

    def shorten(result: str) -> Any:
        return HookResult.rewrite(result[:100])

    def looking() -> Callable[..., Any]:
        def one(tool_name: str, session_id: str) -> None:
            return look(tool_name, session_id)

        return one

    made = [looking() for _ in range(6)]
    for each in (*made, tally, change):
        register_hook("intercept_tool_call")(each)
    register_hook("intercept_tool_call", guard=True)(judge)
    register_hook("transform_tool_result")(shorten)
    return [*made, tally, change, judge, shorten]


def wait(end: socket.socket) -> str:
    """The tool: nobody answers, so it waits as long as it is ready to."""
    try:
        end.recv(1)
    except TimeoutError:
        return "nothing"
    raise AssertionError("somebody answered")


def judged_by(runtime: Runtime) -> Call:
    """The tool behind the hooks of a turn."""
    turn = runtime.turn(session_id="bench")

    def call(end: socket.socket) -> None:
        args = {"command": "ls"}
        outcome = turn.intercept_tool_call("terminal", args)
        assert not outcome.blocked
        turn.transform_tool_result("terminal", outcome.final(args), wait(end))

    return call


def plain(end: socket.socket) -> None:
    """The tool alone."""
    wait(end)


def throughput(call: Call, threads: int) -> float:
    """Calls per second of so many threads together."""
    together = threading.Barrier(threads + 1)

    def work() -> None:
        one, other = socket.socketpair()
        with one, other:
            one.settimeout(WAIT)
            together.wait()
            for _ in range(CALLS):
                call(one)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    together.wait()
    began = time.perf_counter()
    for thread in running:
        thread.join()
    return threads * CALLS / (time.perf_counter() - began)


def every(report: Report) -> None:
    """All of it."""
    ours = judged_by(Runtime(handlers()))
    print(f"a tool that waits for {WAIT * 1000:.0f} ms, with ten handlers")
    single = 0.0
    for threads in THREADS:
        best = {"with": 0.0, "without": 0.0}
        for _ in range(ROUNDS):
            best["with"] = max(best["with"], throughput(ours, threads))
            best["without"] = max(best["without"], throughput(plain, threads))
        single = single or best["with"]
        note = f"{best['with'] / single:.1f} times those of one thread"
        report.figure(f"{threads} threads", best["with"], "/s", 0, note)
        ratio = best["with"] / best["without"]
        report.bar(f"{threads} threads: with / without", ratio, BAR, at_least=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run_report(__doc__, arguments, every)


if __name__ == "__main__":
    sys.exit(main())
