"""Recorded events, run again: what is said to have changed is what did, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.projects import GOOD, Place
from tests.replay.recording import Recording, actions

from hermes_ext import Approval
from hermes_ext.turns.state import judging_again

LIMITED = """
@register_hook("intercept_tool_call", guard=True)
def limit(tool_args, state, session_state, config):
    calls, all_calls = state.count("calls"), session_state.count("calls")
    if calls > config["in_turn"] or all_calls > config["in_session"]:
        return HookResult.block(f"call {calls} of the turn, {all_calls} of the session")
"""
LIMITS = "config: {properties: {in_turn: {type: integer}, in_session: {type: integer}}}\n"


def call(turn: Any, number: int = 1, **args: Any) -> Any:
    return turn.intercept_tool_call("jot", args or {"n": number}, tool_call_id=f"c{number}")


def test_nothing_has_changed(recording: Recording) -> None:
    """Every hook, every action, failures and questions, whatever was answered: all as they were."""
    recording.add(
        "rules",
        """
        @register_hook("transform_user_input")
        def on_input(user_message, origin, platform):
            if origin == "steer":
                return HookResult.block(f"steered on {platform}")
            return HookResult.rewrite(user_message.upper())

        @register_hook("before_llm_call")
        def on_request(model, api_call_count):
            if model == "other":
                return HookResult.answer("no model")
            return HookResult.inject_system(f"request {api_call_count}", keep="turn")

        @register_hook("intercept_tool_call")
        def on_call(tool_args, cwd, session_id):
            if tool_args.get("n") == 1:
                return HookResult.rewrite({"n": 2, "in": str(cwd), "of": session_id})
            if tool_args.get("n") == 3:
                raise OSError("broken")

        @register_hook("intercept_tool_call", guard=True)
        def asking(tool_args):
            if tool_args.get("ask"):
                return HookResult.ask("sure?", key="one")

        @register_hook("transform_tool_result")
        def on_result(result, status, duration_ms):
            if status == "error":
                return HookResult.block(f"after {duration_ms}")
        """,
    )
    answers: Iterator[bool] = iter([True, False])
    approver = lambda request: Approval(approved=next(answers))  # noqa: E731
    with (
        recording.runtime(approver=approver) as runtime,
        runtime.turn(session_id="s1", platform="cli", model="m", turn_number=1) as turn,
    ):
        turn.transform_user_input("hello")
        turn.transform_user_input([{"type": "text", "text": "parts"}])
        turn.transform_user_input("more", origin="steer")
        turn.before_llm_call([{"role": "user", "content": "x"}], "system", api_call_count=1)
        turn.before_llm_call([], model="other")
        call(turn, 1)
        call(turn, 3)
        judged = turn.judge_tool_call("jot", {"n": 1}, cwd=recording.home)
        turn.settle(judged, "jot", judged.final({"n": 1}))
        call(turn, ask=1)
        call(turn, ask=2)
        turn.transform_tool_result("jot", {}, "fine")
        turn.transform_tool_result("jot", {}, "bad", status="error", duration_ms=3)

    told = recording.again()

    assert told["changed"] == []
    assert (told["compared"], told["unchanged"], told["not_replayable"]) == (12, 12, [])
    actions_then = [line["action"] for line in recording.lines()]
    assert {"block", "answer", "rewrite", "inject_system", "pass"} <= set(actions_then)


def test_a_question_is_the_same_whatever_was_answered(recording: Recording) -> None:
    """It is told as ask; that nobody asks any more is a change of each."""
    asking = '@register_hook("intercept_tool_call")\ndef f():\n    return HookResult.ask("sure?")\n'
    folder = recording.add("rules", asking)
    for approver in (None, lambda request: True, lambda request: False):
        with (
            recording.runtime(approver=approver) as runtime,
            runtime.turn(session_id="s1") as turn,
        ):
            call(turn)
    assert [line["action"] for line in recording.lines()] == ["block", "pass", "block"]
    assert recording.again()["changed"] == []

    (folder / "__init__.py").write_text("from hermes_ext import register_hook\n" + asking.replace(
        'HookResult.ask("sure?")', "None"
    ))  # fmt: skip

    told = recording.again()
    assert actions(told) == [("ask", "pass")] * 3
    assert [each["then"]["message"] for each in told["changed"]] == ["sure?"] * 3


def test_state_is_made_again(recording: Recording) -> None:
    """Of turns side by side, of the session over turns, and for few that are chosen."""
    recording.add("limit", LIMITED, LIMITS)
    recording.config("limit: {in_turn: 3, in_session: 100}\n")
    with recording.runtime() as runtime:
        one = runtime.turn(session_id="s1", turn_id="t1", turn_number=1)
        two = runtime.turn(session_id="s2", turn_id="t2", turn_number=1)
        for number in range(5):
            call(one, number)
            call(two, number)
        one.close()
        two.close()
        with runtime.turn(session_id="s1", turn_id="t3", turn_number=2) as turn:
            call(turn)
    assert [line["action"] for line in recording.lines()].count("block") == 4
    assert recording.again()["changed"] == []
    assert recording.again(chosen=[8, 10])["compared"] == 2

    recording.config("limit: {in_turn: 4, in_session: 5}\n")

    told = recording.again()
    assert [each["now"]["message"] for each in told["changed"]] == [
        None,  # the fourth call of each turn passes now
        None,
        "call 1 of the turn, 6 of the session",
    ]
    assert not any(each["needs_past"] for each in told["changed"])
    few = recording.again(chosen=[9, 10])["changed"]  # the last call of t2, and that of t3
    assert [each["now"]["message"] for each in few] == ["call 1 of the turn, 6 of the session"]
    assert recording.again(extension="Limit")["compared"] == 5
    assert recording.again(extension="other")["compared"] == 0


def test_a_call_that_was_judged_twice_is_counted_once(recording: Recording) -> None:
    """As it was when another plugin had changed its arguments."""
    recording.add("limit", LIMITED, LIMITS)
    recording.config("limit: {in_turn: 2, in_session: 100}\n")
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn, 1)
        with judging_again():
            call(turn, 1)
        call(turn, 2)

    assert [line["action"] for line in recording.lines()] == ["pass"] * 3
    assert recording.again()["changed"] == []


def test_state_from_before_the_log_is_told(recording: Recording) -> None:
    """A verdict that read session state of a conversation whose begin is not recorded says so."""
    recording.add("limit", LIMITED, LIMITS)
    recording.config("limit: {in_turn: 9, in_session: 1}\n")
    with recording.runtime() as runtime:
        for number in (4, 5):
            with runtime.turn(session_id="s1", turn_number=number) as turn:
                call(turn)
    _, second = recording.log.read_text().splitlines(keepends=True)
    assert '"action":"block"' in second
    recording.log.write_text(second)

    told = recording.again()

    assert actions(told) == [("block", "pass")]
    assert told["changed"][0]["needs_past"] is True


LOOKING = {
    "exists": "Path('there').exists()",
    "stat": "os.path.isfile(os.path.abspath('there'))",
    "open": "not open_fails('there')",
    "listdir": "'there' in os.listdir('.')",
    "glob": "any(Path().glob('the*'))",
    "access": "os.access('there', os.R_OK)",
}


@pytest.mark.parametrize("how", LOOKING)
def test_what_depends_on_the_disk_says_so(
    recording: Recording, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that decided is named; a handler that only looks, and decides as ever, is not."""
    monkeypatch.chdir(recording.cwd)
    recording.add(
        "there",
        f"""
        import os
        from pathlib import Path

        def open_fails(name):
            try:
                open(name).close()
            except OSError:
                return True

        @register_hook("intercept_tool_call")
        def only_looks():
            Path("beside").exists()

        @register_hook("intercept_tool_call", guard=True)
        def decides():
            return HookResult.block("there it is") if {LOOKING[how]} else None
        """,
    )
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
    assert recording.again()["looked_at_the_disk"] == 1
    (recording.cwd / "there").write_text("")

    told = recording.again()

    assert actions(told) == [("pass", "block")]
    looked = told["changed"][0]["looked_at"]
    place = recording.cwd if how in ("listdir", "glob") else recording.cwd / "there"
    assert str(place) in looked["files"]
    assert str(recording.cwd / "beside") not in looked["files"]


