"""Many turns through `Runtime`, and what is left of them: nothing.

    python -m tests.load.soak --turns 100000 [--json]

Sync and async turns mixed, in several threads; handlers pass, rewrite, block, answer, ask, raise,
return what they may not, are cancelled or come too late, and write turn and session state; turns
end in all the ways there are. Between batches memory is measured when all is quiet: what grows
with the turns shows as a slope, what is merely there does not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path

from attrs import asdict, frozen
from tests.load.figures import show

from hermes_ext import Runtime
from hermes_ext.chain.timeouts import LEFT_IN_ALL, workers
from hermes_ext.runtime import Turn
from hermes_ext.turns import session_state
from hermes_ext.turns.state import open_turn_count

EXTENSION = """\
import asyncio
import threading

from hermes_ext import HookResult, get_session_state, get_turn_state, register_hook


class Odd(Exception):
    pass


@register_hook("transform_user_input")
def read(user_message, session_id, state, session_state):
    state["said"] = user_message
    session_state["last"] = [user_message]
    session_state.count("turns")
    if "forbidden" in user_message:
        return HookResult.block("not that")
    if "ping" in user_message:
        return HookResult.answer("pong")
    return HookResult.rewrite(user_message + " please")


@register_hook("before_llm_call")
def inject(state):
    return HookResult.inject_system("Said: " + state["said"], keep="turn")


@register_hook("before_llm_call", on_error="pass")
async def remind(messages):
    await asyncio.sleep(0)
    return HookResult.inject_user(f"{len(messages)} so far")


@register_hook("intercept_tool_call")
def call(tool_name, tool_args, session_id, state):
    assert get_turn_state() is state
    state.count("calls")
    state.setdefault("names", []).append(tool_name)
    if tool_name == "rewrite":
        return HookResult.rewrite({**tool_args, "more": "x" * 500})
    if tool_name == "answer":
        return HookResult.answer("made up")
    if tool_name == "ask":
        return HookResult.ask("sure?", key=session_id)
    if tool_name == "raise":
        raise Odd(session_id)
    if tool_name == "exit":
        raise SystemExit(session_id)
    if tool_name == "invalid":
        return {"action": "block"}


@register_hook("intercept_tool_call", tools=["late"], timeout=0.01)
def late(session_id):
    threading.Event().wait(1)


@register_hook("intercept_tool_call", tools=["async-late"], timeout=0.01)
async def async_late(session_id):
    await asyncio.sleep(1)


@register_hook("intercept_tool_call", tools=["cancelled"])
async def cancelled(session_id):
    raise asyncio.CancelledError


@register_hook("intercept_tool_call", guard=True)
def judge(tool_name, tool_args, state):
    get_session_state()["judged"] = tool_args
    return HookResult.block(f"no, {tool_args['text']}") if tool_name == "block" else None


@register_hook("intercept_tool_call", guard=True, tools=["async-block"])
async def judge_later(tool_args):
    await asyncio.sleep(0)
    return HookResult.block("no")


@register_hook("transform_tool_result")
def result(result, state):
    return HookResult.rewrite(result.upper())
