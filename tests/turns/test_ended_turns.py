"""A turn that ends while a call is evaluated or asked about: the call does not run."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import (
    Approval,
    ApprovalRequest,
    ChainOutcome,
    HookResult,
    Runtime,
    Turn,
    register_hook,
)
from hermes_ext.turns.state import open_turn_count

Call = Callable[[Turn], ChainOutcome]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a turn open."""
    yield
    assert open_turn_count() == 0


def handler(body: Callable[..., Any], **options: Any) -> Any:
    return register_hook("intercept_tool_call", **options)(body)


def at_once(turn: Turn) -> ChainOutcome:
    return turn.intercept_tool_call("t", {"n": 1})


def awaited(turn: Turn) -> ChainOutcome:
    return asyncio.run(turn.aintercept_tool_call("t", {"n": 1}))


def in_two_steps(turn: Turn) -> ChainOutcome:
    outcome = turn.judge_tool_call("t", {"n": 1})
    return turn.settle(outcome, "t", {"n": 1})


WAYS = pytest.mark.parametrize("call", [at_once, awaited, in_two_steps])


def is_refused(outcome: ChainOutcome) -> None:
    assert outcome.blocked
    assert not outcome.approved
    assert outcome.blocked_by == "hermes-ext"
    assert "the turn that this call belongs to has ended" in str(outcome.message)
    assert "has ended" in json.loads(outcome.as_tool_result() or "")["error"]


def elsewhere(work: Callable[[], object]) -> None:
    """Do it in another thread, to the end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)


@WAYS
@pytest.mark.parametrize("where", ["here", "another thread"])
@pytest.mark.parametrize("says", ["pass", "rewrite", "answer", "ask"])
def test_while_the_handlers_run(call: Call, where: str, says: str) -> None:
    """Whatever the handlers say of it, and nobody is asked any more."""
    asked: list[ApprovalRequest] = []
    results = {
        "pass": None,
        "rewrite": HookResult.rewrite({"n": 2}),
        "answer": HookResult.answer("42"),
        "ask": HookResult.ask("Sure?"),
    }

    def ends(tool_name: str) -> Any:
        turn.close() if where == "here" else elsewhere(turn.close)
        return results[says]

    runtime = Runtime([handler(ends)], approver=lambda one: asked.append(one) or True)
    turn = runtime.turn(session_id="s")
    is_refused(call(turn))
    assert asked == []


def test_a_block_keeps_its_own_reason() -> None:
    def ends(tool_name: str) -> Any:
        turn.close()
        return HookResult.block("not this one")

    turn = Runtime([handler(ends)]).turn(session_id="s")
    outcome = at_once(turn)
    assert (outcome.blocked, outcome.message) == (True, "not this one")


@WAYS
@pytest.mark.parametrize("answer", [True, Approval(approved=True), Approval(approved=False)])
def test_a_late_answer_grants_nothing(call: Call, answer: bool | Approval) -> None:
    """The turn ends while a person is asked; of several questions the others are not asked."""
    asked: list[str] = []

    def late(request: ApprovalRequest) -> bool | Approval:
        asked.append(request.reason)
        elsewhere(turn.close)
        return answer

    first = handler(lambda tool_name: HookResult.ask("one"))
    second = handler(lambda tool_name: HookResult.ask("two"))
    turn = Runtime([first, second], approver=late).turn(session_id="s")
    is_refused(call(turn))
    assert asked == ["one"]


def test_a_late_answer_of_an_awaited_approver(tmp_path: Path) -> None:
    """The same where the approver is a coroutine that waits for the person."""

    async def scenario() -> ChainOutcome:
        came = asyncio.Event()

        async def late(request: ApprovalRequest) -> bool:
            await came.wait()
            return True

        runtime = Runtime([handler(lambda tool_name: HookResult.ask("?"))], approver=late)
        turn = runtime.turn(session_id="s")
        call = asyncio.create_task(turn.aintercept_tool_call("t", {}))
        await asyncio.sleep(0)
        turn.close()
        came.set()
        return await call

    is_refused(asyncio.run(scenario()))


def test_the_decision_log_has_the_refusal(tmp_path: Path) -> None:
    """One line for the call, with what really became of it."""
    (tmp_path / "extensions").mkdir()
    (tmp_path / "config.yaml").write_text("")
    (tmp_path / "extensions" / "ender.py").write_text(
        "from hermes_ext import *\nfrom hermes_ext.turns.state import current_turn\n"
        "@register_hook('intercept_tool_call')\n"
        "def end(tool_name):\n    current_turn().close()\n"
    )
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        is_refused(turn.intercept_tool_call("t", {}))
    runtime.close()
    [line] = (tmp_path / "logs" / "extensions.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert told["action"] == "block"
    assert "has ended" in told["message"]
