"""`load_extension`: an extension is loaded as in a home, and its turns are driven as by a host."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.testing.conftest import Author

from hermes_ext.exceptions import CommandError, ResultError
from hermes_ext.testing import (
    ExtensionNotLoadedError,
    FakeClock,
    LoadExtension,
    ScriptedApprover,
    assert_answered,
    assert_asked,
    assert_blocked,
    assert_confined,
    assert_injected,
    assert_passed,
    assert_rewritten,
)

ALL_FOUR = """
    @register_hook("transform_user_input")
    def on_input(user_message, turn_number, session_id, platform):
        return HookResult.rewrite(f"{session_id} {turn_number} {platform}: {user_message}")

    @register_hook("before_llm_call")
    def on_request(messages, api_call_count, config):
        if messages[-1]["content"] == "answer me":
            return HookResult.answer("Without the model.")
        return HookResult.inject_system(f"{config['word']} {api_call_count}")

    @register_hook("intercept_tool_call")
    def on_call(tool_args, tool_call_id, state, cwd, project_root):
        if tool_args.get("ask"):
            return HookResult.ask("Really?", key="k")
        assert cwd == project_root
        n = state.count("calls")
        return HookResult.block(f"call {n}") if n > 2 else None

    @register_hook("transform_tool_result")
    def on_result(result, status):
        return HookResult.rewrite(result.upper()) if status == "ok" else None
"""
MANIFEST = """
    version: "2.1"
    config:
      type: object
      additionalProperties: false
      properties: {word: {type: string, default: note}}
