"""What the real Hermes costs with extensions: one tool call's hooks, and whole turns.

    python benchmarks/bench_hermes.py            # the figures
    python benchmarks/bench_hermes.py --check    # exit 1 where a bar is missed

Needs `hermes-agent` in the same environment. It works in a scratch home, against a model server on
loopback that plays a script. What a turn with ten extensions that pass takes is compared with what
is left of it without our own time, see `own_time`.

A session is idle when its turn has ended and its agent is still there. What it keeps is measured
twice: by `tracemalloc` with many sessions of a runtime alone; and in Hermes, where all sorts of
memory come and go, as the size of this package's objects and of what they hold themselves.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
import types
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from own_time import OwnTime
from report import Report, run

from hermes_ext import Runtime, register_hook
from hermes_ext.testing import Reply, ScriptedModel, ToolUse
from hermes_ext.turns.state import open_turn_count

TURNS = 40
EXTENSIONS = 10
SHARE_BARS = {0: 0.3, EXTENSIONS: 1.0}  # percent of a turn without us
IDLE_BAR = 130.0
SESSIONS = 20
ROUNDS = 15


def passing(number: int) -> list[Callable[..., Any]]:
    """One extension that has an opinion on nothing, on all four hooks."""

    @register_hook("transform_user_input", priority=number)
    def text(user_message: str) -> None:
        return None

    @register_hook("before_llm_call", priority=number)
    def request(api_call_count: int) -> None:
        return None

    @register_hook("intercept_tool_call", priority=number)
    def call(tool_name: str) -> None:
        return None

    @register_hook("transform_tool_result", priority=number)
    def result(tool_name: str) -> None:
        return None

    return [text, request, call, result]


def extensions(count: int = EXTENSIONS) -> Runtime:
    """A runtime of passing extensions."""
    return Runtime([hook for number in range(count) for hook in passing(number)])


def scratch_home(folder: Path, model: ScriptedModel) -> None:
    """A Hermes home that asks nothing but the scripted model."""
    config = {
        "model": {
            "default": "scripted",
            "provider": "custom",
            "base_url": model.base_url,
            "api_key": "sk-test",
            "context_length": 200_000,
        },
        "plugins": {"enabled": ["hermes-ext"]},
        "agent": {"environment_probe": False},
        "compression": {"enabled": False},
        "memory": {"nudge_interval": 0},
        "skills": {"creation_nudge_interval": 0},
        "security": {"tirith_enabled": False, "allow_lazy_installs": False},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "project").mkdir()
    (folder / "no-skills").mkdir()
    os.environ.update(
        HERMES_HOME=str(folder),
        HOME=str(folder),
        HERMES_YOLO_MODE="1",
        HERMES_BUNDLED_SKILLS=str(folder / "no-skills"),
    )
    os.chdir(folder / "project")


def script(request: Any) -> Reply:
    """A tool call first, then the answer: two requests and one tool call in each turn."""
    if request.messages and request.messages[-1].get("role") == "tool":
        return Reply("Done.")
    return Reply(tool_calls=(ToolUse("read_file", {"path": "notes.txt"}),))


def an_agent(model: ScriptedModel) -> Any:
    """A real agent, in this process."""
    from run_agent import AIAgent

    agent = AIAgent(
        base_url=model.base_url,
        api_key="sk-test",
        provider="custom",
        model="scripted",
        quiet_mode=True,
        platform="cli",
        skip_memory=True,
        skip_context_files=True,
    )
    agent.suppress_status_output = True
    return agent


def turn_seconds(agent: Any, runtime: Runtime) -> float:
    """One whole turn under a runtime."""
    from hermes_ext.hosts.hermes.adapter.state import state

    state.runtimes = {Path(os.environ["HERMES_HOME"]): runtime}
    begun = time.perf_counter()
    result = agent.run_conversation("read the notes", conversation_history=[])
    seconds = time.perf_counter() - begun
    if result["final_response"] != "Done.":
        raise RuntimeError(f"the turn went wrong: {result['final_response']!r}")
    return seconds


def turns(model: ScriptedModel, runtime: Runtime, clock: OwnTime) -> tuple[float, float, float]:
    """Seconds of a turn, of what of it is ours, and what it takes by what is left without us.

    Medians of many turns.
    """
    agent = an_agent(model)
    for _ in range(3):
        turn_seconds(agent, runtime)
    gc.collect()
    rows = []
    for _ in range(TURNS):
        before = clock.nanoseconds
        whole = turn_seconds(agent, runtime)
        own = (clock.nanoseconds - before) / 1e9
        rows.append((whole, own, whole / (whole - own)))
    if not all(own > 0 for _, own, _ in rows):
        raise RuntimeError("the clock does not run")
    whole, own, ratio = map(statistics.median, zip(*rows, strict=True))
    return whole, own, ratio


def smallest(work: Callable[[], object], loops: int) -> float:
    """Nanoseconds of one call, the smallest of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        for _ in range(loops):
            work()
        best = min(best, (time.perf_counter_ns() - begun) / loops)
    return best


