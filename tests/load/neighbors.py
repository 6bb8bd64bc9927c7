"""Ten sessions of a real gateway at once, of which five have handlers that misbehave.

    python -m tests.load.neighbors --rounds 10 [--spin] [--json]

In every other round the five misbehave: their handlers block the event loop, raise what ends
programs, hang, hold locks for longer than their limit, and call their own tool without end. In the
rounds between, the same handlers pass. The five others are to have the same verdicts in both, and
about the same turn time. With `--spin` the five compute instead, in Python and in C with the
interpreter's lock held, which no limit can stop.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from tests.harness.home import Gateway, HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import plugin
from tests.load.figures import show
from tests.load.sessions import WIDE

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

GOOD = 5
FILES = 4
MOST_LEFT = 64
RATIO = 1.3
KINDS = ("blocks", "raises", "hangs", "holds", "recurses")
PATIENCE = 120.0

# What every session has: the rule that its verdicts come from, in turn state and in async guards.
RULES = """\
import asyncio
import json
import threading
from pathlib import Path

from hermes_ext import HookResult, register_hook
from hermes_ext.chain.timeouts import workers

lock = threading.Lock()


@register_hook("transform_user_input")
def learn(user_message, session_id, state):
    if user_message == "left":
        names = [thread.name for thread in threading.enumerate()]
        ours = sum(name.startswith("hermes-ext-") for name in names)
        return HookResult.answer(json.dumps([workers.left_behind, ours, len(names)]))
    state["name"] = session_id


@register_hook("before_llm_call")
async def remind(state, session_state):
    await asyncio.sleep(0)
    session_state.count("requests")
    return HookResult.inject_system("I am " + state["name"])


@register_hook("intercept_tool_call", guard=True)
def rule(tool_args, state, session_id):
    with state.lock:
        n = state.count("calls")
    if not session_id.startswith("good"):
        return None
    if state["name"] != session_id:
        return HookResult.block("CROSSED")
    if Path(tool_args["path"]).stem == "0":
        return HookResult.block("never the first of " + session_id)


@register_hook("intercept_tool_call", guard=True)
async def async_rule(tool_args, session_id):
    await asyncio.sleep(0)
    if session_id.startswith("good") and Path(tool_args["path"]).stem == "1":
        return HookResult.block("never the second of " + session_id)
"""

_TAKES_PART = """\
import asyncio
import re
import threading
import time

from hermes_ext import HookResult, register_hook

LIMIT = {limit}
released = threading.Event()


@register_hook("transform_user_input")
def learn(user_message, session_id, state):
    kind, _, act = user_message.partition(" ")
    if kind == "release":
        released.set()
        time.sleep(0.1)
        released.clear()
        return HookResult.answer("released")
    state["kind"] = kind if act.endswith("act") else ""


"""

MISBEHAVES = (
    _TAKES_PART
    + """\
@register_hook("intercept_tool_call", on_error="pass", timeout=LIMIT)
async def blocks(state):
    if state["kind"] == "blocks":
        released.wait(30)


@register_hook("before_llm_call")
async def blocks_without_a_limit(state):
    if state["kind"] == "blocks":
        time.sleep(LIMIT)


@register_hook("intercept_tool_call", on_error="pass")
def raises(state, tool_args):
    if state["kind"] == "raises":
        raise (KeyboardInterrupt, SystemExit, GeneratorExit)[len(tool_args["path"]) % 3]


@register_hook("transform_tool_result")
async def raises_too(state):
    if state["kind"] == "raises":
        raise KeyboardInterrupt


@register_hook("intercept_tool_call", guard=True, timeout=LIMIT)
def hangs(state):
    if state["kind"] == "hangs":
        released.wait(30)


@register_hook("intercept_tool_call", guard=True, timeout=LIMIT)
def holds(state, session_state):
    if state["kind"] == "holds":
        with state.lock, session_state.lock:
            released.wait(30)


@register_hook("intercept_tool_call")
def recurses(state, tool_name, tool_args):
    if state["kind"] == "recurses":
        from tools.registry import registry

        registry.dispatch(tool_name, tool_args)
"""
)

SPINS = (
    _TAKES_PART
    + """\
@register_hook("intercept_tool_call", guard=True)
def spins(state):
    if state["kind"] in ("blocks", "raises", "hangs"):
        end = time.monotonic() + 4 * LIMIT
        while time.monotonic() < end:
            pass


@register_hook("intercept_tool_call", guard=True)
def holds_the_interpreter(state):
    if state["kind"] in ("holds", "recurses"):
        re.match(r"(a|a)+$", "a" * {letters} + "b")
