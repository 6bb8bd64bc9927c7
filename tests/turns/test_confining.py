"""A confined call runs, is blocked, or is asked about: by what it changes and what the host can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from hermes_ext import Action, ChainOutcome, HookResult, Runtime, ToolCall, register_hook
from hermes_ext.confine import Confinement


@define
class Host:
    """A host that can confine, or says why not; it remembers what it was asked."""

    why_not: str | None = None
    asked: list[tuple[ToolCall, Confinement]] = field(factory=list)

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        self.asked.append((call, confinement))
        return self.why_not


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("plans", "src"):
        (tmp_path / name).mkdir()
    return tmp_path


def confining(**bounds: Any) -> Any:
    @register_hook("intercept_tool_call", guard=True)
    def confine(tool_name: str) -> Any:
        return HookResult.confine(**{"writable": ["plans"], "reason": "no plan yet", **bounds})

    return confine


def asking(reason: str = "sure?", key: str | None = None) -> Any:
    @register_hook("intercept_tool_call", guard=True)
    def ask(tool_name: str) -> Any:
        return HookResult.ask(reason, key)

    return ask


Call = Callable[..., ChainOutcome]


@pytest.fixture(params=["intercept", "aintercept", "judge and settle"])
def call(request: pytest.FixtureRequest, project: Path) -> Call:
    """Calls a tool in a runtime, by each of the ways that a host has."""

    def called(runtime: Runtime, tool: str, args: dict[str, Any], **more: Any) -> ChainOutcome:
        with runtime.turn(session_id="s", cwd=project, project_root=project) as turn:
            if request.param == "intercept":
                return turn.intercept_tool_call(tool, args, **more)
            if request.param == "aintercept":
                return asyncio.run(turn.aintercept_tool_call(tool, args, **more))
            outcome = turn.judge_tool_call(tool, args, **more)
            return turn.settle(outcome, tool, outcome.final(args))

    return called


def test_a_shell_call_runs_confined_where_the_host_can(call: Call, project: Path) -> None:
    """The outcome has what may be written, on the disk, and the host was asked about that."""
    host = Host()
    outcome = call(Runtime([confining()], confiner=host), "terminal", {"command": "make"})
    assert outcome.action is Action.CONFINE
    assert outcome.confinement is not None
    assert outcome.confinement.writable == (project / "plans",)
    assert [asked for _, asked in host.asked] == [outcome.confinement]
    assert outcome.final({"command": "make"}) == {"command": "make"}
    assert outcome.as_tool_result() is None


def test_without_a_confiner_a_shell_call_is_blocked(call: Call) -> None:
    """By the extension that confines, with its reason, why not, and which setting decides."""
    outcome = call(Runtime([confining()]), "terminal", {"command": "true"})
    assert (outcome.blocked, outcome.blocked_by) == (True, "test_confining")
    assert outcome.confinement is None
    assert outcome.message == (
        "no plan yet, and terminal cannot be confined: this host cannot confine processes "
        "(extensions.confine_unavailable decides what happens then)"
    )


@pytest.mark.parametrize(
    ("command", "runs"),
    [("ls src", True), ("echo x > plans/a", True), ("echo x > src/a", False), ("make", False)],
)
def test_exact_calls_run_where_the_host_cannot(call: Call, command: str, runs: bool) -> None:
    """Only if the handler says so, and only those that change nothing outside."""
    assert call(Runtime([confining()]), "terminal", {"command": command}).blocked
    outcome = call(Runtime([confining(or_exact=True)]), "terminal", {"command": command})
    assert outcome.blocked is not runs
    host = Host()
    call(Runtime([confining(or_exact=True)], confiner=host), "terminal", {"command": command})
    assert len(host.asked) == 1


def test_all_who_confine_must_accept_exact_calls(call: Call) -> None:
    """One that wants the kernel gets it, or the call does not run."""
    both = Runtime([confining(or_exact=True), confining()])
    assert call(both, "terminal", {"command": "ls"}).blocked


def test_advice_stands_behind_the_reason(call: Call) -> None:
    """The model is told what to do instead."""
    runtime = Runtime([confining(advice=" Write the plan. ")])
    message = call(runtime, "terminal", {"command": "make"}).message
    assert message is not None
    assert message.endswith(" what happens then). Write the plan.")
    refused = call(runtime, "write_file", {"path": "src/a", "content": "x"}).message
    assert refused is not None
    assert refused.endswith("may be changed. Write the plan.")
