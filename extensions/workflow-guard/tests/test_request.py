"""What the model is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Guard = Callable[..., Any]


def test_without_a_plan_the_reminder(guarded: Guard) -> None:
    """The system prompt says that there is no plan, where it goes and what may be written."""
    guard = guarded()
    [text] = guard.instructions()
    assert "no plan" in text
    assert (
        f"plans/active/plan.md with write_file (a relative path here starts at {guard.root})"
        in (text)
    )
    assert "besides it: plans/ and handoff/." in text


def test_with_a_plan_the_guardrails(guarded: Guard) -> None:
    """The system prompt names the plan to follow."""
    guard = guarded()
    guard.write("plans/active/plan.md")
    [text] = guard.instructions()
    assert f"There is a plan: plans/active/plan.md in {guard.root}." in text


def test_the_plan_is_looked_up_at_each_request(guarded: Guard) -> None:
    """A plan that is written and removed between two requests changes what they say."""
    guard = guarded()
    before = guard.instructions()
    plan = guard.write("plans/active/plan.md")
    assert guard.instructions() != before
    plan.unlink()
    assert guard.instructions() == before


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff\n"])
def test_an_empty_plan_is_none(guarded: Guard, content: str) -> None:
    """White space is no plan."""
    guard = guarded()
    guard.write("plans/active/plan.md", content)
    assert "no plan" in guard.instructions()[0]


def test_a_folder_or_a_pipe_is_no_plan(guarded: Guard) -> None:
    """Only a file is a plan, and nothing waits for a pipe."""
    import os

    guard = guarded()
    (guard.root / "plans/active/plan.md").mkdir(parents=True)
    assert "no plan" in guard.instructions()[0]
    (guard.root / "plans/active/plan.md").rmdir()
    os.mkfifo(guard.root / "plans/active/plan.md")
    assert "no plan" in guard.instructions()[0]


def test_own_texts(guarded: Guard) -> None:
    """Both texts can be set; braces that are no name of ours stay."""
    guard = guarded(
        plan_reminder="Plan in {plan_path} ({x} {allowed_paths})", allowed_paths=["a/", "b", "c"]
    )
    assert guard.instructions() == ("Plan in plans/active/plan.md ({x} a/, b and c)",)


def test_empty_texts_add_nothing(guarded: Guard) -> None:
    """An empty text leaves the system prompt alone."""
    guard = guarded(plan_reminder="", guardrails=" ")
    assert guard.instructions() == ()
    guard.write("plans/active/plan.md")
    assert guard.instructions() == ()


def test_below_the_root_the_plan_is_named_in_full(guarded: Guard, tmp_path: Path) -> None:
    """In a folder of the repository the model is told a path that it can write to from there."""
    guard = guarded(root=tmp_path)
    assert str(tmp_path / "plans/active/plan.md") in guard.instructions()[0]
    guard.write("plans/active/plan.md")
    assert "There is a plan" in guard.instructions()[0]
