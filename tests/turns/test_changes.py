"""What a line of the log says of calls and of changes: enough to see what was done, no secret."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext.turns.decisions.changes import call_of, changes_of

KEY = "AKIA" + "Z7Q4XK2M9T3B5N8P"
LONG = "x" * 5_000

TEXTS = {
    "a word": (
        "my password is hunter2",
        "my password is [withheld]",
        [{"removed": 7, "added": "[withheld]"}],
    ),
    "nothing": ("same", "same", []),
    "removed alone": ("keep this, drop that", "keep this", [{"removed": 11}]),
    "added alone": ("run the tests", "run the tests quickly", [{"added": "quickly"}]),
    "two places": (
        "tell anna and bert",
        "tell A and B",
        [{"removed": 4, "added": "A"}, {"removed": 4, "added": "B"}],
    ),
    "no half words": ("hunter2", "hunter3", [{"removed": 7, "added": "hunter3"}]),
    "a secret that was added": ("key: ?", f"key: {KEY}", [{"removed": 1, "added": "[redacted]"}]),
    "a value behind a name": (
        "password: Xk39fjQ02mLp",
        "password: Zt71gwR84nKq",
        [{"removed": 12, "added": "[redacted]"}],
    ),
    "parts": (
        [{"type": "text", "text": "say hunter2"}, {"type": "image_url", "image_url": {}}],
        [{"type": "text", "text": "say ***"}, {"type": "image_url", "image_url": {}}],
        [{"removed": 7, "added": "***"}],
    ),
    "messages": (
        [{"role": "user", "content": "say hunter2"}, {"role": "assistant", "content": "ok"}],
        [{"role": "user", "content": "say ***"}, {"role": "assistant", "content": "ok"}],
        [{"removed": 7, "added": "***"}],
    ),
    "lines far apart": (
        "\n".join([*map(str, range(900)), "pw hunter2", *map(str, range(900, 1800)), "pw hunter3"]),
        "\n".join([*map(str, range(900)), "pw ***", *map(str, range(900, 1800)), "pw ***"]),
        [{"removed": 7, "added": "***"}, {"removed": 7, "added": "***"}],
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_of_a_text_what_was_removed_is_counted(case: str) -> None:
    """What came in its place is shown, without secrets."""
    before, after, expected = TEXTS[case]
    told = changes_of(before, after)
    assert [{**each, **_stripped(each)} for each in told] == expected


def _stripped(change: dict[str, Any]) -> dict[str, Any]:
    return {"added": change["added"].strip()} if "added" in change else {}


WORD = st.text("abcdefghij", min_size=4, max_size=8)


@settings(deadline=None, max_examples=200)
@given(st.lists(WORD), st.lists(WORD), st.sampled_from([" ", "\n", ", "]))
def test_no_word_that_was_removed_is_told(before: list[str], after: list[str], blank: str) -> None:
    """Whatever stood before, what is told is in the new text."""
    told = changes_of(blank.join(before), blank.join(after))
    shown = [change["added"] for change in told if "added" in change]
    new = blank.join(after)
    assert all(each in new or each == "[redacted]" or "characters)" in each for each in shown)
    assert not any(word in each for each in shown for word in before if word not in new)
    assert bool(told) is (before != after)


ARGUMENTS = {
    "a command": (
        {"command": "ls", "timeout": 5},
        {"command": "ls -l", "timeout": 5},
        [{"argument": "command", "from": "ls", "to": "ls -l"}],
    ),
    "other values": (
        {"n": 1, "all": [1], "gone": None},
        {"n": 2, "all": [1, 2], "new": True},
        [
            {"argument": "n", "from": "1", "to": "2"},
            {"argument": "all", "from": "[1]", "to": "[1, 2]"},
            {"argument": "gone", "from": "null"},
            {"argument": "new", "to": "true"},
        ],
    ),
    "a secret in a command": (
        {"command": "mysql --password=hunter2hunter2 x"},
        {"command": "mysql x"},
        [{"argument": "command", "from": "mysql --password=[redacted] x", "to": "mysql x"}],
    ),
    "a secret by its name": (
        {"api_key": "one-Secret-1"},
        {"api_key": "$KEY"},
        [{"argument": "api_key", "from": "[redacted]", "to": "$KEY"}],
    ),
    "a content": (
        {"path": "a", "content": "one\nhunter2\n"},
        {"path": "a", "content": "one\n***\n"},
        [{"argument": "content", "removed": 7, "added": "***"}],
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_from_what_to_what(case: str) -> None:
    """Each that changed; of long texts only what was added."""
    before, after, expected = ARGUMENTS[case]
    assert changes_of(before, after) == expected


class Odd:
    """A value that can neither be compared nor written."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        raise ValueError("not to be shown")

    __repr__ = __str__