"""


def all_four(author: Author, **options: object):
    return author(ALL_FOUR, {"extension_yaml": MANIFEST}, **options)


def test_all_four_hooks_and_what_the_host_tells(author: Author) -> None:
    """Inputs, requests, calls and results; turns are counted by session, requests by turn."""
    extension = all_four(author, config={"word": "remember"})
    assert extension.record.version == "2.1"
    assert_rewritten(extension.input("hi"), "test 1 cli: hi")
    assert_rewritten(extension.input("hi"), "test 2 cli: hi")
    with extension.turn("other", platform="telegram") as turn:
        assert_rewritten(turn.input("hi"), "other 1 telegram: hi")
        assert_injected(turn.request("hello", "Base."), "^remember 1$", where="system")
        assert turn.sent.system_prompt == "Base.\n\nremember 1"
        assert turn.sent.messages == [{"role": "user", "content": "hello"}]
        assert_injected(turn.request("hello"), "remember 2")
        assert_answered(turn.request("answer me"), "Without the model.")
        with pytest.raises(AssertionError, match=r"no request of this turn.*answer"):
            _ = turn.sent
        assert_rewritten(turn.result("read_file", {}, "text"), "TEXT")
        assert_passed(turn.result("read_file", {}, "text", status="error"))
        assert len(turn.outcomes) == 6


def test_any_hook_is_driven_by_its_name(author: Author) -> None:
    """With the arguments that the table has for it; the others as in a turn."""
    with all_four(author, config={"word": "remember"}).turn() as turn:
        outcome = turn.fire(
            "transform_tool_result", tool_name="read_file", result="text", status="ok"
        )
        assert_rewritten(outcome, "TEXT")
        assert_rewritten(turn.fire("transform_user_input", user_message="hi"), "test 1 cli: hi")


def test_the_settings_are_validated_as_in_a_home(author: Author) -> None:
    """Defaults come from the schema; a wrong one is told with its key."""
    assert all_four(author).settings["word"] == "note"
    with pytest.raises(ExtensionNotLoadedError, match=r"config-error: .*my-rules\.word") as raised:
        all_four(author, config={"word": 3})
    assert raised.value.record is not None
    assert raised.value.record.status == "config-error"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def f(:\n", r"load-error: .*my-rules/__init__\.py:3"),
        ("1 / 0", r"load-error: .*my-rules/__init__\.py:3: ZeroDivisionError"),
        ("import not_there_at_all", "load-error: .*not_there_at_all"),
        (
            '@register_hook("intercept_tool_call")\ndef f(tool_nam): ...',
            r"my-rules/__init__\.py:3.*Did you mean \'tool_name\'",
        ),
        (
            'from hermes_ext import SkipExtension\nraise SkipExtension("no rtk")',
            "skipped: no rtk",
        ),
    ],
)
def test_what_does_not_load_is_told_with_the_authors_own_file(
    author: Author, tmp_path: Path, code: str, told: str
) -> None:
    """The message has status, reason, and the path that the author gave."""
    with pytest.raises(ExtensionNotLoadedError, match=told) as raised:
        author(code)
    assert f"{tmp_path}/" in str(raised.value) or "skipped" in told or "not_there" in told


def test_where_nothing_is_the_message_says_what_to_give(
    load_extension: LoadExtension, tmp_path: Path
) -> None:
    """Missing paths, folders that are no extension, misspelt names."""
    with pytest.raises(ExtensionNotLoadedError, match=r"there is nothing at .*nowhere"):
        load_extension(tmp_path / "nowhere")
    with pytest.raises(ExtensionNotLoadedError, match=r"has no __init__.py"):
        load_extension(tmp_path)
    with pytest.raises(ExtensionNotLoadedError, match='Did you mean "budget"'):
        load_extension("budgte")


def test_a_single_file_and_a_bundled_extension(
    load_extension: LoadExtension, tmp_path: Path
) -> None:
    """Both are found; each is alone in its home."""
    file = tmp_path / "one_file.py"
    file.write_text(
        "from hermes_ext import HookResult, register_hook\n"
        '@register_hook("intercept_tool_call", guard=True)\n'
        'def no(tool_name): return HookResult.block("No.")\n'
    )
    assert_blocked(load_extension(file).call("read_file"), by="one_file")
    budget = load_extension("budget", config={"per_turn": {"tool_calls": 1}})
    with budget.turn() as turn:
        assert_passed(turn.call("read_file", {"path": "a"}))
        assert_blocked(turn.call("read_file", {"path": "b"}), by="budget")


def test_parallel_calls_share_their_turn(author: Author) -> None:
    """Of ten at once two get through, whichever; their outcomes stand in the order of the calls."""
    extension = all_four(author)
    with extension.turn() as turn:
        outcomes = turn.parallel([("read_file", {"path": str(n)}) for n in range(10)])
    assert sum(outcome.blocked for outcome in outcomes) == 8
    assert {outcome.message for outcome in outcomes if outcome.blocked} == {
        f"call {n}" for n in range(3, 11)
    }


async def test_async_handlers_are_awaited(author: Author) -> None:
    """In an async test by the `a…` twins; a sync turn gets the same."""
    extension = author("""
        import asyncio

        @register_hook("intercept_tool_call", guard=True)
        async def check(tool_args):
            await asyncio.sleep(0)
            return HookResult.block("late") if tool_args.get("late") else None
        """)
    async with extension.turn() as turn:
        assert_blocked(await turn.acall("x", {"late": True}), match="late")
        assert_passed(await turn.acall("x"))
        assert_passed(await turn.ainput("hi"))
        assert_passed(await turn.arequest())
        assert_passed(await turn.aresult("x", {}, "text"))
    assert_blocked(extension.call("x", {"late": True}), match="late")


def test_the_approver_answers_from_a_list_and_keeps_the_questions(author: Author) -> None:
    """In turn; beyond the end of the list the answer is no, and the test is told."""
    extension = all_four(author, approver=[True, False])
    assert_asked(extension.call("x", {"ask": 1}), match="Really", key="k", approved=True)
    refused = extension.call("x", {"ask": 2})
    assert_asked(refused, approved=False)
    assert refused.blocked
    assert [dict(q.tool_args) for q in extension.questions] == [{"ask": 1}, {"ask": 2}]
    with pytest.raises(AssertionError, match=r"no answer left for.*Really"):
        extension.call("x", {"ask": 3})


def test_an_approver_can_be_a_function_or_nobody(author: Author) -> None:
    """A function gets the request; with nobody there, what is asked is blocked."""
    small = ScriptedApprover(lambda request: request.tool_args["ask"] < 5)
    extension = all_four(author, approver=small)
    assert extension.call("x", {"ask": 1}).approved
    assert extension.call("x", {"ask": 9}).blocked
    assert all_four(author).call("x", {"ask": 1}).blocked
    assert len(small.questions) == 2


CONFINES = """
    @register_hook("intercept_tool_call", guard=True)
    def confine(tool_args):
        return HookResult.confine(["plans"], "none", reason="no plan yet")
    """


def test_confined_calls_can_be_asserted(author: Author) -> None:
    """By what may be written, network, reason and extension; without any of it as well."""
    extension = author(CONFINES)
    (extension.project / "plans").mkdir()
    outcome = extension.call("terminal", {"command": "make"})
    assert_confined(outcome)
    assert_confined(outcome, writable=["plans"], network="none", match="no plan", by="my-rules")
    assert outcome.confinement is not None
    assert outcome.confinement.writable == (extension.project / "plans",)
    for wrong in (
        {"writable": []},
        {"network": "host"},
        {"match": "zebra"},
        {"by": "other"},
    ):
        with pytest.raises(AssertionError, match="confined by my-rules, writable"):
            assert_confined(outcome, **wrong)
    with pytest.raises(AssertionError, match="expected that everybody passes"):
        assert_passed(outcome)


def test_a_host_that_cannot_confine(author: Author) -> None:
    """A test says why it cannot; what a server says of a tool is told with the call."""
    extension = author(CONFINES, cannot_confine="Windows cannot")
    outcome = extension.call("terminal", {"command": "make"})
    assert_blocked(outcome, by="my-rules", match="no plan yet.*Windows cannot")
    with pytest.raises(AssertionError, match="expected a confined call"):
        assert_confined(outcome)
    assert_blocked(extension.call("mcp_x_look", {"at": "y"}))
    assert_confined(extension.call("mcp_x_look", {"at": "y"}, read_only=True))


@pytest.mark.parametrize("wrong", [True, ""])
def test_why_a_host_cannot_confine_is_a_text(author: Author, wrong: Any) -> None:
    """Anything else would say nothing in the block: the error says what to write."""
    with pytest.raises(TypeError, match="Write cannot_confine='Windows cannot'"):
        author(CONFINES, cannot_confine=wrong)


def test_a_yes_that_runs_it_unconfined(author: Author) -> None:
    """It is no confined call, and the test says who let it run."""
    ask = {"confine_unavailable": "ask"}
    extension = author(CONFINES, cannot_confine="no", extensions_config=ask, approver=True)
    outcome = extension.call("terminal", {"command": "make"})
    told = "ran unconfined, because a person said yes.*\n(.*\n)+  to be confined by my-rules"
    with pytest.raises(AssertionError, match=told):
        assert_confined(outcome)


def test_what_is_left_out_cannot_be_written(author: Author) -> None:
    """A path that a test wants writable has to be so; the message says why it is not."""
    outcome = author(CONFINES).call("terminal", {"command": "make"})
    assert_confined(outcome, network="none")
    told = r"confined by my-rules, writable \['plans'\] \(not writable: plans: it does not exist\)"
    with pytest.raises(AssertionError, match=told):
        assert_confined(outcome, writable=["plans"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"writable": "plans"}, r"Write writable=\['plans'\]"),
        ({"network": "off"}, "Write network='host'"),
    ],
)
def test_what_no_call_can_be_confined_to(author: Author, wrong: Any, told: str) -> None:
    """An argument that cannot be right is an error that says what to write."""
    outcome = author(CONFINES).call("terminal", {"command": "make"})
    with pytest.raises(ResultError, match=told):
        assert_confined(outcome, **wrong)


def test_a_rewrite_is_held_against_the_tools_schema(author: Author) -> None:
    """As in a host that gives schemas: the handler has failed, and the call is refused."""
    extension = author(
        """
        @register_hook("intercept_tool_call")
        def wrong(tool_args):
            return HookResult.rewrite({"path": 3})
        """,
        tool_schemas={"read_file": {"properties": {"path": {"type": "string"}}}},
    )
    with extension.expect_failure("schema refuses"):
        assert extension.call("read_file", {"path": "a"}).blocked


COUNTS = """
    @register_hook("transform_user_input")
    def count(session_state):
        return HookResult.rewrite(str(session_state.count("n")))
