"""What a person is shown of a call, and what their yes covers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext._text import printable
from hermes_ext.turns.approval import ApprovalRequest, nobody_there

NAMES = st.text(min_size=1, max_size=12)
VALUES = st.one_of(st.text(), st.integers(), st.lists(st.text(max_size=5)))


def request(args: dict[str, Any], reason: str = "Really?") -> ApprovalRequest:
    return ApprovalRequest("careful", "ask", "write_file", args, reason, "careful:ask:k")


@given(st.dictionaries(NAMES, VALUES, max_size=8), st.text(min_size=1))
def test_what_is_shown_is_two_printable_lines(args: dict[str, Any], reason: str) -> None:
    """Extension and reason, tool and arguments; nothing of it can redraw or break a line."""
    first, second = request(args, reason).describe().split("\n")
    assert (first, second) == (printable(first), printable(second))
    assert first.startswith("[careful] ")
    assert second.startswith("write_file {")
    for name in args:
        # A name that is longer than 80 characters, as it is shown, is cut and says so.
        shown = printable(json.dumps(name, ensure_ascii=False))
        assert (shown if len(shown) <= 80 else shown[:40]) in second


def test_a_long_argument_hides_no_other() -> None:
    """Each argument is cut by itself and says so; short ones stand before long ones."""
    shown = request({"content": "X" * 5000, "path": "/etc/passwd", "why": "Y" * 5000}).call_text
    assert shown.startswith('write_file {"path": "/etc/passwd", "content": "XXX')
    assert shown.count("of 5,002 characters left out)") == 2
    assert len(shown) < 2000


def test_both_ends_of_what_is_long_are_shown() -> None:
    """The last word of a command may be what matters; all of it is there for a file."""
    asked = request({"command": "echo " + "\u202ex " * 3000 + "\n; rm -rf data"})
    shown = asked.call_text
    assert shown.startswith('write_file {"command": "echo ')
    assert shown.endswith('; rm -rf data"}')
    ((left_out, whole),) = re.findall(r"\(([\d,]+) of ([\d,]+) characters left out\)", shown)
    there = sum(map(len, re.split(r"… \(.*\) …", shown)))
    total = there + int(left_out.replace(",", "")) - int(whole.replace(",", ""))
    assert total == len('write_file {"command": }')
    assert asked.is_cut
    assert asked.full_text.endswith("\n; rm -rf data\n")
    assert asked.full_text.count("\\u202ex ") == 3000


def test_what_is_shown_whole_is_not_cut() -> None:
    """A short call needs no file; a long reason does."""
    assert not request({"command": "rm -rf data"}).is_cut
    assert request({"command": "ls"}, reason="R" * 500).is_cut
    shown = request({}, reason="R" * 1000).reason_text
    half = "R" * 200
    assert shown == f"[careful] {half}… (600 of 1,000 characters left out) …{half}"
    room = 1200 - len('""')  # for each argument
    assert not request({"command": "x" * room}).is_cut
    assert request({"command": "x" * (room + 1)}).is_cut


def test_a_great_many_arguments_are_cut_too() -> None:
    """Whatever a call holds, what is shown fits a screen, and says that it was cut."""
    shown = request({f"argument{n}": "x" * 100 for n in range(500)}, "R" * 5000)
    assert len(shown.describe()) < 3500
    assert "of 5,000 characters left out" in shown.reason_text
    assert "characters left out" in shown.call_text


def test_a_yes_covers_what_was_cut() -> None:
    """Calls that look alike because they are cut are not alike."""
    asked: list[ApprovalRequest] = []

    @register_hook("intercept_tool_call", guard=True)
    def careful(tool_name: str) -> HookResult[Any]:
        return HookResult.ask("Really?")

    runtime = Runtime([careful], approver=lambda each: not asked.append(each))
    with runtime.turn(session_id="s") as turn:
        for end in ("a", "b", "a"):
            args = {"path": "x", "content": "X" * 5000 + end + "X" * 5000}
            turn.intercept_tool_call("write_file", args, tool_call_id="")
    shown, keys = {each.call_text for each in asked}, [each.rule_key for each in asked]
    assert len(shown) == 1
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    ("reason", "told"), [("May it", "May it."), ("No.", "No."), ("Go?", "Go?")]
)
def test_where_nobody_can_be_asked(reason: str, told: str) -> None:
    """The reason is a sentence, and what follows is another."""
    message = nobody_there(request({}, reason=reason), approve=False).message
    assert message is not None
    assert message.startswith(f"{told} This needs a person's approval")
