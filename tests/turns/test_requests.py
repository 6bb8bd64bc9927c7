"""Injected text in a request: behind what is there, at its place, and never in the host's lists."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext._text import text_of
from hermes_ext.turns.requests import Kept, compose, split_system

SYSTEM = {"role": "system", "content": "base"}
USER = {"role": "user", "content": "hello"}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "done"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}

roles = st.sampled_from([USER, CALL, TOOL, {"role": "assistant", "content": "ok"}])
texts = st.lists(st.text(min_size=1, max_size=5), max_size=3)


def test_system_text_goes_behind_a_blank_line() -> None:
    """The base prompt stays first and byte for byte, injected texts follow in order."""
    composed = compose([SYSTEM, USER], system=["one", "two"])
    assert composed[0] == {"role": "system", "content": "base\n\none\n\ntwo"}


def test_system_text_behind_a_cached_block() -> None:
    """Where the provider caches the prompt as a block, the text becomes a block behind it."""
    cached = {"type": "text", "text": "base", "cache_control": {"type": "ephemeral"}}
    composed = compose([{"role": "system", "content": [cached]}, USER], system=["rule"])
    assert composed[0]["content"] == [cached, {"type": "text", "text": "rule"}]


def test_system_text_without_a_system_prompt() -> None:
    """Without a system prompt the text becomes one."""
    assert compose([USER], system=["rule"])[0] == {"role": "system", "content": "rule"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "hello\n\nnote"),
        ("", "note"),
        (None, "note"),
        ([], [{"type": "text", "text": "note"}]),
        (
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}],
            [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "u"}},
                {"type": "text", "text": "note"},
            ],
        ),
        (
            [{"type": "image_url", "image_url": {"url": "u"}}],
            [
                {"type": "image_url", "image_url": {"url": "u"}},
                {"type": "text", "text": "note"},
            ],
        ),
    ],
    ids=["text", "empty", "none", "no-parts", "text-and-image", "image-only"],
)
def test_user_text_in_a_user_message(content: Any, expected: Any) -> None:
    """It becomes a part of the last user message; images keep their place."""
    composed = compose([{"role": "user", "content": content}], user=["note"])
    assert composed == [{"role": "user", "content": expected}]


def test_user_text_after_tool_results() -> None:
    """After tool results it becomes a new user message, so that calls and results stay together."""
    composed = compose([SYSTEM, USER, CALL, TOOL], user=["note"])
    assert composed == [SYSTEM, USER, CALL, TOOL, {"role": "user", "content": "note"}]


def test_kept_text_stays_where_it_stood() -> None:
    """What is kept for the turn is put back at its first place, once, in the order it came."""
    kept = [Kept("user", "first", "e/h", 1), Kept("user", "second", "e/h", 1)]
    composed = compose([SYSTEM, USER, CALL, TOOL], kept=kept, user=["now"])
    assert composed[1] == {"role": "user", "content": "hello\n\nfirst\n\nsecond"}
    assert composed[2:] == [CALL, TOOL, {"role": "user", "content": "now"}]


def test_kept_text_after_the_history_was_shortened() -> None:
    """After compression the place may be gone; the text then stands at the end."""
    composed = compose([USER], kept=[Kept("user", "note", "e/h", 9)])
    assert composed == [{"role": "user", "content": "hello\n\nnote"}]


@given(st.lists(roles, max_size=6), texts, texts)
def test_the_hosts_messages_are_never_changed(
    messages: list[dict[str, Any]], system: list[str], user: list[str]
) -> None:
    """Whatever is injected, the host's list and dicts are as before; other messages are shared."""
    messages = [SYSTEM, *copy.deepcopy(messages)]
    before = copy.deepcopy(messages)
    composed = compose(messages, system=system, user=user)
    assert messages == before
    head, body = split_system(composed)
    assert head is not None
    assert head["content"].startswith("base")
    assert all(any(one is other for other in messages) for one in body[:-1])
    for text in system:
        assert text in text_of(head["content"])
    for text in user:
        assert text in text_of(body[-1]["content"])