"""


def test_a_restart_keeps_session_state_and_nothing_else(author: Author, tmp_path: Path) -> None:
    """What the disk has is read again; turns are counted anew."""
    extension = author(COUNTS)
    assert_rewritten(extension.input("x"), "1")
    file = tmp_path / "my-rules" / "__init__.py"
    file.write_text(file.read_text().replace("str(session", '"n" + str(session'))
    extension.restart()
    assert_rewritten(extension.input("x"), "n2")


KEEPS = """
    @register_hook("transform_user_input")
    def count(data_dir):
        file = data_dir / "seen"
        file.write_text((file.read_text() if file.exists() else "") + "x")
        return HookResult.rewrite(file.read_text())
"""


def test_a_restart_keeps_the_data_dir(author: Author) -> None:
    """It lies in the scratch home, and a test can look into it."""
    extension = author(KEEPS)
    assert_rewritten(extension.input("hello"), "x")
    extension.restart()
    assert_rewritten(extension.input("hello"), "xx")
    assert (extension.data_dir / "seen").read_text() == "xx"
    assert extension.data_dir.is_relative_to(extension.home)


def test_session_state_ages_by_the_clock(author: Author) -> None:
    """Unused for `state_days` while others were used it is gone; a day before it is not."""
    start = datetime(2030, 5, 1, tzinfo=UTC)
    clock = FakeClock(start)
    extension = author(COUNTS, clock=clock)
    assert_rewritten(extension.input("x", session_id="old"), "1")
    for days, left in ((29, "2"), (31, "1")):
        clock.advance(timedelta(days=days))
        extension.input("x", session_id="another")
        extension.restart()
        assert_rewritten(extension.input("x", session_id="old"), left)
    assert clock() == start.timestamp() + (29 + 31) * 86400


def test_the_clock_can_stand_in_for_an_extensions_own(
    author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a function of the module; nobody else's time changes."""
    extension = author("""
        from datetime import datetime

        def now():
            return datetime.now()

        @register_hook("intercept_tool_call", guard=True)
        def office_hours():
            return None if 9 <= now().hour < 17 else HookResult.block("Closed.")
        """)
    clock = FakeClock(datetime(2030, 5, 1, 16, 59).astimezone())
    monkeypatch.setattr(extension.module, "now", clock.now)
    assert_passed(extension.call("send"))
    clock.advance(60)
    assert_blocked(extension.call("send"), match="Closed")
    clock.set(datetime(2030, 5, 2, 9).astimezone())
    assert_passed(extension.call("send"))
    assert datetime.now().year != 2030


