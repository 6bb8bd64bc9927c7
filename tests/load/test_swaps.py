"""Handlers that are exchanged while threads call them."""

from __future__ import annotations

from tests.chains import handler
from tests.load import swaps

from hermes_ext import HookResult, Runtime
from hermes_ext.chain.manager import HookManager


def test_no_call_is_torn() -> None:
    """Eight threads call while the handlers are exchanged: each call has one generation, whole.

    `python -m tests.load.swaps` does it a million times.
    """
    figures = swaps.run(3_000)
    assert figures.torn == ()
    assert figures.calls >= 8
    assert figures.generations > 1


def test_what_stays_in_a_turn_survives_its_handler() -> None:
    """A text for the rest of the turn stays where it is though its handler is exchanged."""

    def old() -> HookResult:
        return HookResult.inject_system("of the old one", keep="turn")

    def new() -> HookResult:
        return HookResult.inject_system("of the new one")

    runtime = Runtime([handler(old, "before_llm_call", extension="old")])
    with runtime.turn(session_id="s") as turn:
        turn.before_llm_call([{"role": "user", "content": "hi"}])
        runtime.manager = HookManager(
            [handler(new, "before_llm_call", extension="new")], runtime.manager
        )
        messages = [{"role": "user", "content": "hi"}]
        outcome = turn.before_llm_call(messages)
        _, system = turn.apply(outcome, messages, "You help.")
    assert system.split("\n\n") == ["You help.", "of the new one", "of the old one"]
