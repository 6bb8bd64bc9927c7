"""What the real Hermes costs with extensions: one tool call's hooks, and whole turns.

    python benchmarks/bench_hermes.py            # the figures
    python benchmarks/bench_hermes.py --check    # exit 1 where a bar is missed

Needs `hermes-agent` in the same environment. It works in a scratch home, against a model server on
loopback that plays a script. Turns are measured in pairs, without and with ten extensions that
pass, one after the other, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes_ext import Runtime, register_hook
from hermes_ext._turns.state import open_turn_count
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

PAIRS = 20
EXTENSIONS = 10
TURN_BAR = 1.03
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


def ten_extensions() -> Runtime:
    """A runtime of ten passing extensions."""
    return Runtime([hook for number in range(EXTENSIONS) for hook in passing(number)])


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
    from hermes_ext.hosts.hermes.host import the_host

    the_host._runtimes = {Path(os.environ["HERMES_HOME"]): runtime}
    begun = time.perf_counter()
    result = agent.run_conversation("read the notes", conversation_history=[])
    seconds = time.perf_counter() - begun
    if result["final_response"] != "Done.":
        raise RuntimeError(f"the turn went wrong: {result['final_response']!r}")
    return seconds


def turns(model: ScriptedModel) -> tuple[float, float, float]:
    """Median seconds of a bare turn and of one with ten extensions, and the median ratio."""
    agent = an_agent(model)
    bare, full = Runtime(), ten_extensions()
    for runtime in (bare, full) * 2:
        turn_seconds(agent, runtime)
    gc.collect()
    pairs = []
    for number in range(PAIRS):
        first, second = (bare, full) if number % 2 else (full, bare)
        seconds = {id(one): turn_seconds(agent, one) for one in (first, second)}
        pairs.append((seconds[id(bare)], seconds[id(full)]))
    return (
        statistics.median(one for one, _ in pairs),
        statistics.median(two for _, two in pairs),
        statistics.median(two / one for one, two in pairs),
    )


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

    from hermes_ext._chain.fold import run
    from hermes_ext._hooks.payloads import Scope, ToolCall

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
    chain = ten_extensions().manager.chain("intercept_tool_call", "terminal")
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
            "hermes_ext, one chain": smallest(lambda: run(chain, event, scope), 2000),
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
    """Memory that a finished session leaves behind, in bytes."""
    runtime = ten_extensions()

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


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(script) as model:
        scratch_home(Path(folder), model)
        bare, full, ratio = turns(model)
        calls = hook_calls()
        left = bytes_per_session()
        os.chdir("/")
    print(f"whole turn, no extension      {bare * 1e3:8.2f} ms (median of {PAIRS})")
    print(f"whole turn, {EXTENSIONS} extensions     {full * 1e3:8.2f} ms")
    print(f"  ratio, median of {PAIRS} pairs   {ratio:8.3f}    bar {TURN_BAR}")
    for name, nanoseconds in calls.items():
        print(f"{name:28}  {nanoseconds / 1e3:8.2f} µs for {EXTENSIONS} callbacks that pass")
    print(f"kept per finished session     {left:8.2f} B     bar 0")
    missed = [name for name, bad in (("turn", ratio > TURN_BAR), ("memory", left >= 1)) if bad]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    # Hermes leaves threads of its own; what was measured is printed, so do not wait for them.
    code = main()
    sys.stdout.flush()
    os._exit(code)