FAILS = [
    (assert_passed, "expected that everybody passes; the outcome is block by my"),
    (lambda o: assert_blocked(o, by="other"), "expected a block by other"),
    (lambda o: assert_blocked(o, match="zebra"), "message that matches 'zebra'.*Not here"),
    (assert_answered, "expected an answer.*my-rules/no.*: block"),
    (assert_asked, "expected a question"),
    (assert_rewritten, "expected a changed value"),
    (lambda o: assert_injected(o, where="user"), "expected an injected user text"),
]


@pytest.mark.parametrize(("wrong", "told"), FAILS)
def test_assertions_tell_the_chain(author: Author, wrong: Callable, told: str) -> None:
    """What was expected, what came, and what each handler did."""
    outcome = author("""
        @register_hook("intercept_tool_call", guard=True)
        def no():
            return HookResult.block("Not here.")
        """).call("x")
    assert_blocked(outcome)
    with pytest.raises(AssertionError, match=f"(?s){told}"):
        wrong(outcome)


def test_a_block_by_a_failure_is_no_block_that_was_meant(author: Author) -> None:
    """`assert_blocked` does not take a crash for a rule."""
    extension = author("""
        @register_hook("intercept_tool_call", guard=True)
        def broken():
            raise LookupError("oh")
        """)
    with extension.expect_failure():
        outcome = extension.call("x")
    assert outcome.blocked
    with pytest.raises(AssertionError, match=r"(?s)only because a handler failed.*LookupError"):
        assert_blocked(outcome)


def test_nothing_is_left_behind(author: Author) -> None:
    """After its end no module of it is left; the fixture may end it again."""
    extension = author(COUNTS)
    package = extension.module.__name__
    assert package in sys.modules
    extension.close()
    assert not [name for name in sys.modules if name.startswith(package)]


def test_slash_commands_share_the_sessions_state(author: Author) -> None:
    """`command` is what a person would type in that session, and in no other."""
    extension = author(
        """
        from hermes_ext import register_command

        @register_command("mode")
        def mode(args, session_state, cwd, platform):
            session_state["mode"] = args
            return f"{args} in {cwd.name} on {platform}"

        @register_hook("before_llm_call")
        def remind(session_state):
            return HookResult.inject_user(session_state.get("mode", "none"))
        """
    )
    told = extension.command("mode", "careful", session_id="one")
    assert told == f"careful in {extension.project.name} on cli"
    assert_injected(extension.request(session_id="one"), "^careful$")
    assert_injected(extension.request(session_id="two"), "^none$")
    with pytest.raises(CommandError, match="mod"):
        extension.command("mod")
