"""`why`, `log`, `test` and `replay` of calls that extensions confine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from tests.cli.conftest import Home
from tests.cli.test_why import facts

from hermes_ext import Runtime, ToolCall
from hermes_ext.confine import Confinement

RULES = """
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def read_only(tool_name, config):
    return HookResult.confine(config["may_change"], "none", reason="no plan yet")
"""
MANIFEST = "config: {properties: {may_change: {default: [plans, absent]}}}\n"
MAKE = ("terminal", {"command": "make"})


@frozen
class Host:
    why_not: str | None = None
    level: str = "Landlock alone"

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        return self.why_not


@pytest.fixture
def play(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a call in a project with `plans`; returns the project."""
    monkeypatch.delenv("COLUMNS")  # lines are whole, however long the paths are

    def played(
        tool: str = MAKE[0],
        args: dict[str, Any] = MAKE[1],
        *,
        why_not: str | None = None,
        config: str = "",
        yes: bool | None = None,
    ) -> Path:
        project = tmp_path / "project"
        (project / "plans").mkdir(parents=True, exist_ok=True)
        if not (home.path / "extensions" / "rules").exists():
            home.add("rules", RULES, MANIFEST)
        home.write_config(f"extensions:\n  log: payloads\n{config}")
        approver = None if yes is None else lambda _: yes
        runtime = Runtime.from_config(
            home=home.path, cwd=project, confiner=Host(why_not), approver=approver
        )
        with runtime.turn(session_id="s1", turn_id="t1") as turn:
            turn.intercept_tool_call(tool, args)
        runtime.close()
        return project

    return played


def _log(home: Home) -> Path:
    return home.path / "logs" / "extensions.jsonl"


def told(home: Home) -> dict[str, Any]:
    (decision,) = home.run("why", "--json").json["decisions"]
    return dict(decision)


def test_a_call_that_ran_confined(home: Home, play: Callable[..., Path]) -> None:
    """Who confined it and why, what it could change, what not and why, and what kept it to that."""
    project = play()
    decision = told(home)
    assert decision["says"] == "rules confined terminal"
    assert (decision["reason"], decision["handler"]) == ("no plan yet", "read_only")
    line = decision["decision"]
    assert line["confined"] == {
        "writable": [str(project / "plans")],
        "network": "none",
        "kept_by": "kernel",
        "level": "Landlock alone",
        "left_out": [{"path": "absent", "why": "it does not exist"}],
    }
    shown = facts(home.run("why").out)
    for fact in (
        ("Because", "no plan yet"),
        ("Confined by", "rules/read_only: no plan yet"),
        ("Writable", str(project / "plans")),
        ("Not writable", "absent: it does not exist"),
        ("Network", "none"),
        ("Kept by", "the kernel (Landlock alone)"),
    ):
        assert fact in shown
    row = home.run("log").out
    assert "confine" in row
    assert "rules: no plan yet" in row


def test_info_warns_where_nothing_is_confined(home: Home) -> None:
    """In one line: what happens to such calls, and why."""
    home.add("rules", RULES, MANIFEST)
    home.write_config("terminal: {backend: ssh}\n")
    told = home.run("info", "rules", "--json").json["unconfined"]
    assert told.startswith("calls that rules confines are blocked here: ")
    assert told in " ".join(home.run("info", "rules").out.split())


def test_why_explains_what_was_refused_in_the_same_turn(home: Home, tmp_path: Path) -> None:
    """A call that ran confined afterwards does not hide it; one of a later turn does."""
    home.add("rules", RULES.replace('["may_change"]', '["may_change"][:tool_name == "terminal"]'))
    home.write_config("extensions:\n  rules: {may_change: ['.']}\n")
    runtime = Runtime.from_config(home=home.path, cwd=tmp_path, confiner=Host())
    refused = ("write_file", {"path": "a.py", "content": ""})
    for turn_id, calls in (("t1", [refused, MAKE]), ("t2", [MAKE])):
        with runtime.turn(session_id="s1", turn_id=turn_id) as turn:
            for tool, args in calls:
                turn.intercept_tool_call(tool, args)
        assert runtime.log is not None
        assert runtime.log.flush(30)
        verb, what = ("blocked", "write_file") if turn_id == "t1" else ("confined", "terminal")
        assert told(home)["says"] == f"rules {verb} {what}"
    runtime.close()


def test_log_finds_confined_calls(home: Home, play: Callable[..., Path]) -> None:
    """By the action, also where the call was blocked after all, and by the extension."""
    play()
    play(why_not="it is far away")
    for query in (("--action", "confine"), ("--extension", "rules")):
        lines = home.run("log", "--json", *query).json["lines"]
        assert [line["action"] for line in lines] == ["confine", "block"]


def test_a_call_that_cannot_be_confined(home: Home, play: Callable[..., Path]) -> None:
    """Which setting of the user's decides that it is blocked, and in which line it is."""
    play(why_not="it is far away", config="  confine_unavailable: block\n")
    decision = told(home)
    assert decision["says"] == "rules blocked terminal"
    assert decision["reason"].startswith("no plan yet, and terminal cannot be confined: it is far")
    assert decision["settings"] == [
        {
            "key": "extensions.confine_unavailable",
            "value": "block",
            "from": "config.yaml:3",
            "file": f"{home.config}:3",
            "today": None,
        }
    ]
    assert ("Kept by", "nothing: it cannot be confined") in facts(home.run("why").out)