def test_what_starts_a_program_says_so(recording: Recording) -> None:
    """Its answer is of today, as a file's content is."""
    folder = recording.add(
        "asks",
        f"""
        import subprocess

        @register_hook("intercept_tool_call", guard=True)
        def decides():
            command = [{sys.executable!r}, "-c", "print(1)"]
            out = subprocess.run(command, capture_output=True, text=True).stdout
            return HookResult.block(out) if out == "2\\n" else None
        """,
    )
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
    code = folder / "__init__.py"
    code.write_text(code.read_text().replace("print(1)", "print(2)"))

    told = recording.again()

    assert actions(told) == [("pass", "block")]
    assert told["changed"][0]["looked_at"]["programs"] == [sys.executable]


def test_effects_alone_depend_on_no_disk(recording: Recording) -> None:
    """Following the links of a path is part of naming it: `effects_of` is not about content."""
    recording.add(
        "by-effects",
        """
        from hermes_ext.effects import effects_of

        @register_hook("intercept_tool_call", guard=True)
        def decides(event):
            names = {path.name for path in effects_of(event).writes}
            return HookResult.block("no") if "b.py" in names else None
        """,
    )
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("write_file", {"path": "a.py", "content": "x"})
        turn.intercept_tool_call("terminal", {"command": "cp x b.py"})

    told = recording.again()

    assert (told["compared"], told["changed"], told["looked_at_the_disk"]) == (2, [], 0)


