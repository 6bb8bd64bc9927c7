"""What makes the plan valid, and what is said when it is not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

Guard = Callable[..., Any]

PLAN = "plans/active/plan.md"
EDIT = ("write_file", {"path": "app.py", "content": "x"})

GOOD = """\
# Plan: retries

Status: approved

## 1. Goal

Try three times.

Tests
-----

One per error.
"""

RULES = {"headings": ["Goal", "tests"], "max_age_hours": 24, "status": "approved"}


def fault(guard: Any) -> str:
    """Why the plan does not count, as the model is told; empty if it does."""
    message = guard.call(*EDIT).message or ""
    _, found, rest = message.partition(f"There is no valid plan yet ({PLAN} ")
    return rest.partition("), so")[0] if found else message


def test_a_plan_that_keeps_all_rules(guarded: Guard) -> None:
    """Headings in any form and depth, a status and a recent change make it valid."""
    guard = guarded(plan=RULES)
    guard.write(PLAN, GOOD)
    assert fault(guard) == ""
    assert "There is a plan" in guard.instructions()[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("\ufeff \n\t\n", "is empty"),
        (GOOD.replace("## 1. Goal", "Goal"), 'has no heading "Goal"'),
        (GOOD.replace("Goal", "Goals"), 'has no heading "Goal"'),
        (
            GOOD.replace("Goal", "").replace("-----", ""),
            'has no heading "Goal" and has no heading "tests"',
        ),
        (GOOD.replace("## 1. Goal", "```\n## Goal\n```"), 'has no heading "Goal"'),
        (GOOD.replace("approved", "draft"), 'has no line "Status: approved"'),
        (GOOD.replace("approved", "not approved"), 'has no line "Status: approved"'),
        (GOOD.replace("Status: approved", ""), 'has no line "Status: approved"'),
        # The first one counts.
        (f"Status: draft\n{GOOD}", 'has no line "Status: approved"'),
    ],
)
def test_what_is_wrong_is_told(guarded: Guard, text: str, told: str) -> None:
    """Each rule that is broken is named, in the block and in the instructions."""
    guard = guarded(plan=RULES)
    guard.write(PLAN, text)
    assert fault(guard) == told
    assert f"There is no plan for this project yet: {PLAN} {told}." in guard.instructions()[0]


@pytest.mark.parametrize(
    "line",
    [
        "status: Approved",
        "**Status:** approved",
        "- Status : `approved`.",
        "> _STATUS_: approved  ",
    ],
)
def test_spellings_of_the_status(guarded: Guard, line: str) -> None:
    """Case, marks and white space around the status are free."""
    guard = guarded(plan={"status": "approved"})
    guard.write(PLAN, f"# Plan\n\n{line}\n")
    assert fault(guard) == ""


def test_a_status_in_another_language(guarded: Guard) -> None:
    """With a colon the setting is the whole line."""
    guard = guarded(plan={"status": "Freigabe: erteilt"})
    guard.write(PLAN, "# Plan\n\nStatus: erteilt\n")
    assert fault(guard) == 'has no line "Freigabe: erteilt"'
    guard.write(PLAN, "# Plan\n\nFreigabe: erteilt\n")
    assert fault(guard) == ""


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("## Goal", "# goal\n"),
        ("Goal", "== Goal ==\n"),
        ("Goal", "** Goal\n"),
        ("Goal", "Goal\n====\n"),
        ("Was zu tun ist", "### 2) *Was zu tun ist*:\n"),
        ("目标", "# 目标\n"),
    ],
)
def test_spellings_of_headings(guarded: Guard, heading: str, text: str) -> None:
    """Marks, numbers and case of a heading are free, in the setting and in the plan."""
    guard = guarded(plan={"headings": [heading]})
    guard.write(PLAN, text)
    assert fault(guard) == ""


@pytest.mark.parametrize(("hours", "valid"), [(1.9, True), (2.1, False), (-1.9, True), (-3, False)])
def test_age(guarded: Guard, hours: float, valid: bool) -> None:
    """A plan that was not changed lately is none, nor is one from a time to come."""
    guard = guarded(plan={"max_age_hours": 2})
    then = time.time() - hours * 3600
    os.utime(guard.write(PLAN), (then, then))
    assert fault(guard) == ("" if valid else "was not changed in the last 2 hours")


def test_what_is_no_file(guarded: Guard) -> None:
    """A directory, a pipe, a link and what lies behind a link are no plan, and are told so."""
    guard = guarded()
    plan = guard.root / PLAN
    plan.mkdir(parents=True)
    assert fault(guard) == "is a directory"
    plan.rmdir()
    os.mkfifo(plan)
    assert fault(guard) == "is not a regular file"
    plan.unlink()
    linked = "is a link, or lies behind one; plan_path has to name the file itself"
    guard.write("elsewhere/plan.md", GOOD)
    plan.symlink_to(guard.root / "elsewhere/plan.md")
    assert fault(guard) == linked
    plan.unlink()
    plan.parent.rmdir()
    plan.parent.symlink_to(guard.root / "elsewhere")
    assert fault(guard) == linked
    plan.parent.unlink()
    plan.parent.symlink_to("active")
    assert "There is no valid plan yet" in guard.call(*EDIT).message
    plan.parent.unlink()
    plan.parent.write_text("a file")
    assert "There is no plan yet" in guard.call(*EDIT).message


def test_a_plan_of_more_than_a_megabyte_is_none(guarded: Guard) -> None:
    """A plan is read in full up to that size."""
    guard = guarded(plan={"headings": ["Goal"]})
    guard.write(PLAN, f"{'x ' * 499_000}\n# Goal\n")
    assert fault(guard) == ""
    guard.write(PLAN, f"# Goal\n{'x ' * 500_000}")
    assert fault(guard) == "is larger than 1 MB"


def test_a_plan_of_marks_takes_no_time(guarded: Guard) -> None:
    """A plan that somebody made to be slow to read is read at once, and not for minutes."""
    guard = guarded(plan=RULES)
    for text in (
        "# - " * 240_000,
        f"# {'=' * 900_000} x",
        f"Status{'*' * 900_000}x",
        "#\n" * 400_000,
    ):
        guard.write(PLAN, f"{text}\n")
        assert 'has no heading "Goal"' in fault(guard)


def test_a_missing_plan_is_told_what_it_needs(guarded: Guard) -> None:
    """The model need not try what a plan has to have."""
    guard = guarded(plan=RULES)
    needs = 'It needs the heading "Goal", the heading "tests" and the line "Status: approved".'
    assert needs in guard.call(*EDIT).message
    assert f"{PLAN} is missing. {needs}" in guard.instructions()[0]


def test_a_confined_call_is_told_why(guarded: Guard) -> None:
    """In few words: what is wrong with the plan."""
    guard = guarded(plan=RULES)
    guard.write(PLAN, "# Tests\nStatus: approved\n")
    [reason] = guard.call("terminal", {"command": "make"}).confinement.reasons
    assert (reason.extension, reason.text) == ("workflow-guard", 'the plan has no heading "Goal"')


def test_a_person_says_yes_to_the_plan(guarded: Guard) -> None:
    """With `approval: ask` each change of the plan needs a person's yes, before and after."""
    guard = guarded(plan={"status": "approved", "approval": "ask"})
    guard.write(PLAN, "Status: draft\n")
    asked = []
    guard.runtime.approver = lambda request: asked.append(request.reason) or True
    calls = (
        ("write_file", {"path": PLAN, "content": "Status: approved"}),
        ("terminal", {"command": f"sed -i s/draft/approved/ {PLAN}"}),
        ("terminal", {"command": "rm -r plans/active/plan.md"}),
    )
    for call in calls:
        asked.clear()
        assert guard.call(*call).approved
        assert asked == [f"{call[0]} changes the plan, {PLAN}"]
    asked.clear()
    confined = guard.call("terminal", {"command": f"make {PLAN}; cat {PLAN}"})
    assert (confined.confinement.writable, asked) == ((), [])
    guard.write(PLAN, "Status: approved\n")
    asked.clear()
    assert guard.call("terminal", {"command": f"make {PLAN}"}).approved
    assert guard.call("terminal", {"command": f"cat {PLAN}"}).action == "pass"
    assert guard.call(*EDIT).action == "pass"
    assert len(asked) == 1


def test_without_a_person_the_plan_stays(guarded: Guard) -> None:
    """Where nobody can be asked, the plan is not changed, and everything else as before."""
    guard = guarded(plan={"approval": "ask"})
    assert guard.call("write_file", {"path": PLAN, "content": "x"}).blocked
    assert guard.call("write_file", {"path": "plans/draft.md", "content": "x"}).action == "pass"
    assert guard.call(*EDIT).blocked
