# ruff: noqa: RUF001 - Chinese has marks of its own
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


IN_OTHER_LANGUAGES = (
    "Behebe den Fehler in app.py",
    "Bitte behebe den Fehler wie besprochen",
    "Kannst du in app.py den Fehler beheben?",
    "Kannst Du bitte die Tests anpassen",
    "Ok, jetzt füge einen Test hinzu",
    "Ändere die Zeitgrenze",
    "A\u0308ndere die Zeitgrenze",
    "Corrige le bug dans app.py",
    "Peux-tu ajouter un test ?",
    "S’il te plaît, mets à jour la doc",
    "Il faut supprimer ce module",
    "Arregla el error en app.py",
    "¿Puedes corregir el error?",
    "Por favor, añade una prueba",
    "修复 app.py 里的 bug",
    "请帮我实现重试",
    "把默认超时改成十秒",
    "能不能在这里添加一个测试？",
    "日志如下：\n请修改它",
)

NO_REQUESTS_IN_OTHER_LANGUAGES = (
    "Was macht app.py?",
    "Bitte erkläre, wie ich das beheben kann",
    "Andere Tests schlagen fehl",
    "Kannst du mir zeigen, wo das steht?",
    "Que fait app.py ?",
    "Explique comment corriger un conflit",
    "Un changement est arrivé",
    "¿Qué hace app.py?",
    "Explica cómo corregir un conflicto",
    "app.py 是做什么的？",
    "请解释如何实现解析器",
    "实现原理是什么？",
    "更新：现在可以了",
)


@pytest.mark.parametrize("text", REQUESTS)
def test_requests_become_the_command(untouched: Any, text: str) -> None:
    """A request to implement something is put behind the command, as it was typed."""
    outcome = untouched.input(text)
    assert outcome.action == "rewrite"
    assert outcome.value == f"/start-feature {text}"


def test_requests_in_other_languages(guarded: Guard) -> None:
    """German, French, Spanish and Chinese requests are known as well, and questions left alone."""
    guard = guarded()
    found = [text for text in IN_OTHER_LANGUAGES if not guard.input(text, session=text).changed]
    assert found == []
    texts = NO_REQUESTS_IN_OTHER_LANGUAGES
    assert [text for text in texts if guard.input(text, session=text).changed] == []


def test_where_nothing_can_be_stored(guarded: Guard) -> None:
    """A request becomes the command all the same, and nothing is refused."""
    guard = guarded()
    (guard.home / "extensions-state.db").mkdir()
    for _ in range(2):
        assert guard.input("Fix the bug").value == "/start-feature Fix the bug"
    assert guard.input("What does app.py do?").action == "pass"


def test_only_the_languages_that_are_set(guarded: Guard) -> None:
    """Fewer languages can be set, or none."""
    guard = guarded(languages=["fr"])
    assert guard.input("Corrige le bug").changed
    assert not guard.input("Fix the bug").changed
    assert not guarded(languages=[]).input("Corrige le bug").changed


def test_more_words(guarded: Guard) -> None:
    """Words of one's own count at the start of a sentence and behind the words that ask."""
    guard = guarded(implementation_words={"nl": ["voeg", "pas aan"], "ours": ["ship it", "実装"]})
    for text in ("Voeg een test toe", "Please  ship it now", "Ok, pas\naan", "実装してください"):
        assert guard.input(text, session=text).changed, text
    for text in ("Het voeg", "pas", "we ship it"):
        assert not guard.input(text, session=text).changed, text


@pytest.mark.parametrize("text", OTHERS)
def test_other_inputs_are_left(untouched: Any, text: str) -> None:
    """Questions, remarks and everything that is a command already stay as they are."""
    assert untouched.input(text).action == "pass"


def test_never_twice(guarded: Guard) -> None:
    """What the rewrite made is not rewritten again, whatever the host puts in front of it."""
    guard = guarded()
    once = guard.input("fix it").value
    for text in (once, f"[Alice] {once}", f"fix the first\n\n{once}", f"  {once}\n/review"):
        assert guard.input(text).action == "pass", text


def test_the_same_text_again(guarded: Guard) -> None:
    """A request that waited or is sent again is not routed twice in its conversation.

    Another one is, and so is the same one when a plan was there in between.
    """
    guard = guarded()
    assert guard.input("Fix  it").changed
    assert not guard.input("fix it\n").changed
    assert guard.input("fix it", session="another").changed
    plan = guard.write("plans/active/plan.md")
    assert not guard.input("fix it").changed
    plan.unlink()
    assert guard.input("fix it").changed
    assert guard.input("fix the other one").changed


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
    """A pattern that is no regular expression fails with the setting's name; writing is blocked."""
    guard = guarded(implementation_pattern="(")
    outcome = guard.input("fix it")
    assert outcome.action == "pass"
    [error] = [step.error for step in outcome.steps if step.error]
    assert "extensions.workflow-guard.implementation_pattern" in str(error)
    assert guard.call("terminal", {"command": "touch app.py"}).blocked


PIECES = ("\n", " ", ". ", "please ", "please can you ", "fix-", "\n- ", "bitte ", "请", "[x] ")


@pytest.mark.parametrize("piece", PIECES)
def test_long_inputs_take_no_time(guarded: Guard, piece: str) -> None:
    """The words of all languages are looked for in half a megabyte within two seconds of work."""
    guard = guarded()
    begun = time.process_time()  # whatever else the machine does
    guard.input(piece * (500_000 // len(piece)))
    assert time.process_time() - begun < 2


def test_a_request_around_a_pasted_log(guarded: Guard) -> None:
    """A request is found before and behind a long text."""
    log = "12:00 nothing happened\n" * 20_000
    guard = guarded()
    assert guard.input(f"Fix this:\n{log}").changed
    assert guard.input(f"{log}\nPlease fix this.").changed
    assert not guard.input(log).changed
