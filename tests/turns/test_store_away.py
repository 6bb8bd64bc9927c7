"""A handler whose session state is away: it fails, and its policy for that decides."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import ChainOutcome, HookResult, Runtime, get_session_state, register_hook
from hermes_ext.exceptions import RegistrationError, StateError


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A home in which nothing can be stored."""
    (tmp_path / "extensions-state.db").mkdir()
    return tmp_path


def counting(hook: str = "intercept_tool_call", **options: Any) -> Any:
    """A handler that counts."""

    def count(session_state: Any) -> None:
        session_state.count("calls")

    return register_hook(hook, **options)(count)


def outcome_of(home: Path, handler: Any, *, awaited: bool = False) -> ChainOutcome:
    """Of the hook that it is for."""
    runtime = Runtime([handler], home=home)
    [hook] = {one.hook.value for one in runtime.handlers}
    args: tuple[Any, ...] = {
        "transform_user_input": ("hello",),
        "before_llm_call": ([],),
        "intercept_tool_call": ("t", {}),
        "transform_tool_result": ("t", {}, "result"),
    }[hook]
    with runtime.turn(session_id="s") as turn:
        if awaited:
            return asyncio.run(getattr(turn, f"a{hook}")(*args))
        outcome: ChainOutcome = getattr(turn, hook)(*args)
        return outcome


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "block"),
        ({"on_error": "pass"}, "pass"),
        ({"guard": True}, "block"),
        ({"guard": True, "on_error": "pass"}, "pass"),
        ({"guard": True, "on_store_error": "pass"}, "pass"),
        ({"guard": True, "on_error": "pass", "on_store_error": "block"}, "block"),
        ({"on_error": "pass", "on_store_error": "block"}, "block"),
        ({"hook": "transform_user_input"}, "pass"),
        ({"hook": "transform_user_input", "guard": True}, "block"),
        ({"hook": "transform_user_input", "on_store_error": "block"}, "block"),
        ({"hook": "before_llm_call", "on_store_error": "block"}, "block"),
        ({"hook": "transform_tool_result", "guard": True, "on_store_error": "pass"}, "pass"),
        ({"hook": "transform_tool_result", "guard": True}, "block"),
    ],
    ids=str,
)
def test_its_policy_decides(
    away: Path, options: dict[str, Any], expected: str, awaited: bool
) -> None:
    """`on_store_error` where it is given, else `on_error`, else the hook's default."""
    outcome = outcome_of(away, counting(**options), awaited=awaited)
    assert outcome.action == expected
    [step] = outcome.steps
    assert step.action == expected
    assert isinstance(outcome.errors[0].cause, StateError)
    assert "session state is unavailable" in str(outcome.errors[0])


def test_a_person_may_be_asked(away: Path) -> None:
    with Runtime([counting(guard=True, on_store_error="ask")], home=away).turn(
        session_id="s"
    ) as turn:
        assert turn.judge_tool_call("t", {}).action == "ask"


def test_another_failure_goes_by_on_error(away: Path) -> None:
    """Also a `StateError` for a value that cannot be stored wherever it is."""

    def wrong(session_state: Any) -> None:
        session_state[1] = 1

    handler = register_hook("intercept_tool_call", on_store_error="pass")(wrong)
    outcome = outcome_of(away, handler)
    assert outcome.blocked
    assert isinstance(outcome.errors[0].cause, StateError)
    assert not outcome.errors[0].cause.unavailable


def test_whatever_the_handler_does_with_its_state(away: Path) -> None:
    """Reads fail as writes do, and so does what `get_session_state` gives."""

    def get(session_state: Any) -> None:
        session_state.get("n", 0)

    def found(tool_name: str) -> None:
        get_session_state()["n"] = 1

    for body in (get, found):
        handler = register_hook("intercept_tool_call", guard=True)(body)
        assert outcome_of(away, handler).blocked


def test_one_that_leaves_its_state_alone_goes_on(away: Path) -> None:
    def unused(session_state: Any) -> None:
        session_state.lock  # noqa: B018 - naming it is no use of the store

    assert not outcome_of(away, register_hook("intercept_tool_call")(unused)).blocked


def test_it_is_not_suspended_and_goes_on_when_the_store_does(away: Path) -> None:
    """However often it failed: no failure of the store is the handler's own."""

    @register_hook("transform_user_input")
    def greet(session_state: Any) -> Any:
        return HookResult.rewrite(f"turn {session_state.count('turns')}")

    told: list[str] = []
    runtime = Runtime([greet], home=away)
    runtime.on_store_problem = told.append
    failed: list[str] = []
    runtime.on_failure = failed.append
    for _ in range(7):
        with runtime.turn(session_id="s") as turn:
            assert turn.transform_user_input("hi").action == "pass"
    [line] = told
    assert str(away / "extensions-state.db") in line
    assert "Remove the folder" in line
    assert runtime.store_problem == line
    assert failed == []
    (away / "extensions-state.db").rmdir()
    with runtime.turn(session_id="s") as turn:
        assert turn.transform_user_input("hi").value == "turn 1"
    assert runtime.store_problem is None
    runtime.close()


def test_a_store_that_is_away_at_the_start_is_said(
    away: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before any handler needs it; the host learns of it whenever it asks."""
    with caplog.at_level(logging.WARNING, "hermes_ext"):
        runtime = Runtime.from_config(home=away, cwd=away)
    assert runtime.store_problem is not None
    assert runtime.store_problem in caplog.messages


@pytest.mark.parametrize("value", ["ignore", True, 1])
def test_the_option_is_checked(value: Any) -> None:
    with pytest.raises(RegistrationError, match="on_store_error"):
        counting(on_store_error=value)
    with pytest.raises(RegistrationError, match="on_store_error='ask' is for intercept_tool_call"):
        counting("before_llm_call", on_store_error="ask")
