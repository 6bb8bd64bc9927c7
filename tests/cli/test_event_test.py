"""`test`: an extension on events, and what each of its handlers made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Home
from tests.projects import GUARD, Place

from hermes_ext import Runtime

RULES = """
import sys
from pathlib import Path
from hermes_ext import HookResult, register_hook

print("loaded")

@register_hook("transform_user_input")
def louder(user_message):
    print("called")
    return HookResult.rewrite(user_message.replace("Fix", "First plan, then fix"))

@register_hook("before_llm_call")
def remind(messages):
    return HookResult.inject_system("Be brief.\\nBe kind.")

@register_hook("intercept_tool_call", tools=["write_file"])
def elsewhere(tool_args, config):
    return HookResult.rewrite({**tool_args, "path": config["folder"]})

@register_hook("intercept_tool_call", guard=True, tools=["terminal"])
def careful(tool_args):
    if "push" in tool_args["command"]:
        Path("allowed").exists()
        return HookResult.block("no push", metadata={"setting": "rules.folder"})

@register_hook("intercept_tool_call", tools=["mcp_*"])
def never(tool_args):
    return None
"""
MANIFEST = "config: {properties: {folder: {default: out}, api_key: {default: hush}}}\n"
NOTHING = "from hermes_ext import register_hook\n"


@pytest.fixture
def rules(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An extension with something to say on three hooks."""
    monkeypatch.delenv("COLUMNS")  # lines are whole, however long the paths are
    home.write_config("extensions:\n  rules: {folder: new}\n")
    return home.add("rules", RULES, MANIFEST)


def events_of(home: Home, *argv: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.run("test", *argv, "--json").json["events"]
    return found


def test_what_went_in_and_what_came_out(home: Home, rules: Path) -> None:
    """Of each handler, as a diff, with settings, place, reason, and what it looked at."""
    output = home.run("test", "rules")

    assert output.code == 0, output
    text = output.out
    assert 'folder = "new" (config.yaml:2)' in text
    assert 'api_key = "[redacted]" (default)' in text
    assert "    -Fix the bug in src/app.py, then push my branch." in text
    assert "    +First plan, then fix the bug in src/app.py, then push my branch." in text
    assert "    + Be brief.\n    + Be kind." in text
    assert '    - path: "src/app.py"\n    + path: "new"' in text
    assert "rules/careful  block  guard" in text
    line = 1 + RULES.splitlines().index("def careful(tool_args):")
    assert f"{rules}/__init__.py:{line - 1}" in text
    assert "    no push\n    by rules.folder\n    looked at " in text
    assert (
        "never  was not called: no event is of the tools or origins that it is for (mcp_*)" in text
    )
    assert "read_file" not in text  # no handler is called for it
    assert "loaded" not in text  # what it prints is on stderr


def test_json_and_one_hook(home: Home, rules: Path) -> None:
    """Exactly JSON, whatever is printed; `--hook` leaves the handlers for others alone."""
    output = home.process("test", "rules", "--hook", "transform-user-input", "--json")

    first, second = output.json["events"]
    assert "called" in output.err
    assert (first["input"], first["output"]) == (
        "Fix the bug in src/app.py, then push my branch.",
        "First plan, then fix the bug in src/app.py, then push my branch.",
    )
    (handler,) = first["handlers"]
    assert (handler["in"], handler["out"]) == (first["input"], first["output"])
    assert handler["duration_ns"] > 0
    assert (second["verdict"]["action"], second["handlers"][0]["changed"]) == ("rewrite", False)


def test_events_of_a_file_are_of_one_turn(home: Home, tmp_path: Path) -> None:
    """In their order, with the state of a turn; a failure is told with its traceback."""
    home.add(
        "counts",
        """
        from hermes_ext import HookResult, register_hook

        @register_hook("intercept_tool_call", guard=True)
        def second(tool_args, state, platform):
            if state.count("calls") == 2:
                raise LookupError(f"second on {platform}")
        """,
    )
    file = tmp_path / "events.yaml"
    event = "- {hook: intercept_tool_call, tool_name: t, platform: irc}\n"
    file.write_text(event * 3)

    output = home.run("test", "counts", "--event", str(file))
    events = events_of(home, "counts", "--event", str(file))

    assert output.code == 1
    assert "LookupError: second on irc" in output.out
    assert "line 7, in second" in output.out
    assert "3 events, 1 failed" in output.out
    assert [each["verdict"]["action"] for each in events] == ["pass", "block", "pass"]
    assert [each["label"] for each in events] == ["events.yaml:1", "events.yaml:2", "events.yaml:3"]
    file.write_text(event + "- {hook: intercept_tool_call, tool_nam: t}\n")
    told = home.run("test", "counts", "--event", str(file), "--json")
    assert told.code == 1
    assert (told.json["line"], told.json["key"]) == (2, "tool_nam")


def test_the_newest_recorded_event(home: Home, tmp_path: Path) -> None:
    """`--last` takes the newest that it is called for; without payloads it says how to get them."""
    home.add(
        "rules",
        """
        from hermes_ext import HookResult, register_hook

        @register_hook("intercept_tool_call", tools=["terminal"])
        def f(tool_args): return HookResult.block("not " + tool_args["command"])
        """,
    )
    home.write_config("extensions: {log: payloads}\n")
    told = home.run("test", "rules", "--last")
    assert told.code == 1
    assert "`log: payloads`" in told.err
    runtime = Runtime.from_config(home=home.path, cwd=tmp_path)
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "first"})
        turn.intercept_tool_call("terminal", {"command": "API_KEY=hunter2hunter2 go"})
        turn.intercept_tool_call("write_file", {"path": "a"})
    runtime.close()

    output = home.run("test", "rules", "--last")

    assert "not API_KEY=[redacted" in output.out
    assert "hunter2" not in output.out
    assert "1 event," in output.out


