"""`ChainOutcome.decider`: the chain itself records which handler decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.chains import SCOPE, chain, handler, outcome_of

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.chain.fold import arun
from hermes_ext.chain.outcome import ChainOutcome
from hermes_ext.hooks.handler import Handler
from hermes_ext.testing._outcomes import describe
from hermes_ext.turns.approval import ApprovalRequest


def passes(tool_args: Any) -> None:
    return None


def asks(tool_args: Any) -> HookResult:
    return HookResult.ask("sure?")


def blocks(tool_args: Any) -> HookResult:
    return HookResult.block("no")


def answers(tool_args: Any) -> HookResult:
    return HookResult.answer("done")


def confines(tool_args: Any) -> HookResult:
    return HookResult.confine(reason="read-only")


def rewrites(tool_args: Any) -> HookResult:
    return HookResult.rewrite({**tool_args, "command": tool_args["command"] + "!"})


def keeps(tool_args: Any) -> HookResult:
    return HookResult.rewrite({**tool_args})


def fails(tool_args: Any) -> None:
    raise ValueError("broken")


def says_why(tool_args: Any) -> HookResult:
    return HookResult.pass_(metadata={"setting": "a"})


def _named(function: Callable[..., Any], name: str, **options: Any) -> Handler:
    return handler(function, extension=name, **options)


CASES = {
    "nobody": ([_named(passes, "a"), _named(passes, "b")], None),
    "a block after a question": ([_named(asks, "a"), _named(blocks, "b")], "b"),
    "an answer after a question": ([_named(asks, "a"), _named(answers, "b")], "b"),
    "a block after a rewrite": ([_named(rewrites, "a"), _named(blocks, "b", guard=True)], "b"),
    "a failure after a question": ([_named(asks, "a"), _named(fails, "b")], "b"),
    "a failure in a chain without more": ([_named(passes, "a"), _named(fails, "b")], "b"),
    "a failure that asks": ([_named(fails, "a", on_error="ask"), _named(asks, "b")], "a"),
    "a failure that lets pass": ([_named(fails, "a", on_error="pass"), _named(passes, "b")], "a"),
    "a rewrite beside a failure": (
        [_named(rewrites, "a"), _named(fails, "b", on_error="pass")],
        "a",
    ),
    "the first of two questions": ([_named(asks, "a"), _named(asks, "b")], "a"),
    "a question about what was rewritten": ([_named(rewrites, "a"), _named(asks, "b")], "b"),
    "the first of two that confine": ([_named(confines, "a"), _named(confines, "b")], "a"),
    "a confinement of what was rewritten": ([_named(rewrites, "a"), _named(confines, "b")], "b"),
    "a rewrite of what is confined": ([_named(confines, "a"), _named(rewrites, "b")], "a"),
    "a question about what is confined": ([_named(confines, "a"), _named(asks, "b")], "b"),
    "a block of what is confined": ([_named(confines, "a"), _named(blocks, "b")], "b"),
    "the last that changed": ([_named(rewrites, "a"), _named(rewrites, "b")], "b"),
    "not the one that changed nothing": ([_named(rewrites, "a"), _named(keeps, "b")], "a"),
    "a rewrite that changes nothing": ([_named(passes, "a"), _named(keeps, "b")], "b"),
    "who names a setting and passes": ([_named(says_why, "a"), _named(passes, "b")], "a"),
    "an observed block": ([_named(blocks, "a", observe=True), _named(passes, "b")], None),
    "an observed question before a block": (
        [_named(asks, "a", observe=True), _named(blocks, "b")],
        "b",
    ),
    "an observed rewrite after a rewrite": (
        [_named(rewrites, "a"), _named(rewrites, "b", observe=True)],
        "a",
    ),
    "an observed failure": ([_named(fails, "a", observe=True), _named(passes, "b")], None),
    "a guard with a time limit": ([_named(asks, "a"), _named(blocks, "b", guard=True)], "b"),
}


def _who(outcome: ChainOutcome) -> str | None:
    return None if outcome.decider is None else outcome.decider.extension


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
def test_who_decided(case: str, strict: bool) -> None:
    """It is the handler whose result the outcome is; the JSON has its number among the steps."""
    handlers, who = CASES[case]
    for outcome in (
        outcome_of(*handlers, strict=strict),
        asyncio.run(arun(chain(*handlers), _call(), SCOPE, strict=strict)),
    ):
        assert _who(outcome) == who
        data = outcome.to_json()
        assert (data["steps"][data["decider"]]["extension"] if "decider" in data else None) == who
        if outcome.blocked:
            assert outcome.blocked_by == who


def _call() -> Any:
    from tests.chains import EVENTS

    return EVENTS["intercept_tool_call"]


def test_many_handlers_in_front() -> None:
    """However far behind the others it stands."""
    for function in (blocks, fails, rewrites):
        before = [_named(passes, f"n{n}") for n in range(40)]
        outcome = outcome_of(*before, _named(function, "z"))
        assert _who(outcome) == "z"


def test_injections() -> None:
    """The last that injected; a text for the system prompt outweighs one for the user."""

    def system(messages: Any) -> HookResult:
        return HookResult.inject_system("s")

    def user(messages: Any) -> HookResult:
        return HookResult.inject_user("u")

    def made(*functions: Any) -> list[Handler]:
        return [
            handler(each, "before_llm_call", extension=f"{n}") for n, each in enumerate(functions)
        ]

    assert _who(outcome_of(*made(user, system, user))) == "1"
    assert _who(outcome_of(*made(system, system, user))) == "1"
    assert _who(outcome_of(*made(user, user))) == "1"


# -- answered questions ---------------------------------------------------------------------------


def asking(name: str) -> Any:
    def ask(tool_args: Any) -> HookResult:
        return HookResult.ask(f"{name}?")

    ask.__module__ = name
    return register_hook("intercept_tool_call")(ask)


def settled(*refused: str, awaited: bool = False) -> ChainOutcome:
    """The outcome of three questions, of which a person says no to these."""

    def approver(request: ApprovalRequest) -> bool:
        return request.extension not in refused

    runtime = Runtime([asking(name) for name in "abc"], approver=approver)
    with runtime.turn(session_id="s") as turn:
        if awaited:
            return asyncio.run(turn.aintercept_tool_call("terminal", {"command": "ls"}))
        return turn.intercept_tool_call("terminal", {"command": "ls"})


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("who", ["a", "b", "c"])
def test_whose_question_was_refused(who: str, awaited: bool) -> None:
    """The asker whose question got the no: in the outcome, the refusal and the text."""
    outcome = settled(who, awaited=awaited)
    assert (outcome.blocked_by, _who(outcome)) == (who, who)
    assert outcome.message == f"Not approved: {who}?"
    assert f'"extension": "{who}"' in str(outcome.as_tool_result())
    assert outcome.to_json()["approved"] is False


def test_all_questions_approved() -> None:
    """The first asker; all of them are listed."""
    outcome = settled()
    assert (outcome.approved, _who(outcome), outcome.blocked_by) == (True, "a", None)
    assert [ask.extension for ask in outcome.asks] == ["a", "b", "c"]


def test_a_host_that_answers_by_itself() -> None:
    """`resolved` names the ask that it is given; without one the no is to all of them."""
    outcome = outcome_of(_named(asks, "a"), _named(asks, "b"))
    second = outcome.resolved(False, by="person", refused=outcome.asks[1])
    assert (second.blocked_by, _who(second), second.message) == ("b", "b", "Not approved: sure?")
    all_of_them = outcome.resolved(False)
    assert (all_of_them.blocked_by, _who(all_of_them)) == ("a", "a")
    assert all_of_them.message == "Not approved: sure?; sure?"


def test_a_question_that_nobody_was_asked() -> None:
    """What asked before a block was neither approved nor refused."""
    outcome = outcome_of(_named(asks, "a"), _named(blocks, "b"))
    data = outcome.to_json()
    assert [ask["extension"] for ask in data["asks"]] == ["a"]
    assert "approved" not in data
    assert outcome.settled is None
    assert "asked by a, not answered: sure?" in describe(outcome)


def test_the_runtime_itself() -> None:
    """No handler decided what the runtime refuses."""
    outcome = ChainOutcome.refused("closed", "hermes-ext")
    assert outcome.decider is None
    assert outcome.blocked_by == "hermes-ext"


# -- settings -------------------------------------------------------------------------------------


def test_settings_are_those_that_it_was_given() -> None:
    """The values that the handler's own settings had, whatever form the key is written in."""
    config = {"words": ["rm"], "limits": {"a": 1, "api_key": "hush"}}

    def careful(tool_args: Any) -> HookResult:
        named = ["extensions.Ext.words[0]", "limits", "elsewhere"]
        return HookResult.block("no", metadata={"setting": named})

    step = outcome_of(handler(careful, config=config)).decider
    assert step is not None
    assert [(each.key, each.value) for each in step.settings] == [
        ("extensions.ext.words", ["rm"]),
        ("extensions.ext.limits.a", 1),
        ("extensions.ext.limits.api_key", "hush"),
        ("elsewhere", None),
    ]
    assert [each["value"] for each in step.to_json()["settings"]] == [
        ["rm"],
        1,
        "[redacted]",
        None,
    ]