"""

BLOCKED = (
    *("block", "raise", "exit", "invalid", "late", "async-late", "cancelled", "async-block"),
)
TOOLS = ("pass", "rewrite", "answer", "ask", *BLOCKED)
RARE = frozenset({"late", "async-late"})  # they cost time
THREADS = 4
TASKS = 16
CONVERSATIONS = 100
MEASUREMENTS = 10


@frozen
class Left:
    """What is there at a quiet moment.

    Attributes:
        turns: how many were done.
        blocks: memory blocks that Python has allocated.
        bytes: resident memory; 0 where the system does not tell.
        threads, descriptors: how many.
    """

    turns: int
    blocks: int
    bytes: int
    threads: int
    descriptors: int


@frozen
class Figures:
    """A run.

    Attributes:
        blocks_per_turn, bytes_per_turn: the slope over the second half of the measurements.
        most_threads, most_descriptors: while turns were running.
        left: what is in maps that must be empty when all turns are over.
        wrong: verdicts that are not what the call's handlers said.
    """

    turns: int
    tool_calls: int
    seconds: float
    blocks_per_turn: float
    bytes_per_turn: float
    most_threads: int
    most_descriptors: int
    threads_before: int
    threads_after: int
    left: dict[str, int]
    wrong: tuple[str, ...]
    measured: tuple[Left, ...]


class Soak:
    """Turns of one runtime. home: an empty directory."""

    def __init__(self, home: Path) -> None:
        folder = home / "extensions" / "soak"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(EXTENSION)
        self.runtime = Runtime.from_config(
            home=home, cwd=home, approver=lambda request: "yes" in request.rule_key
        )
        assert [one.status for one in self.runtime.records if one.name == "soak"] == ["enabled"]
        self.done = 0
        self.calls = 0
        self.wrong: list[str] = []
        self.most: Counter[str] = Counter()

    # -- turns ------------------------------------------------------------------------------

    def batch(self, turns: int) -> None:
        """So many turns, half of them sync and half async."""
        numbers = range(self.done, self.done + turns)
        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(self._sync, number) for number in numbers[::2]]
            asyncio.run(self._async_all(numbers[1::2]))
            for each in running:
                each.result()
        self.done += turns

    def _turn(self, number: int) -> Turn:
        yes = "yes" if number % 4 < 2 else "no"
        return self.runtime.turn(
            session_id=f"{yes}-{number}",
            conversation_id=f"c{number % CONVERSATIONS}",
            task_id=f"task-{number}",
            platform="cli",
        )

    def _sync(self, number: int) -> None:
        turn = self._turn(number)
        if number % 10 == 2:  # closed in another context, or by an error
            self._sync_calls(turn, number)
            turn.close()
            return
        with contextlib.suppress(KeyError), turn:
            turn.bind(session_id=f"{turn.session_id}-compressed", turn_id=f"host-{number}")
            self._sync_calls(turn, number)
            if number % 10 == 4:
                raise KeyError(number)
        if number % 50 == 0:
            self._look()

    def _sync_calls(self, turn: Turn, number: int) -> None:
        said = _said(number)
        self._check(said, turn.transform_user_input(said).action)
        if number % 5 == 0:
            messages = [{"role": "user", "content": said}]
            for count in (1, 2):
                outcome = turn.before_llm_call(messages, "You help.", api_call_count=count)
                turn.apply(outcome, messages, "You help.")
        tools = _tools(number)
        if number % 6 == 0:
            contexts = [copy_context() for _ in tools]
            threads = [
                threading.Thread(target=context.run, args=(self._one, turn, tool))
                for context, tool in zip(contexts, tools, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        else:
            for tool in tools:
                self._one(turn, tool)
        if turn.state["calls"] != len(tools):
            self.wrong.append(f"{number}: {dict(turn.state)}")

    def _one(self, turn: Turn, tool: str) -> None:
        args = {"text": tool, "n": 1}
        self._check(tool, turn.intercept_tool_call(tool, args).action, turn)
        turn.transform_tool_result(tool, args, "result")

    async def _async_all(self, numbers: Sequence[int]) -> None:
        free = asyncio.Semaphore(TASKS)

        async def one(number: int) -> None:
            async with free:
                turn = asyncio.create_task(self._async(number))
                if number % 20 == 7:  # a turn that is interrupted
                    await asyncio.sleep(0)
                    turn.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await turn

        await asyncio.gather(*map(one, numbers))

    async def _async(self, number: int) -> None:
        async with self._turn(number) as turn:
            said = _said(number)
            self._check(said, (await turn.atransform_user_input(said)).action)
            if number % 5 == 0:
                await turn.abefore_llm_call([{"role": "user", "content": said}], "You help.")
            tools = _tools(number)
            await asyncio.gather(*(self._aone(turn, tool) for tool in tools))
            if turn.state["calls"] != len(tools):
                self.wrong.append(f"{number}: {dict(turn.state)}")

    async def _aone(self, turn: Turn, tool: str) -> None:
        args = {"text": tool, "n": 1}
        self._check(tool, (await turn.aintercept_tool_call(tool, args)).action, turn)
        await turn.atransform_tool_result(tool, args, "result")

    def _check(self, asked: str, action: str, turn: Turn | None = None) -> None:
        self.calls += turn is not None
        expected = _EXPECTED.get(asked, "rewrite" if turn is None else "pass")
        if asked == "ask":
            assert turn is not None
            expected = "pass" if turn.session_id.startswith("yes") else "block"
        if action != expected:
            self.wrong.append(f"{asked}: {action}")

    # -- measuring --------------------------------------------------------------------------

    def _look(self) -> None:
        self.most["threads"] = max(self.most["threads"], threading.active_count())
        self.most["descriptors"] = max(self.most["descriptors"], _descriptors())

    def quiet(self) -> Left:
        """Wait until nothing of the turns is running any more, and measure."""
        deadline = time.monotonic() + 60
        while workers.left_behind and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        assert self.runtime.log is not None
        assert self.runtime.log.flush(60)
        for _ in range(3):
            gc.collect()
        return Left(
            self.done,
            sys.getallocatedblocks(),
            _resident(),
            threading.active_count(),
            _descriptors(),
        )

    def left(self) -> dict[str, int]:
        """What is in the maps that hold something for open turns and for running handlers."""
        log = self.runtime.log
        assert log is not None
        return {
            "open turns": open_turn_count(),
            "locks of session state": len(session_state._locks),
            "log lines that wait": len(log._queue) + log._lost,
            "calls left behind": workers.left_behind,
            "chains beyond the tools'": max(0, len(self.runtime.manager.chains) - len(TOOLS) * 3),
        }


_EXPECTED = {
    **dict.fromkeys(BLOCKED, "block"),
    "rewrite": "rewrite",
    "answer": "answer",
    "forbidden": "block",
    "ping": "answer",
}


def _said(number: int) -> str:
    return {0: "forbidden", 1: "ping"}.get(number % 13, f"go on {number}")


def _tools(number: int) -> list[str]:
    chosen = [TOOLS[(number * 3 + step) % len(TOOLS)] for step in range(4)]
    return [tool for tool in chosen if tool not in RARE or number % 40 < 2] or ["pass"]


def _descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _slope(measured: Sequence[Left], what: str) -> float:
    """Growth per turn over the second half: in the first caches fill and pools grow."""
    half = measured[len(measured) // 2 :]
    turns = [float(one.turns) for one in half]
    return statistics.linear_regression(turns, [float(getattr(one, what)) for one in half]).slope


def run(home: Path, turns: int, measurements: int = MEASUREMENTS) -> Figures:
    """So many turns of a runtime in an empty home."""
    logging.getLogger("hermes_ext").setLevel(logging.CRITICAL)  # thousands of failures, as wanted
    before = threading.active_count()
    soak = Soak(home)
    begun = time.monotonic()
    measured = []
    steps = [turns * step // measurements for step in range(measurements + 1)]
    for first, last in pairwise(steps):
        while soak.done < last:
            soak.batch(min(1000, last - first, last - soak.done))
        measured.append(soak.quiet())
    seconds = time.monotonic() - begun
    left = soak.left()
    soak.runtime.close()
    return Figures(
        soak.done,
        soak.calls,
        round(seconds, 1),
        round(_slope(measured, "blocks"), 4),
        round(_slope(measured, "bytes"), 2),
        soak.most["threads"],
        soak.most["descriptors"],
        before,
        measured[-1].threads,
        left,
        tuple(soak.wrong[:20]),
        tuple(measured),
    )


def most_threads(before: int) -> int:
    """How many threads there may be at most: the turns' own, and those that we bound."""
    asyncios = min(32, (os.cpu_count() or 1) + 4)
    in_turns = THREADS * 5 + asyncios
    return before + in_turns + LEFT_IN_ALL + 2 * TASKS + 8 + 8


def main() -> int:
    """Print the figures; 1 if anything is left or a verdict is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        figures = run(Path(home), asked.turns)
    show(asdict(figures), as_json=asked.json)
    return 1 if figures.wrong or any(figures.left.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