def hook_calls() -> dict[str, float]:
    """Ten passing callbacks: ours, Hermes's `invoke_hook`, and its three sites of one tool call."""
    from hermes_cli import middleware, plugins

    from hermes_ext.chain import fold
    from hermes_ext.hooks.payloads import Scope, ToolCall

    manager = plugins.PluginManager()
    for number in range(EXTENSIONS):

        def callback(tool_name: str = "", _number: int = number, **_: Any) -> None:
            return None

        for hook in ("pre_tool_call",):
            manager._hooks.setdefault(hook, []).append(callback)
        manager._middleware.setdefault("tool_request", []).append(callback)
        manager._middleware.setdefault("tool_execution", []).append(
            lambda next_call, args, **_: next_call(args)
        )
    chain = extensions().manager.chain("intercept_tool_call", "terminal")
    event, scope = ToolCall("terminal", {"command": "ls"}, "c1"), Scope(session_id="s")
    ids = {"task_id": "t", "session_id": "s", "tool_call_id": "c1"}
    args = {"command": "ls"}
    request = _unwrapped(middleware.apply_tool_request_middleware)
    execute = _unwrapped(middleware.run_tool_execution_middleware)

    def three_sites() -> None:
        request("terminal", args, **ids)
        manager.invoke_hook("pre_tool_call", tool_name="terminal", args=args, **ids)
        execute("terminal", args, lambda final: None, **ids)

    saved, plugins._plugin_manager = plugins._plugin_manager, manager
    try:
        return {
            "hermes_ext, one chain": smallest(lambda: fold.run(chain, event, scope), 2000),
            "Hermes invoke_hook": smallest(
                lambda: manager.invoke_hook(
                    "pre_tool_call", tool_name="terminal", args=args, **ids
                ),
                2000,
            ),
            "Hermes, the three sites": smallest(three_sites, 200),
        }
    finally:
        plugins._plugin_manager = saved


def _unwrapped(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


def bytes_per_session() -> float:
    """Memory that a session keeps when its turn has ended, in bytes."""
    runtime = extensions()

    def sessions(count: int) -> None:
        for number in range(count):
            with runtime.turn(session_id=f"session-{number}", task_id=f"task-{number}") as turn:
                turn.state["plan"] = True
                turn.transform_user_input("hello")
                turn.before_llm_call([{"role": "user", "content": "hello"}], "system")
                turn.intercept_tool_call("read_file", {"path": "a"}, tool_call_id=f"c{number}")

    sessions(200)
    gc.collect()
    tracemalloc.start()
    sessions(1000)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    sessions(4000)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    if open_turn_count():
        raise RuntimeError(f"{open_turn_count()} turns are still open")
    return max(0, after - before) / 4000


def bytes_per_agent(model: ScriptedModel) -> float:
    """The same of agents of Hermes that have had a turn and wait for the next, in bytes."""
    from hermes_ext.hosts.hermes.adapter.host import REMEMBERED_TASKS, task_ends

    runtime, agents = extensions(), []
    # So many tasks are remembered and no more, however many sessions there are.
    for _ in range(REMEMBERED_TASKS):
        task_ends(str(uuid.uuid4()))

    def sessions(count: int) -> int:
        for _ in range(count):
            agents.append(an_agent(model))
            turn_seconds(agents[-1], runtime)
        gc.collect()
        return sum(map(sys.getsizeof, held_by_us()))

    before = sessions(3)
    kept = (sessions(SESSIONS) - before) / SESSIONS
    if len({agent.session_id for agent in agents}) != len(agents):
        raise RuntimeError("the agents share a session")
    return kept


def held_by_us() -> list[Any]:
    """This package's objects, and what they and its modules hold that is not Hermes's own."""
    left: list[Any] = [vars(module) for name, module in sys.modules.items() if _is_ours(name)]
    left += [each for each in gc.get_objects() if _is_ours(type(each).__module__)]
    found: dict[int, Any] = {}
    while left:
        each = left.pop()
        package = str(type(each).__module__)
        if id(each) in found or isinstance(each, _CODE):
            continue
        if _is_ours(package) or package.partition(".")[0] in _PLAIN:
            found[id(each)] = each
            left += gc.get_referents(each)
    return list(found.values())


def _is_ours(module: str) -> bool:
    # The scripted model keeps every request, as it is meant to.
    return f"{module}.".startswith("hermes_ext.") and ".testing." not in f"{module}."


_CODE = (
    type,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
    types.FunctionType,
    types.ModuleType,
)
_PLAIN = frozenset({"builtins", "collections", "functools", "pathlib", "threading", "weakref"})


def measure(report: Report) -> None:
    """All of it."""
    clock = OwnTime()
    clock.attach()
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(script) as model:
        scratch_home(Path(folder), model)
        Path("notes.txt").write_text("Nothing yet.\n")  # the script reads it
        measured = {count: turns(model, extensions(count), clock) for count in (0, EXTENSIONS)}
        kept_by_agent = bytes_per_agent(model)
        calls = hook_calls()
        kept = bytes_per_session()
        os.chdir("/")
    for count, (whole, own, ratio) in measured.items():
        print(f"a turn with {count} extensions, two requests and a tool call")
        report.figure("whole", whole * 1e3, "ms", 2)
        report.figure("of it ours", own * 1e3, "ms", 2)
        report.bar(
            "ours, of what is left without us", (ratio - 1) * 100, SHARE_BARS[count], unit="%"
        )
    print(f"{EXTENSIONS} callbacks that pass")
    for name, nanoseconds in calls.items():
        report.row(name, nanoseconds)
    print("an idle session")
    report.bar("kept, by a runtime", kept, IDLE_BAR, unit="B")
    report.bar("kept, in Hermes", kept_by_agent, IDLE_BAR, unit="B")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the bars hold."""
    return run(__doc__, arguments, measure)


if __name__ == "__main__":
    # Hermes leaves threads of its own; what was measured is printed, so do not wait for them.
    code = main()
    sys.stdout.flush()
    os._exit(code)
