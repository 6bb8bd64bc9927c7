"""Approvers that raise, or that change what they are shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes_ext import HookResult, Runtime, register_hook


def asking() -> Runtime:
    @register_hook("intercept_tool_call", guard=True)
    def asks() -> Any:
        return HookResult.ask("Sure?")

    return Runtime([asks])


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_an_approver_raises_is_a_no(kind: type[BaseException], is_async: bool) -> None:
    def approver(_: Any) -> Any:
        raise kind

    async def awaited(_: Any) -> Any:
        raise kind

    runtime = asking()
    runtime.approver = awaited if is_async else approver

    async def called() -> Any:
        with runtime.turn(session_id="s") as turn:
            return await turn.aintercept_tool_call("terminal", {"command": "ls"})

    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("terminal", {"command": "ls"}).blocked
    assert asyncio.run(called()).blocked


def test_a_caller_that_is_cancelled_while_it_asks_stays_cancelled() -> None:
    runtime = asking()
    asked = asyncio.Event()

    async def approver(_: Any) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    runtime.approver = approver

    async def main() -> None:
        with runtime.turn(session_id="s") as turn:
            task = asyncio.ensure_future(turn.aintercept_tool_call("terminal", {"command": "ls"}))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_what_an_approver_changes_is_not_what_runs() -> None:
    def approver(request: Any) -> bool:
        request.tool_args["command"] = "rm -rf data"
        request.tool_args["env"].clear()
        return True

    runtime = asking()
    runtime.approver = approver
    args = {"command": "ls", "env": {"A": "1"}}
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("terminal", args)
    assert outcome.approved
    assert outcome.final(args) == args == {"command": "ls", "env": {"A": "1"}}


def test_a_turn_begins_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_ext.turns import turn as turns
    from hermes_ext.turns.slow import Watchdog

    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(turns, "watchdog", Watchdog())
    monkeypatch.setattr("threading.Thread.start", refuse)
    runtime = asking()
    with runtime.turn(session_id="s") as turn:
        assert turn.judge_tool_call("terminal", {"command": "ls"}).action in {"ask", "block"}