@pytest.mark.parametrize("yes", [True, False])
def test_a_call_that_was_asked_about(home: Home, play: Callable[..., Path], yes: bool) -> None:
    """The question, the answer, and the setting that wants it asked."""
    play(why_not="it is far away", config="  confine_unavailable: ask\n", yes=yes)
    decision = told(home)
    answer = "a person said yes" if yes else "a person said no"
    assert decision["says"] == f"rules asked about terminal: {answer}"
    assert "A yes runs it unconfined" in decision["reason"]
    assert decision["decision"]["confined"]["asked"] is True
    assert decision["settings"][-1]["value"] == "ask"


def test_what_would_have_been_confined(home: Home, play: Callable[..., Path]) -> None:
    """Of an extension that is only observed: it changed nothing, and what it wanted is told."""
    play(config="  observe: [rules]\n", why_not="it is far away")
    decision = told(home)
    assert decision["says"] == "rules would have confined terminal; it is only observed"
    assert decision["reason"] == "no plan yet"
    line = decision["decision"]
    assert line["action"] == "pass"
    (step,) = [each for each in line["steps"] if each.get("observed")]
    assert step["bounds"] == {"writable": ["plans", "absent"], "network": "none"}
    assert "would have confined" in home.run("why", "t1").out


def test_test_says_what_may_change(
    home: Home, play: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each handler: what of it the disk leaves, and why not the rest. Nothing is confined."""
    project = play()
    (project / ".git").mkdir()
    monkeypatch.chdir(project / "plans")
    shown = home.run("test", "rules", "--hook", "intercept_tool_call").out
    assert "confine by rules" in shown
    assert f"may change {project / 'plans'}, without a network" in shown
    assert "not writable: absent: it does not exist" in shown
    events = home.run("test", "rules", "--json").json["events"]
    assert [event["verdict"]["confines"][0]["writable"] for event in events]
    assert events[0]["handlers"][0]["bounds"] == {
        "writable": ["plans", "absent"],
        "network": "none",
    }
    assert events[0]["handlers"][0]["may_change"] == {
        "writable": [str(project / "plans")],
        "left_out": [{"path": "absent", "why": "it does not exist"}],
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"why_not": "it is far away"},
        {"why_not": "it is far away", "config": "  confine_unavailable: ask\n", "yes": True},
        {"why_not": "it is far away", "config": "  confine_unavailable: ask\n", "yes": False},
        {"tool": "write_file", "args": {"path": "a.py", "content": ""}},
        {"tool": "write_file", "args": {"path": "plans/a", "content": ""}},
    ],
    ids=["confined", "blocked", "approved", "refused", "outside", "inside"],
)
def test_replay_compares_what_extensions_want(
    home: Home, play: Callable[..., Path], options: dict[str, Any]
) -> None:
    """Whatever became of it on this machine: that says nothing about the rules."""
    play(**options)
    assert home.run("replay", str(_log(home)), "--json").json["changed"] == []
    home.write_config("extensions:\n  rules: {may_change: [src]}\n")
    (change,) = home.run("replay", str(_log(home)), "--json").json["changed"]
    assert (change["then"]["action"], change["now"]["action"]) == ("confine", "confine")
    assert change["then"]["confines"][0]["writable"] == ["plans", "absent"]
    assert change["now"]["confines"][0]["writable"] == ["src"]
    shown = home.run("replay", str(_log(home))).out
    assert "confine by rules: no plan yet; may change src, without a network" in shown


def test_a_line_that_somebody_else_wrote(home: Home, play: Callable[..., Path]) -> None:
    """Values of another kind than those that are written are left out, and nothing fails."""
    play()
    line = json.loads(_log(home).read_text().splitlines()[-1])
    line["confined"] = {"writable": "all", "network": 3, "left_out": [1, {"path": []}]}
    line["confines"] = [7, {"extension": "rules", "reason": ["x"]}]
    _log(home).write_text(json.dumps(line) + "\n")
    for argv in (("why",), ("log",), ("why", "t1")):
        assert home.run(*argv).code == 0
    line["confined"], line["confines"] = "yes", {"a": 1}
    _log(home).write_text(json.dumps(line) + "\n")
    for argv in (("why",), ("log",)):
        assert home.run(*argv).code == 0


@pytest.mark.parametrize(
    ("before", "after", "actions"),
    [
        ("HookResult.block('no')", "None", ("block", "confine")),
        (
            "HookResult.rewrite({'command': 'a'})",
            "HookResult.rewrite({'command': 'b'})",
            ("confine", "confine"),
        ),
        ("HookResult.ask('sure?')", "None", ("ask", "confine")),
    ],
    ids=["a block", "a rewrite", "a question"],
)
def test_replay_sees_what_else_changed(
    home: Home, tmp_path: Path, before: str, after: str, actions: tuple[str, str]
) -> None:
    """Beside a confinement that stays as it was: who ended the chain, and what the value became."""
    code = RULES + (
        '\n@register_hook("intercept_tool_call", priority=500)\n'
        "def then(tool_name):\n"
        f"    return {before}\n"
    )
    file = home.add("rules", code.replace("guard=True", "priority=1"), MANIFEST) / "__init__.py"
    home.write_config("extensions:\n  log: payloads\n")
    runtime = Runtime.from_config(home=home.path, cwd=tmp_path, confiner=Host())
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call(*MAKE)
    runtime.close()
    assert home.run("replay", str(_log(home)), "--json").json["changed"] == []
    file.write_text(file.read_text().replace(before, after))
    (change,) = home.run("replay", str(_log(home)), "--json").json["changed"]
    assert (change["then"]["action"], change["now"]["action"]) == actions
