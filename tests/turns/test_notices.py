"""Notices: what a rule did, in one line for the person, once for each kind of event in a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tests.chains import handler
from tests.projects import Place

from hermes_ext import Action, Approval, HookResult, Notice, Runtime, Turn, register_hook
from hermes_ext.turns import notices
from hermes_ext.turns.decisions.reading import read_decisions

TOOL = "write_file"


@register_hook("transform_user_input")
def reads(user_message: str) -> Any:
    made = {"block": HookResult.block("not this"), "answer": HookResult.answer("Hello.")}
    return made.get(user_message, HookResult.rewrite("other") if user_message == "old" else None)


@register_hook("before_llm_call")
def asks_model(messages: Any) -> Any:
    said = messages[-1]["content"]
    made = {"block": HookResult.block("too long"), "answer": HookResult.answer("Enough.")}
    return made.get(said, HookResult.inject_system("x") if said == "inject" else None)


@register_hook("intercept_tool_call")
def calls(tool_args: dict[str, Any]) -> Any:
    made = {
        "block": HookResult.block(str(tool_args.get("why", "no plan yet"))),
        "answer": HookResult.answer("kept"),
        "rewrite": HookResult.rewrite({"do": "pass"}),
        "ask": HookResult.ask("Really?"),
        "raise": None,
    }
    if tool_args.get("do") == "raise":
        raise ValueError("it broke")
    return made.get(str(tool_args.get("do")))


@register_hook("transform_tool_result")
def results(result: str) -> Any:
    made = {"block": HookResult.block("it has a key"), "rewrite": HookResult.rewrite("shorter")}
    return made.get(result)


class Person:
    """A host whose notices are kept."""

    def __init__(self, notify: notices.Notify = "blocks", **options: Any) -> None:
        self.runtime = Runtime([reads, asks_model, calls, results], **options)
        self.runtime.services.notify = notify
        self.notices: list[Notice] = []
        self.runtime.on_notice = self.notices.append

    @property
    def lines(self) -> list[str]:
        return [str(each).removeprefix("┊ test_notices ") for each in self.notices]

    def turn(self) -> Turn:
        return self.runtime.turn(session_id="s1")


def call(do: str, **more: Any) -> Callable[[Turn], Any]:
    return lambda turn: turn.intercept_tool_call(TOOL, {"do": do, **more})


def said(text: str) -> Callable[[Turn], Any]:
    return lambda turn: turn.transform_user_input(text)


def asked(text: str) -> Callable[[Turn], Any]:
    return lambda turn: turn.before_llm_call([{"role": "user", "content": text}])


def given(text: str) -> Callable[[Turn], Any]:
    return lambda turn: turn.transform_tool_result("read_file", {}, text)


EVENTS = [
    (said("block"), "blocks", "blocked the message: not this"),
    (said("answer"), "all", "answered the message"),
    (said("old"), "all", "rewrote the message"),
    (said("hello"), None, ""),
    (asked("block"), "blocks", "blocked the request to the model: too long"),
    (asked("answer"), "all", "answered the request to the model"),
    (asked("inject"), None, ""),
    (call("block"), "blocks", "blocked write_file: no plan yet"),
    (call("answer"), "all", "answered write_file"),
    (call("rewrite"), "all", "rewrote the arguments of write_file"),
    (call("pass"), None, ""),
    (given("block"), "blocks", "withheld the result of read_file: it has a key"),
    (given("rewrite"), "all", "rewrote the result of read_file"),
    (given("plain"), None, ""),
]


@pytest.mark.parametrize("notify", ["blocks", "all", "off"])
@pytest.mark.parametrize(("event", "level", "line"), EVENTS, ids=[line for _, _, line in EVENTS])
def test_each_event_has_its_line(
    event: Callable[[Turn], Any], level: str | None, line: str, notify: notices.Notify
) -> None:
    """`blocks` reports what was refused, `all` also what was changed, `off` nothing."""
    person = Person(notify)
    with person.turn() as turn:
        event(turn)
    shown = level is not None and notify in {level, "all"}
    assert person.lines == ([line] if shown else [])


@pytest.mark.parametrize("notify", ["blocks", "all"])
def test_a_confined_call(notify: notices.Notify) -> None:
    """It runs, so only `all` reports it; one that cannot be confined is blocked."""

    class Confiner:
        def reason_not(self, call: Any, confinement: Any) -> str | None:
            return None if call.tool_args["command"] == "make" else "not this one"

    @register_hook("intercept_tool_call")
    def confines(tool_name: str) -> Any:
        return HookResult.confine(reason="no plan yet")

    person = Person()
    person.runtime = Runtime([confines], confiner=Confiner())
    person.runtime.services.notify = notify
    person.runtime.on_notice = person.notices.append
    with person.turn() as turn:
        turn.intercept_tool_call("terminal", {"command": "make"})
        turn.intercept_tool_call("terminal", {"command": "ls"})
    confined, blocked = "confined terminal: no plan yet", "blocked terminal: no plan yet, and "
    assert person.lines[:-1] == ([confined] if notify == "all" else [])
    assert person.lines[-1].startswith(blocked)


def test_a_crash_that_blocks_is_a_block() -> None:
    """A call that is refused because its handler failed is reported, with that reason."""
    person = Person()
    with person.turn() as turn:
        call("raise")(turn)
    (line,) = person.lines
    assert line.startswith("blocked write_file: ")
    assert "calls" in line


@pytest.mark.parametrize(
    ("approver", "notify", "line"),
    [
        (lambda _: False, "blocks", "blocked write_file: not approved: Really?"),
        (lambda _: Approval(False, by="nobody", message="none"), "all", "blocked write_file: none"),
        (None, "blocks", "blocked write_file: Really? This needs a person's approval, "),
        (lambda _: True, "all", "asked about write_file: approved: Really?"),
        (lambda _: True, "blocks", ""),
    ],
)
def test_a_question_is_reported_once_it_is_answered(
    approver: Any, notify: notices.Notify, line: str
) -> None:
    """A refused question is a block with its question; an approved one is reported by `all`."""
    person = Person(notify, approver=approver)
    with person.turn() as turn:
        call("ask")(turn)
        asyncio.run(turn.aintercept_tool_call(TOOL, {"do": "ask"}))
    if not line:
        assert person.lines == []
        return
    first, again = person.lines
    assert first.startswith(line)
    assert again == first.replace(TOOL, f"{TOOL} once more")


def test_equal_events_of_a_turn_are_counted() -> None:
    """The first is reported at once, the others as a number at the end, also from threads."""
    person = Person()
    with person.turn() as turn:
        threads = [threading.Thread(target=call("block"), args=(turn,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        call("block", why="other")(turn)
        assert person.lines == [
            "blocked write_file: no plan yet",
            "blocked write_file: other",
        ]
    assert person.lines[2:] == ["blocked write_file 7 more times: no plan yet"]
    with person.turn() as turn:
        call("block")(turn)
        call("block")(turn)
    assert person.lines[3:] == [
        "blocked write_file: no plan yet",
        "blocked write_file once more: no plan yet",
    ]
    assert {each.session_id for each in person.notices} == {"s1"}
    assert len({each.turn_id for each in person.notices}) == 2


def test_a_call_that_is_evaluated_twice_is_one_event() -> None:
    """Another plugin's change makes the host ask again about the same call; one line for it."""
    person = Person()
    with person.turn() as turn:
        for _ in range(3):
            turn.intercept_tool_call(TOOL, {"do": "block"}, tool_call_id="c1")
    assert person.lines == ["blocked write_file: no plan yet"]