def test_what_is_off_can_be_tried(home: Home, tmp_path: Path, monkeypatch: Any) -> None:
    """Disabled, observed, with everything off, bundled, or installed nowhere: by name or path."""
    home.add("rules", GUARD.replace('tool_args.get("stop")', "True"))
    home.write_config("extensions: {enabled: false, disabled: [rules], observe: [rules]}\n")
    elsewhere = tmp_path / "my-rules"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").write_text(GUARD.replace('tool_args.get("stop")', "True"))
    monkeypatch.setenv("HERMES_EXT_OFF", "1")

    for name in ("rules", str(elsewhere), str(elsewhere / "__init__.py"), "confirm-destructive"):
        actions = {each["verdict"]["action"] for each in events_of(home, name)}
        assert actions & {"block", "ask"}, name
    assert home.run("info", "rules", "--json").json["extension"]["status"] == "disabled"


def test_in_the_whole_chain(home: Home, rules: Path) -> None:
    """With what else is on: another blocks first, and the package's own guard is there."""
    home.add(
        "first",
        """
        from hermes_ext import HookResult, register_hook

        @register_hook("intercept_tool_call", guard=True, priority=1)
        def all_of_it(): return HookResult.block("first")
        """,
    )

    alone, together = events_of(home, "rules"), events_of(home, "rules", "--chain")

    def of(events: list[dict[str, Any]], tool: str) -> dict[str, Any]:
        return next(each for each in events if each["tool"] == tool)

    assert of(alone, "write_file")["verdict"]["action"] == "rewrite"
    blocked = of(together, "write_file")
    assert blocked["verdict"]["extension"] == "first"
    who = [each["extension"] for each in blocked["handlers"]]
    assert who[0] == "rules"
    assert {"rules", "first"} <= {*who} <= {"rules", "first", "hermes-ext"}


def test_what_does_not_load(home: Home) -> None:
    """The reason, and exit code 1; settings that are wrong too."""
    home.add("broken", "1 / 0\n")
    home.add("set", NOTHING, "config: {properties: {n: {type: integer}}}\n")
    home.write_config("extensions:\n  set: {n: x}\n")

    for name, told in (("broken", "ZeroDivisionError"), ("set", "config.yaml:2")):
        output = home.run("test", name)
        assert output.code == 1
        assert told in output.out


def test_what_never_ends_is_stopped(home: Home) -> None:
    """At the deadline, and the event is named."""
    home.add(
        "hangs",
        """
        import threading
        from hermes_ext import register_hook

        @register_hook("transform_user_input")
        def f(): threading.Event().wait()
        """,
    )

    for seconds in ("2", "10", "60"):  # a machine with much to do may not even load it in 2 s
        output = home.run("test", "hangs", "--deadline", seconds)
        if "at event" in output.err:
            break

    assert output.code == 1
    assert f"was stopped after {seconds} s at event 1 of 2 (sample: an input)" in output.err


def test_an_untrusted_project_is_not_run(home: Home, repo: Place) -> None:
    """Not by name and not by path; once it is trusted, both ways."""
    folder = repo.add("rules", GUARD.replace('tool_args.get("stop")', "True"))
    for name in ("rules", str(folder)):
        output = home.run("test", name)
        assert output.code == 1
        assert "not trusted" in output.err
        assert "hermes-ext trust" in output.err

    repo.trust()

    for name in ("rules", str(folder)):
        assert {each["verdict"]["action"] for each in events_of(home, name)} == {"block"}


def test_an_untrusted_project_inside_a_trusted_one(home: Home, repo: Place) -> None:
    """Trust further up says nothing about it."""
    code = GUARD.replace('tool_args.get("stop")', "True")
    repo.add("rules", code)
    repo.trust()
    inner = repo.root / "vendored" / ".hermes" / "extensions" / "theirs"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("raise SystemExit('it runs')")

    output = home.run("test", str(inner))

    assert output.code == 1
    assert "not trusted" in output.err


def test_names_and_paths_that_are_none(home: Home, rules: Path, tmp_path: Path) -> None:
    """With what was probably meant."""
    for name, told in (
        ("rulez", 'Did you mean "rules"?'),
        ("./nowhere", "there is nothing at"),
        (str(tmp_path), "is not an extension"),
    ):
        output = home.run("test", name)
        assert (output.code, output.out) == (2, "")
        assert told in output.err
