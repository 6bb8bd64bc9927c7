"""Leave to run a call: for one run, also where threads of the tool take it at once, in its turn."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from hermes_ext import Runtime, register_hook
from hermes_ext.hosts.hermes.adapter.gate import tools
from hermes_ext.hosts.hermes.adapter.host import TurnData
from hermes_ext.hosts.hermes.adapter.state import state

pytestmark = pytest.mark.hermes


class Verdict:
    """One whose tool is read by both threads before either goes on."""

    host_id = "call"

    def __init__(self) -> None:
        self.both = threading.Barrier(2, timeout=10)

    @property
    def tool(self) -> str:
        self.both.wait()
        return "terminal"


def test_of_two_threads_one_gets_it() -> None:
    turn: Any = object()
    verdict: Any = Verdict()
    context = copy_context()
    context.run(state.grant.set, tools.Grant(verdict, turn))
    with ThreadPoolExecutor(2) as pool:
        taken = [
            pool.submit(context.copy().run, tools._passed_on, turn, "terminal", "call")
            for _ in range(2)
        ]
        assert sum(each.result() is not None for each in taken) == 1


def test_none_after_the_turn() -> None:
    """A call whose turn has ended on the way is refused at the last gate, with that reason."""
    with Runtime([]).turn(session_id="s1", platform="cli") as turn:
        pass
    verdict = tools._admitted(turn, "terminal", {"command": "ls"}, "call", None)
    assert (
        verdict.refusal
        == "[hermes-ext] the turn that this call belongs to has ended, so the call is refused"
    )


def test_where_no_handler_waits_for_calls_they_run_as_without_us() -> None:
    """With what Hermes gives, not a copy of it; its result is the tool's."""

    @register_hook("transform_user_input")
    def waits_for_inputs(user_message: str) -> None:
        pass

    def middleware(tool: str, args: Any, run: Any, **context: Any) -> Any:
        return tool, run(args), context

    arguments = {"command": "ls"}
    with Runtime([waits_for_inputs]).turn(session_id="s1") as turn:
        turn.host = TurnData(None, None)
        result = tools.run_tool_execution(
            middleware, "terminal", arguments, lambda given: given is arguments, session_id="s1"
        )
    assert result == ("terminal", True, {"session_id": "s1"})
