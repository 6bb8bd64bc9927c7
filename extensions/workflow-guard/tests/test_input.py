"""Which inputs become the planning command."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

Guard = Callable[..., Any]

REQUESTS = (
    "Fix the bug in app.py",
    "fix it",
    "  implement retries",
    "Please add a test for the parser",
    "Can you refactor this module?",
    "could you please rename foo to bar",
    "I want you to write a changelog",
    "We need to change the default timeout",
    "let's clean up the imports",
    "Ok, now update the docs",
    "The tests fail on Windows. Fix them.",
    "Here is the log:\n- remove the dead code",
    "1. Replace the regex\n2. Run the tests",
    "Go ahead and implement it",
    "help me debug this",
)

OTHERS = (
    "",
    "What does app.py do?",
    "How do I fix a merge conflict?",
    "Why does the write fail?",
    "Explain how to implement a parser",
    "Build failed on CI, why?",
    "Update: it works now",
    "write-only memory, what is that?",
    "Can you explain the changelog?",
    "Is there a plan?",
    "fixtures and additions",
    "/start-feature Fix the bug",
    "  /start-feature",
    "/review fix the bug",
    "/plan\nfix the bug",
)


@pytest.mark.parametrize("text", REQUESTS)
def test_requests_become_the_command(guarded: Guard, text: str) -> None:
    """A request to implement something is put behind the command, as it was typed."""
    outcome = guarded().input(text)
    assert outcome.action == "rewrite"
    assert outcome.value == f"/start-feature {text}"


@pytest.mark.parametrize("text", OTHERS)
def test_other_inputs_are_left(guarded: Guard, text: str) -> None:
    """Questions, remarks and everything that is a command already stay as they are."""
    assert guarded().input(text).action == "pass"


def test_never_twice(guarded: Guard) -> None:
    """What the rewrite made is not rewritten again."""
    guard = guarded()
    once = guard.input("fix it").value
    assert guard.input(once).action == "pass"


def test_a_path_is_no_command(guarded: Guard) -> None:
    """A text that begins with a path is a request like any other."""
    assert guarded().input("/etc/app.toml is wrong. Fix it").changed


def test_a_skills_text_is_left(guarded: Guard) -> None:
    """What was typed behind a skill's slash command is not given a second command."""
    assert guarded().input("fix the bug", command="start-feature").action == "pass"


def test_with_a_plan_nothing_is_rewritten(guarded: Guard) -> None:
    """A plan makes the request go through as it is."""
    guard = guarded()
    guard.write("plans/active/plan.md")
    assert guard.input("Fix the bug").action == "pass"


def test_parts_keep_their_pictures(guarded: Guard) -> None:
    """Of a message in parts only the text changes."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    outcome = guarded().input([{"type": "text", "text": "fix this"}, picture])
    assert outcome.value == [{"type": "text", "text": "/start-feature fix this"}, picture]


@pytest.mark.parametrize("origin", ["steer", "subagent", "background", "extension"])
def test_only_people_and_clients_are_redirected(guarded: Guard, origin: str) -> None:
    """What steers a running turn or comes from another agent is left as it is."""
    assert guarded().input("fix it", origin=origin).action == "pass"


def test_own_command_and_pattern(guarded: Guard) -> None:
    """Command and pattern can be set, and a command need not begin with a slash."""
    guard = guarded(plan_command="PLAN:", implementation_pattern="(?i)behebe")
    assert guard.input("Bitte behebe den Fehler").value == "PLAN: Bitte behebe den Fehler"
    assert guard.input("PLAN: behebe den Fehler").action == "pass"
    assert guard.input("fix it").action == "pass"


def test_a_bad_pattern_is_told_and_the_guard_holds(guarded: Guard) -> None:
    """A pattern that is no regular expression fails with the setting's name; tools stay blocked."""
    guard = guarded(implementation_pattern="(")
    outcome = guard.input("fix it")
    assert outcome.action == "pass"
    [error] = [step.error for step in outcome.steps if step.error]
    assert "extensions.workflow-guard.implementation_pattern" in str(error)
    assert guard.call("terminal", {"command": "ls"}).blocked


@pytest.mark.parametrize("piece", ["\n", " ", ". ", "please ", "please can you ", "fix-", "\n- "])
def test_long_inputs_take_no_time(guarded: Guard, piece: str) -> None:
    """The default pattern looks through half a megabyte in well under two seconds."""
    guard = guarded()
    begun = time.perf_counter()
    guard.input(piece * (500_000 // len(piece)))
    assert time.perf_counter() - begun < 2


def test_a_request_around_a_pasted_log(guarded: Guard) -> None:
    """A request is found before and behind a long text."""
    log = "12:00 nothing happened\n" * 20_000
    guard = guarded()
    assert guard.input(f"Fix this:\n{log}").changed
    assert guard.input(f"{log}\nPlease fix this.").changed
    assert not guard.input(log).changed