def test_very_many_different_events_are_no_flood() -> None:
    """Beyond a number of lines a turn's notices are counted, and the end says how many."""
    person = Person()
    with person.turn() as turn:
        for number in range(notices.LINES_PER_TURN + 30):
            call("block", why=f"reason {number}")(turn)
    assert len(person.notices) == notices.LINES_PER_TURN + 1
    assert str(person.notices[-1]) == "┊ hermes-ext left out 30 further notices"


LONG = "the plan is in plans/active/plan.md, and it has no section for this file yet"


@pytest.mark.parametrize("reason", [LONG, "計画がまだありません。" * 8, "no"])
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_line_fits_the_terminal(width: int, reason: str) -> None:
    """At any width it is one line; extension and verb are the last to be cut."""
    notice = Notice("workflow-guard", "blocked", "write_file", reason)
    line = notice.line(width, hint="/extensions why")
    assert cell_len(line) <= width
    assert "\n" not in line
    if width >= 40:
        assert line.startswith("┊ workflow-guard blocked write_file")
    if width >= 80:
        assert line.endswith(" (/extensions why)")
        assert f": {reason[:10]}" in line
    if width == 200:
        assert reason[:70] in line
    if reason in notice.line(width):
        assert "…" not in notice.line(width)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("red \x1b[31m\x1b[2J now", r"red \x1b[31m\x1b[2J now"),
        ("one\r\ntwo\n\nthree", "one two three"),
        ("a\u202eb", r"a\u202eb"),
        ("key sk-proj-" + "a1B2" * 12, "key [redacted"),
        ("password=hunter2hunter2", "password=[redacted"),
        ("x" * 5000, "x" * 499 + "…"),
    ],
)
def test_nothing_in_a_reason_reaches_the_terminal_as_it_is(text: str, shown: str) -> None:
    """Control characters are written out, line ends go, secrets are left out, length is bounded."""
    person = Person()
    with person.turn() as turn:
        call("block", why=text)(turn)
        turn.notify_refusal("ho\x1bst", f"tool\n{text}", text)
    block, refusal = person.notices
    assert block.reason.startswith(shown)
    assert refusal.reason == block.reason
    assert refusal.extension == r"ho\x1bst"
    assert str(refusal).isprintable()
    assert len(refusal.what) <= 60


