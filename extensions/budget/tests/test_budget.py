"""What is counted, where, and what happens at the limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import Bundled, readme_of, schema_of

from hermes_ext import ChainOutcome, Turn

HELLO = [{"role": "user", "content": "hello"}]


def blocked(turn: Turn, count: int) -> list[bool]:
    """Whether each of so many tool calls is refused."""
    return [turn.intercept_tool_call("read_file", {"path": str(n)}).blocked for n in range(count)]


def asked(turn: Turn, count: int) -> list[ChainOutcome]:
    return [turn.before_llm_call(HELLO, "system", api_call_count=n) for n in range(count)]


def test_tool_calls_of_a_turn(tmp_path: Path) -> None:
    """The next turn, and another session's, begin at zero."""
    on = Bundled(tmp_path, "budget", per_turn={"tool_calls": 2})
    for session in ("s1", "s1", "s2"):
        with on.turn(session_id=session) as turn:
            assert blocked(turn, 3) == [False, False, True]


def test_parallel_calls_are_counted_exactly(tmp_path: Path) -> None:
    on = Bundled(tmp_path, "budget", per_turn={"tool_calls": 25})
    with on.turn() as turn, ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: blocked(turn, 1)[0], range(60)))
    assert outcomes.count(False) == 25


def test_tool_calls_of_a_conversation(tmp_path: Path) -> None:
    """Over turns, sessions of one conversation, subagents, and a restart."""
    on = Bundled(tmp_path, "budget", per_conversation={"tool_calls": 4})
    with on.turn(conversation_id="c") as turn:
        assert blocked(turn, 2) == [False, False]
    child = {"session_id": "child", "conversation_id": "c", "is_subagent": True}
    with on.turn(**child) as turn:
        assert blocked(turn, 1) == [False]
    on.runtime.close()
    on.restarted(per_conversation={"tool_calls": 4})
    with on.turn(session_id="resumed", conversation_id="c") as turn:
        assert blocked(turn, 2) == [False, True]
    with on.turn(conversation_id="another") as turn:
        assert blocked(turn, 1) == [False]


def test_where_nothing_can_be_stored(tmp_path: Path) -> None:
    """The limits of a turn hold; one of the conversation, which cannot be counted, refuses."""
    on = Bundled(tmp_path, "budget", per_turn={"tool_calls": 2, "requests": 2})
    on.without_store()
    with on.turn() as turn:
        assert blocked(turn, 3) == [False, False, True]
        assert [each.blocked for each in asked(turn, 3)] == [False, False, True]
    for limit in ("tool_calls", "requests"):
        on.restarted(per_conversation={limit: 100})
        with on.turn() as turn:
            assert blocked(turn, 1) == [limit == "tool_calls"]
            assert asked(turn, 1)[0].blocked == (limit == "requests")


def test_what_the_turn_refuses_does_not_use_the_conversation(tmp_path: Path) -> None:
    """Neither tool calls, nor requests, nor the tokens of a request that is not sent."""
    one, three = {"tool_calls": 1, "requests": 1}, {"tool_calls": 3, "requests": 3}
    on = Bundled(tmp_path, "budget", per_turn=one, per_conversation=three)
    for _ in range(3):
        with on.turn(conversation_id="c") as turn:
            assert blocked(turn, 4) == [False, True, True, True]
            assert [each.blocked for each in asked(turn, 2)] == [False, True]
    with on.turn(conversation_id="c") as turn:
        assert blocked(turn, 1) == [True]
        assert "per_conversation.requests" in str(asked(turn, 1)[0].message)


def test_the_last_request_is_told_and_there_is_none_beyond(tmp_path: Path) -> None:
    on = Bundled(tmp_path, "budget", per_turn={"requests": 2}, warn_at=None)
    with on.turn() as turn:
        first, last, beyond = asked(turn, 3)
    assert first.action == "pass"
    assert [str(text) for text in last.system_injections] == [
        "This is the last request of the budget: answer now, without any tool."
    ]
    assert beyond.blocked
    assert "extensions.budget.per_turn.requests" in str(beyond.message)


def test_the_model_is_told_once_that_it_gets_short(tmp_path: Path) -> None:
    on = Bundled(tmp_path, "budget", per_turn={"tool_calls": 10}, warn_at=0.5)
    with on.turn() as turn:
        blocked(turn, 4)
        assert not asked(turn, 1)[0].system_injections
        blocked(turn, 1)
        told, again = asked(turn, 2)
    assert "5 of 10 tool calls of this turn" in str(told.system_injections[0])
    assert not again.system_injections


def test_tokens(tmp_path: Path) -> None:
    """A quarter of the characters at each request; a shorter history is read anew."""
    on = Bundled(tmp_path, "budget", per_turn={"tokens": 1_000}, warn_at=None)
    long = [{"role": "user", "content": "x" * 2_000}]
    with on.turn() as turn:
        assert not turn.before_llm_call(long, "").blocked  # 500
        assert not turn.before_llm_call([*long, {"role": "assistant", "content": ""}], "").blocked
        assert turn.before_llm_call(long, "x" * 40).blocked
    parts: list[dict[str, Any]] = [{"type": "text", "text": "x" * 400}, {"type": "image_url"}]
    with on.turn() as turn:
        assert turn.before_llm_call([{"role": "user", "content": parts}], "").blocked


def test_many_short_messages_and_another_history_of_the_same_length(tmp_path: Path) -> None:
    """Characters are added up before they are divided; what was compressed is read anew."""
    on = Bundled(tmp_path, "budget", per_turn={"tokens": 1_000}, warn_at=None)
    short = [{"role": "user", "content": "xyz"}] * 1_000
    with on.turn() as turn:
        assert not turn.before_llm_call(short, "").blocked  # 750
        assert turn.before_llm_call([{"role": "user", "content": "x" * 1_004}] * 1_000, "").blocked
    with on.turn() as turn:
        assert not turn.before_llm_call([{"role": "user", "content": "x" * 3_000}], "").blocked
        small = [{"role": "user", "content": "x"}]
        assert not turn.before_llm_call(small, "").blocked


def test_without_limits_nothing_happens(tmp_path: Path) -> None:
    none = {"tool_calls": None, "requests": None, "tokens": None}
    on = Bundled(tmp_path, "budget", per_turn=none)
    with on.turn() as turn:
        assert not any(blocked(turn, 300))
        assert all(each.action == "pass" for each in asked(turn, 150))


@pytest.mark.parametrize("limit", [0, -1, "5", 1.5])
def test_bad_limits_are_refused(tmp_path: Path, limit: object) -> None:
    on = Bundled(tmp_path, "budget")
    with pytest.raises(AssertionError, match=r"per_turn\.tool_calls"):
        on.restarted(per_turn={"tool_calls": limit})


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("budget")["properties"].items():
        assert f"`{name}`" in readme_of("budget")
        assert "default" in setting
        assert setting["description"]
