"""What `--json` prints is what docs/output.schema.json says, of every command."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from tests.cli.conftest import SCHEMA, schema_of
from tests.projects import GUARD

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.cli._commands import COMMANDS
from hermes_ext.settings.names import HOOKS
from hermes_ext.turns.decisions.line import DecisionEvent
from hermes_ext.turns.decisions.log import DecisionLog

DOCUMENT = json.loads(SCHEMA.read_text(encoding="utf-8"))
FAILING = {
    "list": (),
    "enable": ("nothing-like-it",),
    "disable": ("nothing-like-it",),
    "info": ("nothing-like-it",),
    "doctor": ("--deadline", "0"),
    "new": ("no name",),
    "test": ("nothing-like-it",),
    "replay": (),
    "trust": ("nowhere",),
    "untrust": (),
    "why": (),
    "log": (),
    "install": (),
    "uninstall": (),
    "completion": ("nosuch",),
}


def test_the_schema_is_one_and_knows_each_command():
    """It is a valid schema, each command has a part of its own, and no object is open."""
    Draft202012Validator.check_schema(DOCUMENT)

    assert {each["$ref"].rpartition("/")[2] for each in DOCUMENT["anyOf"]} == {*COMMANDS, "error"}
    assert DOCUMENT["$defs"]["hook_name"]["enum"] == [*HOOKS]
    assert [
        each for each in objects_in(DOCUMENT) if each["additionalProperties"] is not False
    ] == []


def objects_in(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for each in schema.values():
            yield from objects_in(each)
    if isinstance(schema, list):
        for each in schema:
            yield from objects_in(each)


def test_the_schema_takes_nothing_else():
    """A key too many, or one that is missing, is against it."""
    good = {"root": "/x", "digest": "0" * 64}

    assert schema_of("trust").is_valid(good)
    assert not schema_of("trust").is_valid(good | {"more": 1})
    assert not schema_of("trust").is_valid({"root": "/x"})


def a_log_with_payloads(folder):
    """Of a block that today's extensions know nothing of."""

    @register_hook("intercept_tool_call")
    def no_writing():
        return HookResult.block("no")

    runtime = Runtime([no_writing])
    runtime.services.log = DecisionLog(folder / "recorded.jsonl", "payloads")
    with runtime.turn(session_id="s1", cwd=folder) as turn:
        turn.intercept_tool_call("write_file", {"path": "a"})
    runtime.close()
    return runtime.log.path


def test_every_command_that_ends_well(home, repo, installed, tmp_path):
    """The real output of each command, with all that can be in it, is in the documented form."""
    home.add("alpha", manifest="config: {properties: {a: {default: 1}}}\n")
    home.add("broken", "1 / 0\n")
    home.write_config("extensions:\n  required: [alpha]\n  on: [nowhere]\n  disabled: [x]\n")
    repo.add("rules", GUARD)
    repo.settings("alpha: {a: 2}\nnobody: {}\n")
    log = DecisionLog(home.path / "logs" / "extensions.jsonl")
    log.write(DecisionEvent("intercept_tool_call", {}, {"action": "block", "blocked_by": "alpha"}))
    assert log.flush(30)
    recorded = a_log_with_payloads(tmp_path)

    for argv in (
        ("install",),
        ("list",),
        ("trust", "--diff", "--full"),
        ("trust",),
        ("trust", "--list"),
        ("trust", "--digest"),
        ("list", "--load"),
        ("list", "--order", "intercept_tool_call"),
        ("info", "alpha"),
        ("info", "audit-trail"),
        ("test", "audit-trail"),
        ("test", "workflow-guard", "--chain"),
        ("replay", str(recorded)),
        ("enable", "audit-trail"),
        ("disable", "rules", "--hook", "intercept_tool_call"),
        ("new", "fresh", "--hook", "before_llm_call", "--guard"),
        ("new", "ours", "--project"),
        ("doctor",),
        ("untrust",),
        ("untrust",),
        ("why",),
        ("log",),
        ("completion", "bash"),
        ("uninstall",),
    ):
        assert "error" not in home.run(*argv, "--json").json, argv


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_fails(home, repo, command):
    """What goes wrong is one JSON value too, with the keys of an error, and nothing on stderr."""
    home.config.mkdir()  # no file, so that nothing can be written to it
    (home.path / "extensions-trust").write_text("no folder")

    output = home.run(command, *FAILING[command], "--json")

    assert output.code in {1, 2}
    assert output.err == ""
    told = output.json
    assert "error" in told or told["problems"]