def test_values_of_any_class() -> None:
    """None of their own code is run."""
    assert changes_of({"a": Odd(), "b": 1}, {"a": Odd(), "b": [Odd()]}) == [
        {"argument": "b", "from": "1", "to": '["Odd"]'}
    ]
    assert call_of({"a": Odd()}) == '{"a": "Odd"}'


def test_a_long_command_has_its_begin_and_its_end() -> None:
    """What was added at the end of a long command is seen."""
    (told,) = changes_of({"command": f"echo {LONG}"}, {"command": f"echo {LONG} && ls"})
    assert told["from"].startswith("echo xxx")
    assert told["to"].endswith("x && ls")
    assert len(told["to"]) < 250
    assert "5011 characters" in told["to"]


def test_where_a_long_command_is_cut() -> None:
    """190 characters are shown whole, of more the first 140 and the last 50."""
    assert call_of({"command": "a" * 190}) == "a" * 190
    shown = call_of({"command": "a" * 150 + "b" * 150})
    assert shown == f"{'a' * 140} … (300 characters) … {'b' * 50}"


def test_of_many_changes_the_first_are_told() -> None:
    """The others are counted."""
    told = changes_of({str(n): 0 for n in range(20)}, {str(n): 1 for n in range(20)})
    assert len(told) == 9
    assert told[-1] == {"more": 12}


CALLS = [
    ({"command": "rm -rf build"}, "rm -rf build"),
    ({"content": "x", "path": "a.py"}, "a.py"),
    ({"workdir": "/w", "code": "print(1)"}, "print(1)"),
    ({"n": 1, "text": "hello"}, "hello"),
    ({"n": 1, "of": [2]}, '{"n": 1, "of": [2]}'),
    ({"path": " ", "query": "a"}, "a"),
    ({"urls": ["a", "b"]}, '["a", "b"]'),
    ({"command": f"curl -H 'Authorization: Bearer {KEY}' x"}, "curl -H 'Authorization: Bearer [r"),
    ({"token": "one-Secret-1"}, "[redacted]"),
    ({}, None),
    (None, None),
    ("text", None),
]


@pytest.mark.parametrize(("args", "told"), CALLS, ids=lambda value: str(value)[:30])
def test_what_a_call_is(args: Any, told: str | None) -> None:
    """Its command, else the argument that says most."""
    assert (call_of(args) or "").startswith(told) if told else call_of(args) is None


def test_the_cut_end_of_a_very_long_command_is_left_out() -> None:
    """It may be the rest of a secret whose begin nobody looked at."""
    shown = call_of({"command": "echo " + "a b " * 60_000 + KEY}) or ""
    assert KEY not in shown
    assert len(shown) < 250


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("abc " * 500_000, "abd " * 500_000),
        ("a b " * 190, "b a " * 190),
        ("a\n" * 1_990, "b\na\n" * 990),
        ("a" * 3_000_000, "a" * 2_999_999 + "b"),
    ],
    ids=["long", "words", "lines", "one word"],
)
def test_it_takes_no_time(before: str, after: str) -> None:
    """The writing of the log is not held up by any value."""
    began = time.process_time()
    assert changes_of(before, after)
    assert time.process_time() - began < 10  # half a second on a machine that does nothing else
