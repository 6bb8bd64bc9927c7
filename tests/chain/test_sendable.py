"""What a host can send of what handlers return: any text, and values that JSON has."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.chains import EVENTS, handler, outcome_of

from hermes_ext import Action, HookResult, UserInput
from hermes_ext.hooks.sendable import DEEPEST, sendable

ODD = "aé\0\x1b\ud800\udce9\udfff\U0001d538"
ANY_TEXT = st.text(st.sampled_from(ODD) | st.characters())
LATIN_1 = b"caf\xe9.md".decode("utf-8", "surrogateescape")


def as_the_host(text: str) -> str:
    """What Hermes makes of a text that it is about to send."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def returning(result: Any) -> Any:
    def answer(session_id):
        return result() if callable(result) else result

    return answer


def outcome(hook: str, result: Any, **options: Any) -> Any:
    return outcome_of(handler(returning(result), hook), **options)


@given(ANY_TEXT.filter(str.strip))
@example(LATIN_1)
@example("\ud83d\ude00")  # two halves that were never joined
def test_texts(text: str) -> None:
    """Each action's text arrives as a host would send it, whatever is in it."""
    expected = as_the_host(text)
    request = "before_llm_call"
    assert outcome(request, HookResult.inject_system(text)).system_injections == (expected,)
    assert outcome(request, HookResult.inject_user(text)).user_injections == (expected,)
    assert outcome(request, HookResult.answer(text)).value == expected
    assert outcome(request, HookResult.block(text)).message == expected
    assert outcome("intercept_tool_call", HookResult.answer(text)).value == expected
    assert outcome("intercept_tool_call", HookResult.ask(text)).asks[0].reason == expected
    assert outcome("transform_user_input", HookResult.rewrite(text)).value == expected
    assert outcome("transform_tool_result", HookResult.rewrite(text)).value == expected
    expected.encode("utf-8")


@given(ANY_TEXT)
@example(LATIN_1)
def test_messages_and_parts(text: str) -> None:
    """At any depth, in keys too."""
    assume(as_the_host(text) not in ("role", "content"))  # keys that the message has itself
    messages = [{"role": "user", "content": [{"type": "text", "text": text}], text: {"k": text}}]
    expected = as_the_host(text)
    seen = outcome("before_llm_call", HookResult.rewrite(messages)).value
    assert seen[0]["content"] == [{"type": "text", "text": expected}]
    assert seen[0][expected] == {"k": expected}
    event = UserInput("hello", [{"type": "text", "text": "hello"}])
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": text}}]
    seen = outcome("transform_user_input", HookResult.rewrite(parts), event=event).value
    assert [part.get("text") for part in seen] == [expected, None]
    json.dumps(seen, ensure_ascii=False).encode("utf-8")


def test_untouched_messages_are_the_hosts() -> None:
    """What a handler leaves alone is neither looked at nor copied."""
    theirs = {"role": "user", "content": LATIN_1, "kept": object()}
    event = type(EVENTS["before_llm_call"])([theirs])

    def add(messages):
        messages.append({"role": "user", "content": "more"})
        return HookResult.rewrite(messages)

    seen = outcome_of(handler(add, "before_llm_call"), event=event).value
    assert list.__getitem__(seen, 0) is theirs


def circular() -> Any:
    value: dict[str, Any] = {"role": "user"}
    value["content"] = [value]
    return value


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


NOT_JSON = {
    "nan": math.nan,
    "infinity": -math.inf,
    "a very long number": 10**5_000,
    "bytes": b"x",
    "an object": object(),
    "a lock": threading.Lock(),
    "a set": {1},
    "a key that is no text": {1: "x"},
    "a circle": circular(),
    "deep": nested(DEEPEST + 1),
    "very deep": nested(100_000),
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize(
    ("hook", "made"),
    [
        ("before_llm_call", lambda value: [{"role": "user", "content": value}]),
        ("transform_user_input", lambda value: [{"type": "text", "text": "x", "more": value}]),
        ("intercept_tool_call", lambda value: {"command": "ls", "more": value}),
    ],
)
def test_what_json_does_not_have(hook: str, made: Any, value: Any) -> None:
    """A value that cannot be sent is the failure of the handler that returned it."""
    seen = outcome(hook, HookResult.rewrite(made(value)), event=EVENTS[hook])
    (error,) = seen.errors
    assert (error.kind, error.extension, error.hook) == ("invalid-result", "ext", hook)
    assert not seen.changed


def test_the_error_says_where() -> None:
    """Down to the element."""
    messages = [{"role": "user", "content": [{"n": math.nan}]}]
    (error,) = outcome("before_llm_call", HookResult.rewrite(messages)).errors
    assert "nan at $[0].content[0].n, which JSON does not have" in str(error)


def test_arguments_are_not_replaced() -> None:
    """Another text in an argument is another file: the call is refused instead."""
    seen = outcome("intercept_tool_call", HookResult.rewrite({"command": f"rm {LATIN_1}"}))
    assert seen.action is Action.BLOCK
    assert "a lone surrogate at $.command" in str(seen.errors[0])


def test_arguments_that_came_so() -> None:
    """A model can send such arguments, and a handler may change the rest of them."""
    event = type(EVENTS["intercept_tool_call"])("terminal", {"command": f"ls {LATIN_1}"}, "c1")
    new = {"command": f"ls {LATIN_1}", "timeout": 5}
    seen = outcome("intercept_tool_call", HookResult.rewrite(new), event=event)
    assert (seen.action, seen.value) == (Action.REWRITE, new)


def test_keys_of_questions_stay_apart() -> None:
    """A yes to one file is not a yes to another whose name is not text either."""
    one, other = (
        outcome("intercept_tool_call", HookResult.ask("why", key=name)).asks[0].key
        for name in ("caf\udce9", "caf\udce8")
    )
    assert one != other
    assert one.isascii()


def test_a_value_that_changes_later() -> None:
    """What was looked at is what is sent: the handler's own object is another."""
    parts = [{"type": "text", "text": "x"}]
    event = UserInput("before", [{"type": "text", "text": "before"}])
    seen = outcome("transform_user_input", HookResult.rewrite(parts), event=event)
    parts[0]["text"] = LATIN_1
    assert seen.value[0]["text"] == "x"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inside: st.lists(inside) | st.dictionaries(ANY_TEXT, inside),
)


@given(JSON)
def test_any_json(value: Any) -> None:
    """It can be encoded, and what needs no change is the very same object."""
    clean = sendable(value)
    text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    assert sendable(clean) is clean
    if as_the_host(json.dumps(value, ensure_ascii=False)) == json.dumps(value, ensure_ascii=False):
        assert clean is value