def test_what_cannot_be_replayed_is_counted(recording: Recording) -> None:
    """Lines without payloads, damaged or edited ones, values that are too deep: each with why."""
    recording.add("rules", '@register_hook("intercept_tool_call")\ndef f(): return None\n')
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
        call(turn, deep=deep)
        call(turn, word="before")
    recording.config(log="steps")
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
    text = recording.log.read_text().replace('"word":"before"', '"word":"after"', 1)
    recording.log.write_text(text + '{"time":"2026-01-01T00:00:00.000Z","dropped":3}\n')

    told = recording.again()

    assert {each["reason"]: each["count"] for each in told["not_replayable"]} == {
        "what is recorded is not what there was": 2,
        "written without payloads": 1,
        "not a decision": 1,
    }
    assert [each["without_payloads"] for each in told["not_replayable"]].count(True) == 1
    assert (told["lines"], told["compared"]) == (5, 1)


def test_what_an_observed_extension_would_have_done_counts(recording: Recording) -> None:
    """A rule that comes to be observed changes what it would have stopped; in force, the rest."""
    recording.add("other", '@register_hook("transform_user_input")\ndef f(): return None\n')
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn, 1)
        call(turn, 2)
    recording.add(
        "rule",
        """
        @register_hook("intercept_tool_call", guard=True)
        def f(tool_args):
            return HookResult.block("no") if tool_args["n"] == 2 else None
        """,
    )

    assert actions(recording.again()) == [("pass", "block")]
    recording.config("observe: [rule]\n")
    told = recording.again()
    assert actions(told) == [("pass", "pass")]
    would = {"extension": "rule", "action": "block", "reason": "no"}
    assert told["changed"][0]["now"]["would_have"] == [would]


def test_what_nobody_had_a_say_in_is_there_for_a_new_rule(recording: Recording) -> None:
    """With payloads all chains are recorded, once there is any extension; otherwise none is."""
    recording.add("other", '@register_hook("transform_user_input")\ndef f(): return None\n')
    for level, recorded in (("payloads", 3), ("steps", 0)):
        recording.config(log=level)
        recording.log.unlink(missing_ok=True)
        with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
            turn.before_llm_call([{"role": "user", "content": "x"}])
            call(turn)
            turn.transform_tool_result("jot", {}, "done")
        assert len(recording.lines()) == recorded


def test_a_failure_that_is_mended(recording: Recording) -> None:
    """Then it blocked because it failed, and how; now it passes."""
    folder = recording.add("rules", '@register_hook("intercept_tool_call")\ndef f(): 1 / 0\n')
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
    code = folder / "__init__.py"
    code.write_text(code.read_text().replace("1 / 0", "pass"))

    change = recording.again()["changed"][0]

    assert (change["then"]["action"], change["then"]["failure"]) == ("block", "exception")
    assert change["now"]["action"] == "pass"


def test_each_turn_has_the_extensions_of_its_directory(tmp_path: Path) -> None:
    """Of a project that is trusted; once it is not, its verdicts are no longer there, and it says
    so."""
    recording = Recording(tmp_path)
    place = Place(tmp_path, home=recording.home)
    place.add("rules", GOOD)
    place.trust()
    with recording.runtime() as runtime:
        for cwd in (place.root, recording.cwd):
            with runtime.turn(session_id="s1", cwd=cwd) as turn:
                call(turn, stop=True)
    assert [line["action"] for line in recording.lines()] == ["block"]
    assert recording.again()["changed"] == []

    place.untrust()

    told = recording.again()
    assert actions(told) == [("block", "pass")]
    assert any("trust" in notice for notice in told["notices"])


def test_nothing_is_written(recording: Recording) -> None:
    """No state, no log, nothing of what was loaded; handlers have state all the same."""
    recording.add("limit", LIMITED, LIMITS)
    recording.config("limit: {in_turn: 3, in_session: 100}\n")
    with recording.runtime() as runtime, runtime.turn(session_id="s1") as turn:
        call(turn)
    # What a load would now remember is not what the last one did.
    recording.add("limit", LIMITED.replace("def limit", "def other"), LIMITS)
    recording.add("new", '@register_hook("intercept_tool_call")\ndef f(): return None\n')
    before = files_below(recording.home)

    assert recording.again()["compared"] == 1

    assert files_below(recording.home) == before


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    kept = [path for path in found if "__pycache__" not in path.parts]
    return {str(path): (os.stat(path).st_mtime_ns, os.stat(path).st_size) for path in kept}
