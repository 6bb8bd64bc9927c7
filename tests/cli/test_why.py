"""`why`: who decided what, by which setting, from which file and line, and how to change it."""

from __future__ import annotations

import ast
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import ROOT
from tests.cli.conftest import Home
from tests.projects import Place

from hermes_ext import Runtime

RULES = """
from hermes_ext import HookResult, register_hook

@register_hook("before_llm_call")
def remind(messages):
    return HookResult.inject_system("Be brief.")

@register_hook("intercept_tool_call", tools=["terminal"])
def louder(tool_args):
    if tool_args["command"] == "ls":
        return HookResult.rewrite({"command": "ls -l"}, metadata={"setting": "rules.limits.a"})

@register_hook("intercept_tool_call", guard=True, tools=["terminal"])
def careful(tool_args):
    setting = ["extensions.rules.limits", "rules.words[0]", "elsewhere"]
    if tool_args["command"] == "rm":
        return HookResult.block("not\\x1b[31m rm", metadata={"setting": setting})
    if tool_args["command"] == "push":
        return HookResult.ask("push?", metadata={"setting": "words"})
"""
MANIFEST = """
config:
  properties:
    words: {default: [rm]}
    limits: {type: object, properties: {a: {default: 1}, api_key: {default: hush}}}
"""


class Played:
    """A home in which `rules` is on, and turns of its own runtime."""

    def __init__(self, home: Home, config: str = "", cwd: Path | None = None) -> None:
        self.home = home
        self.rules = home.add("rules", RULES, MANIFEST) / "__init__.py"
        home.write_config(f"extensions:\n  rules:\n    limits: {{a: 2}}\n{config}")
        self.runtime = Runtime.from_config(home=home.path, cwd=cwd)

    def turn(self, *commands: str, turn: str | None = None, **more: Any) -> None:
        with self.runtime.turn(session_id="s1", turn_id=turn, **more) as opened:
            opened.before_llm_call([{"role": "user", "content": "go"}], "system")
            for command in commands:
                opened.intercept_tool_call("terminal", {"command": command})
            opened.before_llm_call([{"role": "user", "content": "go"}], "system")
        assert self.runtime.log is not None
        assert self.runtime.log.flush(30)

    def line_of(self, name: str) -> int:
        lines = self.rules.read_text().splitlines()
        return lines.index(next(line for line in lines if line.startswith(f"def {name}(")))

    def why(self, *argv: str) -> list[dict[str, Any]]:
        output = self.home.run("why", *argv, "--json")
        assert output.code == 0, output
        found: list[dict[str, Any]] = output.json["decisions"]
        return found


@pytest.fixture
def played(home: Home) -> Played:
    return Played(home)


def facts(text: str) -> list[tuple[str, str]]:
    """The labelled lines of a page."""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith(" "))
    return [(label, value.strip()) for label, colon, value in pairs if colon]


def test_the_last_decision_in_labelled_lines(played: Played, home: Home) -> None:
    """Who, what, on what and why; by which settings, in which line, and how to change it."""
    played.turn("ls", "rm", turn="0123456789abcdef")
    for argv in ((), ("last",)):
        shown = home.run("why", *argv).out
        told = facts(shown)
        assert shown.splitlines()[0] == "rules blocked terminal"
        assert ("Decided by", "rules") in told
        assert ("Because", r"not\x1b[31m rm") in told
        assert ("Call", "rm") in told
        assert ("Handler", "careful") in told
        assert ("File", f"{played.rules}:{played.line_of('careful')}") in told
        assert ("Turn", "0123456789abcdef") in told
        assert [each for each in told if each[0] in ("Setting", "Value", "Set in")] == [
            ("Setting", "extensions.rules.limits.a"),
            ("Value", "2"),
            ("Set in", f"{home.config}:3"),
            ("Setting", "extensions.rules.limits.api_key"),
            ("Value", '"[redacted]"'),
            ("Set in", "default"),
            ("Setting", "extensions.rules.words"),
            ("Value", '["rm"]'),
            ("Set in", "default"),
            ("Setting", "elsewhere"),
        ]
        assert shown.endswith(
            "To change it:\n  hermes-ext info rules\n  hermes-ext disable rules\n"
        )


