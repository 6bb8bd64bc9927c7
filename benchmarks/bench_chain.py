"""What a chain costs, beside a plain loop of keyword calls and pluggy's own call.

    python benchmarks/bench_chain.py            # the table
    python benchmarks/bench_chain.py --check    # exit 1 where a bar is missed

Every figure is the smallest of many short interleaved rounds, so that a busy machine hardly shows.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pluggy
from report import Report
from report import run as run_report

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.chain.fold import CompiledChain, run
from hermes_ext.chain.manager import HookManager
from hermes_ext.hooks.payloads import Event, LLMRequest, Scope, ToolCall
from hermes_ext.hooks.registration import Registration, build_handlers, marks_of

ROUNDS = 600
SIZES = (0, 1, 3, 10, 50)

INSTALLED_BAR = 1.1
LARGE_BAR = 1.25
PLUGGY_BAR = 5.0
TURN_BAR = 1.0
EMPTY_TURN_BAR = 0.6
CRASH_BAR = 0.1

Work = Callable[[], object]

CALL = ToolCall("terminal", {"command": "ls -la", "timeout": 30}, "call-1")
SCOPE = Scope(session_id="session-1", turn_id="turn-1", state={})


def measure(works: dict[str, Work], rounds: int = ROUNDS) -> dict[str, float]:
    """Nanoseconds of each work, the smallest of `rounds` interleaved rounds."""
    numbers = {name: _loops_of(work) for name, work in works.items()}
    best = dict.fromkeys(works, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in works.items():
                best[name] = min(best[name], _once(work, numbers[name]))
    finally:
        gc.enable()
    return best


def _loops_of(work: Work) -> int:
    # Short enough to fall between two interruptions by other processes.
    return max(1, min(5_000, int(2e5 / max(_once(work, 3), 20))))


def _once(work: Work, loops: int) -> float:
    began = time.perf_counter_ns()
    for _ in range(loops):
        work()
    return (time.perf_counter_ns() - began) / loops


def passing(count: int) -> list[Callable[..., Any]]:
    """Handlers that look at two values and have no opinion."""

    def make() -> Callable[..., Any]:
        def handler(tool_name: str, session_id: str) -> None:
            return None

        return handler

    return [make() for _ in range(count)]


def chain_of(
    functions: Sequence[Callable[..., Any]], hook: Any = "intercept_tool_call", **options: Any
) -> CompiledChain:
    """A compiled chain of these functions."""
    for function in functions:
        register_hook(hook, **options)(function)
    registrations = [Registration(function, marks_of(function)[0]) for function in functions]
    return HookManager(build_handlers("bench", registrations)).chain(hook, "terminal")


def calls(chain: CompiledChain, event: Event = CALL) -> Work:
    """One run of the chain, called as directly as the yardsticks are."""
    return partial(run, chain, event, SCOPE)


def plain_loop(functions: Sequence[Callable[..., Any]]) -> Work:
    """The yardstick: what anyone would write by hand."""
    name, session = CALL.tool_name, SCOPE.session_id

    def loop() -> None:
        for function in functions:
            function(tool_name=name, session_id=session)

    return loop


class _Spec:
    @pluggy.HookspecMarker("bench")
    def intercept_tool_call(self, tool_name: str, session_id: str) -> None:
        """The two arguments that the handlers use, which is the cheapest for pluggy."""


def pluggy_call(functions: Sequence[Callable[..., Any]]) -> Work:
    """The same functions through pluggy's own call."""
    name, session, call = CALL.tool_name, SCOPE.session_id, pluggy_hook(functions, _Spec)
    return lambda: call(tool_name=name, session_id=session)


def pluggy_hook(functions: Sequence[Callable[..., Any]], spec: type) -> Callable[..., Any]:
    """pluggy's own call of the functions, by keyword."""
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(spec)
    mark = pluggy.HookimplMarker("bench")
    for function in functions:
        manager.register(_plugin(mark(specname="intercept_tool_call")(function)))
    call: Callable[..., Any] = manager.hook.intercept_tool_call
    return call


def _plugin(function: Callable[..., Any]) -> object:
    holder = type("Plugin", (), {})()
    holder.handler = function
    return holder


def crashing(tool_name: str) -> None:
    """A handler that fails."""
    raise ValueError(tool_name)


def raise_and_catch() -> None:
    """What every crash costs."""
    try:
        crashing(tool_name="terminal")
    except BaseException:  # noqa: BLE001 - what a chain has to catch as well
        return


def rewriting(count: int) -> list[Callable[..., Any]]:
    """Handlers that each change one argument."""

    def make(place: int) -> Callable[..., Any]:
        def handler(tool_args: dict[str, Any]) -> HookResult[Any]:
            tool_args["command"] = f"ls {place}"
            return HookResult.rewrite(tool_args)

        return handler

    return [make(place) for place in range(count)]


