"""In which turns the model is reminded, and where the text stands."""

from __future__ import annotations

from pathlib import Path

from hermes_ext.testing import LoadedExtension, LoadExtension, assert_injected, assert_passed

EXTENSION = Path(__file__).parents[1]
CONFIG = {"every": 3, "text": "Keep it short."}


def reminded(extension: LoadedExtension, session_id: str = "test", **options: str) -> bool:
    """A turn with two requests: whether its first one reminds; the second has the same text."""
    with extension.turn(session_id, **options) as turn:
        told = bool(turn.request("hello").user_injections)
        first = turn.sent.messages
        assert_passed(turn.request([{"role": "user", "content": "hello"}, {"role": "assistant"}]))
        assert ("Keep it short." in str(turn.sent.messages)) is told
        assert turn.sent.messages[0] == first[0] or not told
    return told


def test_once_in_three_turns(load_extension: LoadExtension) -> None:
    """The first, the fourth, …, over restarts, in each conversation by itself."""
    extension = load_extension(EXTENSION, config=CONFIG)
    assert [reminded(extension) for _ in range(4)] == [True, False, False, True]
    assert reminded(extension, "other")
    extension.restart()
    assert [reminded(extension) for _ in range(3)] == [False, False, True]


def test_subagents_turns_do_not_count(load_extension: LoadExtension) -> None:
    """Nor do reviews in the background."""
    extension = load_extension(EXTENSION, config=CONFIG)
    assert reminded(extension)
    for origin in ("subagent", "background"):
        for _ in range(3):
            assert not reminded(extension, "child", conversation_id="test", origin=origin)
    assert [reminded(extension) for _ in range(3)] == [False, False, True]


def test_every_turn(load_extension: LoadExtension) -> None:
    """`every: 1`, with turns open at once."""
    extension = load_extension(EXTENSION, config={**CONFIG, "every": 1})
    with extension.turn("one") as one, extension.turn("two") as two:
        for turn in (one, two):
            assert_injected(turn.request(), "Keep it short", where="user")