def test_facts_and_commands_are_never_broken(
    played: Played, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However narrow the terminal is, they can be copied."""
    played.turn("rm")
    monkeypatch.setenv("COLUMNS", "40")
    shown = home.run("why").out
    assert f"{played.rules}:{played.line_of('careful')}" in shown
    assert "\n  hermes-ext disable rules\n" in shown


def test_commands_are_quoted_for_a_shell(home: Home) -> None:
    """An extension may have a name that a shell would take apart."""
    name = "it's $(odd)"
    home.add(name, RULES)
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "rm"})
    runtime.close()
    (told,) = home.run("why", "--json").json["decisions"]
    assert [shlex.split(each) for each in told["to_change"]] == [
        ["hermes-ext", "info", name],
        ["hermes-ext", "disable", name],
    ]
    for command in told["to_change"]:
        assert f"\n  {command}\n" in home.run("why").out


def test_what_stopped_comes_before_what_comes_with_every_request(
    played: Played, home: Home
) -> None:
    """Instructions hide no verdict; where there is nothing else they are told."""
    played.turn("pwd")
    assert played.why()[0]["says"] == (
        "rules added to the request to the model, in the system prompt"
    )
    played.turn("ls")
    assert played.why()[0]["says"] == "rules rewrote terminal"
    assert played.why()[0]["settings"][0] == {
        "key": "extensions.rules.limits.a",
        "value": 2,
        "from": "config.yaml:3",
        "file": f"{home.config}:3",
        "today": None,
    }
    played.turn("push")
    assert played.why()[0]["says"] == "rules asked about terminal: nobody was there to say yes"
    assert played.why("--hook", "before-llm-call")[0]["decision"]["action"] == "inject_system"


def test_nothing_was_decided(home: Home) -> None:
    """No log, or one in which all passed: one line says so, and the exit code is 1."""
    output = home.run("why")
    assert (output.code, output.out) == (1, "")
    assert "there is no decision log yet" in output.err

    home.add("quiet")
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "ls"})
    runtime.close()
    output = home.run("why", "last", "--json")
    assert output.code == 1
    assert "has blocked, changed, answered or asked anything yet" in output.json["error"]


def test_a_whole_turn(played: Played, home: Home) -> None:
    """All chains of a turn in their order, with every handler where the log has them."""
    played.turn("ls", "rm", turn="aaaa1")
    played.turn("pwd", turn="aaaa2")
    output = home.run("why", "aaaa1")
    text = output.out

    assert output.code == 0
    assert text.startswith("Turn aaaa1, session s1")
    order = ["before_llm_call", "rules rewrote terminal", "rules blocked terminal", "system prompt"]
    places = [text.index(each) for each in order[:3]]
    assert places == sorted(places)
    # Each has one decider, whose handler is named once.
    assert "Handler:      louder" in text
    assert "Handler:      careful" in text
    assert "└─" not in text
    assert "set extensions.log to steps" in text
    assert [each["decision"]["turn"] for each in played.why("aaaa1")] == ["aaaa1"] * 4

    output = home.run("why", "aaaa")
    assert output.code == 1
    assert "2 turns begin with aaaa: aaaa1, aaaa2. Name more of one" in output.err
    output = home.run("why", "aaab1")
    assert output.code == 1
    assert 'Did you mean "aaaa1"?' in output.err


def test_with_steps_every_handler_is_told(home: Home) -> None:
    """Also those that let pass, were not called, or are the package's own."""
    played = Played(home, "  log: steps\n")
    home.add("later")
    played.runtime = Runtime.from_config(home=home.path)
    played.turn("rm", turn="t1")
    text = home.run("why", "t1").out

    assert "├─ later/check  pass" in text
    assert "hermes-ext/keeps_off_the_rules  pass, guard" in text
    assert "└─ rules/careful  block, guard" in text
    assert "set extensions.log to steps" not in text
    assert "decided nothing" not in home.run("log", "--extension", "later").out


def test_who_is_only_observed_is_told_as_such(home: Home) -> None:
    """What it would have done, why and by which setting; it is a decision to ask for."""
    played = Played(home, "  observe: [rules]\n")
    played.turn("rm")
    (told,) = played.why()

    assert told["says"] == "rules would have blocked terminal; it is only observed"
    assert told["reason"] == "not\x1b[31m rm"
    assert "rules would have blocked terminal" in home.run("log").out
    assert "would have block" in home.run("why", told["decision"]["turn"]).out


def test_the_user_decides_where_nobody_is(home: Home) -> None:
    """What the setting answered in place of a person is told with that setting's line."""
    played = Played(home, "  ask_without_human: approve\n")
    played.turn("push")
    (told,) = played.why()

    assert told["says"].endswith("nobody was there, and ask_without_human says yes")
    assert told["reason"] == "push?"
    assert told["settings"][-1] == {
        "key": "extensions.ask_without_human",
        "value": "approve",
        "from": "config.yaml:4",
        "file": f"{home.config}:4",
        "today": None,
    }


def test_the_packages_own_guard_and_refusals(home: Home) -> None:
    """No setting is made up for them; what to do is told."""
    played = Played(home)
    with played.runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("write_file", {"path": str(home.config), "content": "x"})
    played.runtime.close()
    (told,) = played.why()
    assert told["says"] == "hermes-ext blocked write_file"
    assert told["settings"] == []
    assert told["file"].endswith("guard.py")
    assert told["to_change"] == []
    assert "in a terminal" in told["advice"]
    assert "in a terminal" in home.run("why").out

    home.write_config("extensions:\n  required: [absent]\n")
    with Runtime.from_config(home=home.path).turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "ls"})
        assert turn.services.log is not None
        assert turn.services.log.flush(30)
    (told,) = played.why()
    assert told["says"] == (
        "hermes-ext blocked terminal, because absent is required and not loaded"
    )
    assert "absent" in told["reason"]
    assert told["decision"]["missing"] == ["absent"]
    assert (told["extension"], told["file"], told["line"]) == ("hermes-ext", str(home.config), 2)
    assert told["settings"] == [
        {
            "key": "extensions.required",
            "value": ["absent"],
            "from": "config.yaml:2",
            "file": f"{home.config}:2",
            "today": None,
        }
    ]
    assert told["to_change"] == ["hermes-ext doctor"]
    shown = facts(home.run("why").out)
    assert ("Decided by", "hermes-ext") in shown
    assert ("Missing", "absent") in shown
    assert ("Value", '["absent"]') in shown