"""
)


@frozen
class Figures:
    """What was done; what went wrong: nothing, or texts that say it.

    Attributes:
        p95_beside_passing, p95_beside_misbehaving: seconds of a turn of the five others.
        ratio: the second by the first.
        most_left: calls that were left behind at once, of all sessions.
        threads_of_ours: threads of this package at the same moment.
        wrong: verdicts and answers that are not those expected.
    """

    rounds: int
    turns: int
    p95_beside_passing: float
    p95_beside_misbehaving: float
    ratio: float
    median_ratio: float
    most_left: int
    threads_of_ours: int
    seconds: float
    wrong: tuple[str, ...]


def _reply(request: ModelRequest) -> Reply:
    if request.messages[-1]["role"] == "tool":
        return Reply("Done.")
    _, round_, name, _ = request.last_user.split()
    calls = [
        ToolUse(
            "write_file", {"path": f"{name}/{round_}/{n}.txt", "content": name}, f"{round_}_{n}"
        )
        for n in range(FILES)
    ]
    return Reply(tool_calls=tuple(calls))


def run(base: Path, rounds: int, *, spin: bool = False, limit: float = 0.4) -> Figures:
    """Start Hermes below `base`, have all sessions work, and compare."""
    with ScriptedModel(_reply) as server:
        home = HermesHome(
            base / "hermes",
            server,
            start=warm_start,
            config={"gateway": {"api_server": {"max_concurrent_runs": 0}}},
        )
        home.extension("rules", RULES)
        source = SPINS if spin else MISBEHAVES
        home.extension(
            "misbehaves", source.replace("{limit}", str(limit)).replace("{letters}", "22")
        )
        plugin(home, "wide", WIDE)
        began = time.monotonic()
        with home.gateway(env={"DIRECTORIES": "{}"}) as gateway:
            stage = _Stage(gateway)
            stage.round(0, acting=False, counted=False)  # imports, and the first of everything
            for number in range(1, rounds + 1):
                for acting in (False, True) if number % 2 else (True, False):
                    stage.round(number, acting)
        seconds = time.monotonic() - began
        stage.wrong += _wrong_requests(server.main_requests, GOOD * (2 * rounds + 1))
    calm, beside = stage.took[False], stage.took[True]
    return Figures(
        rounds,
        len(calm) + len(beside),
        round(_p95(calm), 3),
        round(_p95(beside), 3),
        round(_p95(beside) / _p95(calm), 2),
        round(statistics.median(beside) / statistics.median(calm), 2),
        stage.most_left,
        stage.most_threads,
        round(seconds, 1),
        tuple(stage.wrong),
    )


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


class _Stage:
    """The people who talk to the gateway, and what they see."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.took: dict[bool, list[float]] = {False: [], True: []}
        self.wrong: list[str] = []
        self.most_left = self.most_threads = 0

    def round(self, number: int, acting: bool, counted: bool = True) -> None:
        """All ten say something at the same time."""
        act = "act" if acting else "pass"
        texts = [("good", f"good{n}", f"good {number}{act} good{n} pass") for n in range(GOOD)]
        texts += [(kind, f"bad-{kind}", f"{kind} {number}{act} bad-{kind} {act}") for kind in KINDS]
        with ThreadPoolExecutor(len(texts)) as people:
            answers = list(people.map(lambda each: self._say(*each), texts))
        if counted:
            self.took[acting] += [
                took for (kind, *_), took in zip(texts, answers, strict=True) if kind == "good"
            ]
        left, ours, _ = json.loads(self._gateway.ask("left", session="probe").text)
        self.most_left = max(self.most_left, left)
        self.most_threads = max(self.most_threads, ours)
        self._gateway.ask("release", session="probe")

    def _say(self, kind: str, session: str, text: str) -> float:
        began = time.monotonic()
        answer = self._gateway.ask(text, session=session, timeout=PATIENCE)
        took = time.monotonic() - began
        # A turn of the others may end in any way, but it ends.
        if kind == "good" and (answer.status, answer.text) != (200, "Done."):
            self.wrong.append(f"{session}, {text}: {answer}")
        return took


def _wrong_requests(requests: Sequence[ModelRequest], turns: int) -> list[str]:
    """Verdicts on the five others' calls that are not their own rule's, in any of the turns."""
    wrong, judged = [], 0
    for request in requests:
        kind, _, name, _ = request.last_user.split()
        if kind != "good":
            continue
        told = request.system.rpartition("\n")[2]
        if told != f"I am {name}":
            wrong.append(f"{name}: {told!r}")
        if request.messages[-1]["role"] == "tool":
            judged += 1
            results = [text for _, text in request.tool_results][-FILES:]
            if list(map(_verdict, results)) != _expected(name):
                wrong.append(f"{request.last_user}: {results}")
    return wrong if judged == turns else [*wrong, f"{judged} turns of {turns} have called tools"]


def _expected(name: str) -> list[str]:
    return [f"never the first of {name}", f"never the second of {name}", *["written"] * 2]


def _verdict(result: str) -> str:
    found: Any = json.loads(result)
    return str(found.get("error", "written")).partition("] ")[2] or "written"


def main() -> int:
    """Print the figures; 1 if a verdict is wrong, a bound is broken, or the others wait."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--spin", action="store_true", help="compute without end instead")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        figures = run(Path(base), asked.rounds, spin=asked.spin)
    show(asdict(figures), as_json=asked.json)
    late = figures.ratio > RATIO and not asked.spin
    return 1 if figures.wrong or figures.most_left > MOST_LEFT or late else 0


if __name__ == "__main__":
    sys.exit(main())