def test_a_listener_that_fails_changes_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    """What the host cannot show is logged, and the call stays blocked."""
    person = Person()

    def fails(notice: Notice) -> None:
        raise OSError("no terminal")

    person.runtime.on_notice = fails
    with person.turn() as turn:
        assert call("block")(turn).blocked
    assert "┊ test_notices blocked write_file: no plan yet" in caplog.text


def test_a_refusal_of_everything_is_a_notice(tmp_path: Path) -> None:
    """While a required extension is missing, the refused calls are reported in our own name.

    Each is in the decision log too.
    """
    place = Place(tmp_path)
    place.config("  required: [absent]\n  notify: blocks\n")
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    told: list[Notice] = []
    runtime.on_notice = told.append
    with runtime.turn(session_id="s1") as turn:
        assert turn.intercept_tool_call("jot", {}).blocked
    (notice,) = told
    assert (notice.extension, notice.did, notice.what) == ("hermes-ext", "blocked", "jot")
    assert "absent" in notice.reason
    assert notice.action is Action.BLOCK
    runtime.close()
    (line,) = read_decisions(place.home / "logs" / "extensions.jsonl")
    assert (line["action"], line["blocked_by"], line["tool"]) == ("block", "hermes-ext", "jot")


@pytest.mark.parametrize(
    ("written", "level", "problem"),
    [
        ("", "blocks", None),
        ("  notify: all\n", "all", None),
        ("  notify: off\n", "off", None),
        ("  notify: 'off'\n", "off", None),
        ("  notify:\n", "blocks", None),
        ("  notify: [blocks]\n", "blocks", "found a list"),
        ("  notify: block\n", "blocks", 'Did you mean "blocks"?'),
        ("  notify: true\n", "blocks", "expected blocks, all or off; taken as blocks"),
    ],
)
def test_the_setting(tmp_path: Path, written: str, level: str, problem: str | None) -> None:
    """A wrong `extensions.notify` is a problem with file, line and key, and the default stays."""
    place = Place(tmp_path)
    place.config("  enabled: true\n" + written)
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    assert runtime.notify == level
    problems = [str(each) for each in runtime.problems]
    if problem is None:
        assert problems == []
    else:
        (told,) = problems
        assert told.startswith(f"{place.home}/config.yaml:3: extensions.notify: ")
        assert problem in told
    runtime.close()


def test_a_failure_that_cannot_be_shown_is_settled_all_the_same() -> None:
    """What the host's listener raises is no way out of the chain."""

    def broken(line: str) -> None:
        raise BrokenPipeError

    def fails(tool_name: str) -> None:
        raise ValueError

    runtime = Runtime([handler(fails, guard=True)])
    runtime.on_failure = broken
    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("terminal", {}).blocked