def rewriting_loop(functions: Sequence[Callable[..., Any]]) -> Work:
    """The same by hand, with a copy for each, as isolation needs."""

    def loop() -> None:
        args = CALL.tool_args
        for function in functions:
            args = function(tool_args=dict(args)).value

    return loop


def request_of(size: int, count: int) -> LLMRequest:
    """A request of about `size` characters, in so many messages."""
    content = "x" * (size // count)
    return LLMRequest([{"role": "user", "content": content} for _ in range(count)], "system")


def bench_passing(report: Report) -> None:
    """Chains in which everybody passes."""
    for count in SIZES:
        functions = passing(count)
        best = measure(
            {
                "plain": plain_loop(functions),
                "chain": calls(chain_of(functions)),
                "pluggy": pluggy_call(functions),
            }
        )
        ratio = best["chain"] / best["plain"]
        print(f"{count} passing handlers")
        report.row("plain loop of keyword calls", best["plain"])
        report.row("chain", best["chain"], f"{ratio:.2f} x plain")
        report.row("pluggy's own call", best["pluggy"], f"{best['pluggy'] / best['plain']:.2f} x")
        if count == 10:
            faster = best["pluggy"] / best["chain"]
            report.bar("pluggy / chain", faster, PLUGGY_BAR, at_least=True)


def bench_naming_args(report: Report) -> None:
    """Ten handlers that ask for the arguments, and ten that take everything."""

    def with_args(tool_name: str, tool_args: dict[str, Any]) -> None:
        return None

    def everything(**arguments: Any) -> None:
        return None

    print("10 passing handlers that ask for more")
    chains = {
        "naming tool_args (each gets a copy)": [_clone(with_args) for _ in range(10)],
        "**kwargs (each gets everything)": [_clone(everything) for _ in range(10)],
    }
    works = {name: calls(chain_of(functions)) for name, functions in chains.items()}
    works["plain"] = plain_loop(passing(10))
    best = measure(works)
    for name in chains:
        report.row(name, best[name], f"{best[name] / best['plain']:.2f} x plain")


class _ArgsSpec:
    @pluggy.HookspecMarker("bench")
    def intercept_tool_call(self, tool_name: str, tool_args: dict[str, Any]) -> None:
        """What most handlers of tool calls name."""


def bench_turn(report: Report) -> None:
    """What a host calls, with the log off: ten handlers, and none, beside pluggy's own call."""

    def with_args(tool_name: str, tool_args: dict[str, Any]) -> None:
        return None

    functions = [_clone(with_args) for _ in range(10)]
    name, args = CALL.tool_name, CALL.tool_args
    by_pluggy = pluggy_hook(functions, _ArgsSpec)
    for function in functions:
        register_hook("intercept_tool_call")(function)
    print("turn.intercept_tool_call, handlers that name tool_name and tool_args")
    for count, hooks, limit in (("ten", functions, TURN_BAR), ("none", (), EMPTY_TURN_BAR)):
        with Runtime(hooks).turn(session_id=count) as turn:
            best = measure(
                {
                    "pluggy": lambda: by_pluggy(tool_name=name, tool_args=args),
                    "ours": lambda: turn.intercept_tool_call(name, args, tool_call_id="c1"),
                }
            )
        report.row("pluggy's own call of ten", best["pluggy"])
        report.row(f"a turn, {count}", best["ours"])
        report.bar(f"a turn, {count} / pluggy's ten", best["ours"] / best["pluggy"], limit)


def _clone(function: Callable[..., Any]) -> Callable[..., Any]:
    code = function.__code__
    return type(function)(code, function.__globals__, function.__name__)


def bench_rewriting(report: Report) -> None:
    """Chains in which everybody rewrites."""
    for count in SIZES[1:]:
        functions = rewriting(count)
        best = measure(
            {"plain": rewriting_loop(functions), "chain": calls(chain_of(functions))}, rounds=100
        )
        print(f"{count} rewriting handlers")
        report.row("by hand, a copy each", best["plain"])
        report.row("chain", best["chain"], f"{best['chain'] / best['plain']:.2f} x by hand")


def format_caught() -> None:
    """The yardstick for a crash: what a log line with a traceback costs, without the log."""
    try:
        crashing(tool_name="terminal")
    except BaseException as error:  # noqa: BLE001 - what a chain has to catch as well
        traceback.format_exception(error)


def bench_crash(report: Report) -> None:
    """One handler that raises."""
    chain = chain_of([_clone(crashing)])
    works = {"plain": raise_and_catch, "formatted": format_caught, "chain": calls(chain)}
    best = measure(works)
    print("a crash")
    report.row("raise and catch", best["plain"])
    report.row("raise, catch and format the traceback", best["formatted"])
    ratio = best["chain"] / best["plain"]
    report.row("chain of one that raises", best["chain"], f"{ratio:.2f} x raise and catch")
    report.bar("crash / formatting a traceback", best["chain"] / best["formatted"], CRASH_BAR)


def bench_matching(report: Report) -> None:
    """Two handlers that match, of ten and of two hundred installed."""

    def manager(installed: int) -> HookManager:
        functions = passing(installed)
        for place, function in enumerate(functions):
            tools = ["terminal"] if place < 2 else [f"other_{place}"]
            register_hook("intercept_tool_call", tools=tools)(function)
        registrations = [Registration(one, marks_of(one)[0]) for one in functions]
        return HookManager(build_handlers("bench", registrations))

    def finding(installed: int) -> Work:
        managers = [manager(installed) for _ in range(8)]  # where one lies in memory shows, too

        def call() -> None:
            for each in managers:
                run(each.chain("intercept_tool_call", "terminal"), CALL, SCOPE)

        return call

    best = measure({str(count): finding(count) for count in (2, 10, 200)})
    print("2 matching handlers, found by the tool's name")
    for count, nanoseconds in best.items():
        report.row(f"of {count} installed", nanoseconds / 8)
    report.bar("of 200 / of 10 installed", best["200"] / best["10"], INSTALLED_BAR)


def bench_registering(report: Report) -> None:
    """pluggy takes each extension once for each load: no bar, a figure for the docs."""
    functions = passing(1_000)
    for function in functions:
        register_hook("intercept_tool_call")(function)
    handlers = [
        one
        for place, each in enumerate(functions)
        for one in build_handlers(f"bench-{place}", [Registration(each, marks_of(each)[0])])
    ]
    counts = (10, 100, 1_000)
    best = measure({str(count): partial(HookManager, handlers[:count]) for count in counts}, 20)
    print("extensions of one handler, registered with pluggy and put in order")
    for count, nanoseconds in best.items():
        report.row(f"{count} extensions", nanoseconds)


def bench_request(report: Report) -> None:
    """Ten handlers that name the messages of a large and of a small request."""

    def unread(messages: list[Any], system_prompt: str) -> None:
        return None

    def unnamed(system_prompt: str) -> None:
        return None

    def change_one(messages: list[Any]) -> HookResult[Any]:
        messages[-1]["content"] = "changed"
        return HookResult.rewrite(messages)

    # The same number of messages, so that it is their size that counts; many small ones are a row
    # of their own, because a list of them is copied for each handler that may change it.
    small, large = request_of(1_000, 40), request_of(1_000_000, 40)
    many = request_of(1_000_000, 1_000)
    naming = chain_of([_clone(unread) for _ in range(10)], "before_llm_call")
    others = chain_of([_clone(unnamed) for _ in range(10)], "before_llm_call")
    changing = chain_of([change_one], "before_llm_call")
    best = measure(
        {
            "10 handlers, not naming messages, 1 KB": calls(others, small),
            "10 handlers, not naming messages, 1 MB": calls(others, large),
            "10 handlers naming messages, 1 KB": calls(naming, small),
            "10 handlers naming messages, 1 MB": calls(naming, large),
            "10 handlers naming messages, 1 MB in 1,000": calls(naming, many),
            "1 handler changing one message, 1 KB": calls(changing, small),
            "1 handler changing one message, 1 MB": calls(changing, large),
        },
        rounds=300,
    )
    print("a request to the model, in 40 messages")
    for name, nanoseconds in best.items():
        report.row(name, nanoseconds)
    for what in (
        "10 handlers, not naming messages",
        "10 handlers naming messages",
        "1 handler changing one message",
    ):
        ratio = best[f"{what}, 1 MB"] / best[f"{what}, 1 KB"]
        report.bar(f"{what}: 1 MB / 1 KB", ratio, LARGE_BAR)


def bench_guards(report: Report) -> None:
    """Guards, with and without their time limit."""

    def guard(tool_name: str) -> None:
        return None

    def free(tool_name: str) -> None:
        return None

    limited = chain_of([guard], guard=True)
    unlimited = chain_of([free], guard=True, timeout=0)
    best = measure({"limited": calls(limited), "free": calls(unlimited)}, rounds=100)
    print("one passing guard")
    report.row("timeout=0", best["free"])
    report.row("the default limit (runs in a thread)", best["limited"])


def every(report: Report) -> None:
    """All of it."""
    for bench in (
        bench_passing,
        bench_turn,
        bench_naming_args,
        bench_rewriting,
        bench_crash,
        bench_matching,
        bench_registering,
        bench_request,
        bench_guards,
    ):
        bench(report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run_report(__doc__, arguments, every)


if __name__ == "__main__":
    sys.exit(main())