def test_a_setting_of_the_project(home: Home, repo: Place) -> None:
    """A value that the session's project sets is told with the project's file and line."""
    played = Played(home, "  project_may_set: [rules]\n", cwd=repo.root)
    repo.settings("rules:\n  words: [rm, mv]\n")
    assert home.run("trust").code == 0
    played.runtime = Runtime.from_config(home=home.path, cwd=repo.root)
    played.turn("rm")
    (told,) = played.why()

    (words,) = [each for each in told["settings"] if each["key"] == "extensions.rules.words"]
    assert (words["value"], words["from"]) == (["rm", "mv"], ".hermes/extensions.yaml:2")
    assert words["file"] == f"{repo.root}/.hermes/extensions.yaml:2"


def test_an_extension_of_a_project_somewhere_else(
    home: Home, repo: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that looks at it goes to the project first, also past one of the same name."""
    repo.add("rules", RULES)
    repo.trust()
    runtime = Runtime.from_config(home=home.path, cwd=repo.root)
    with runtime.turn(session_id="s1", cwd=repo.root) as turn:
        turn.intercept_tool_call("terminal", {"command": "rm"})
    runtime.close()

    def info() -> str:
        (told,) = home.run("why", "--json").json["decisions"]
        return str(told["to_change"][0])

    monkeypatch.chdir(repo.root)
    assert info() == "hermes-ext info rules"
    other = Place(tmp_path, "other", home.path)
    for add in (lambda: None, lambda: other.add("rules", RULES)):
        add()
        monkeypatch.chdir(other.root)
        assert info() == f"cd {shlex.quote(str(repo.root))} && hermes-ext info rules"


def test_an_extension_that_is_gone(played: Played, home: Home) -> None:
    """What was logged of it can still be read."""
    played.turn("rm")
    shutil.rmtree(played.rules.parent)
    (told,) = played.why()

    assert told["says"] == "rules blocked terminal"
    assert told["settings"][0]["key"] == "extensions.rules.limits.a"
    assert (told["settings"][0]["value"], told["settings"][0]["today"]) == (2, None)
    assert told["to_change"] == ["hermes-ext info rules"]


def test_bundled_extensions_name_their_settings() -> None:
    """Each result of theirs, but a plain pass, has the setting in its metadata."""
    silent = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (ROOT / "extensions").glob("*/*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and (ast.unparse(call.func).startswith("HookResult.") or ast.unparse(call.func) == "decide")
        and "metadata" not in {keyword.arg for keyword in call.keywords}
    ]
    assert silent == []
