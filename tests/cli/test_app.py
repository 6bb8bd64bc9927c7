from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest
from attrs import evolve
from tests.cli.conftest import GOOD

from hermes_ext import Runtime
from hermes_ext.__about__ import __version__
from hermes_ext.cli import add_commands, run, slash
from hermes_ext.rules import Rulebook

COMMANDS = ("list", "enable", "disable", "info", "doctor", "why", "log", "install", "uninstall")


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("nonsense",),
        ("enable",),
        ("enable", "a", "--hook", "befor_llm_call"),
        ("list", "--deadline", "0"),
        ("list", "--deadline", "soon"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(home, argv):
    """A command line that cannot be right ends with 2 and says what is right."""
    output = home.run(*argv)

    assert output.code == 2
    assert "usage" in output.out + output.err


@pytest.mark.parametrize("number", ["9" * 20, "9" * 5_000], ids=["20 digits", "5,000 digits"])
def test_a_number_without_end_is_as_many_as_there_are(home, number):
    """Of lines, in a chat too, and of seconds."""
    home.add("alpha", GOOD)
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "ls"})
    runtime.close()

    assert len(home.run("log", "-n", number, "--json").json["lines"]) == 1
    assert len(slash(f"log {number}", home=home.path, session="s1").splitlines()) == 2
    assert "without payloads" in str(home.run("replay", "--limit", number, "--json").json)
    assert home.run("list", "--load", "--deadline", number[:300]).code == 0


def test_a_command_that_is_misspelt(home):
    """The nearest one is named, in words and as JSON."""
    assert 'Did you mean "list"?' in home.run("lst").err
    assert 'Did you mean "doctor"?' in home.run("docter", "--json").out.replace("\\", "")
    assert "Did you mean" not in home.run("xyzzy").err


def test_wrong_usage_names_the_command(home):
    """One name too many is told with the usage of that very command, as JSON with --json."""
    output = home.run("enable", "a", "b")
    assert "usage: hermes-ext enable" in output.err
    assert "hermes-ext enable: error: unrecognized arguments: b" in output.err

    for argv in (["enable", "a", "b"], ["enable"], ["nonsense"], ["list", "--deadline", "0"]):
        output = home.run(*argv, "--json")
        assert (output.code, output.err) == (2, "")
        assert output.json["error"].startswith("hermes-ext")


def test_a_misspelt_hook_is_suggested(home):
    """An unknown hook on the command line names the near one."""
    assert 'Did you mean "before_llm_call"?' in home.run("enable", "a", "--hook", "befor_llm").err


def test_version(home):
    """`--version` prints name and version."""
    assert home.run("--version").out == f"hermes-ext {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_and_json(home, command):
    """Each command explains itself and takes --json."""
    output = home.run(command, "--help")

    assert output.code == 0
    assert "--json" in output.out


def test_fits_into_another_programs_parser(home):
    """`add_commands` fills a subparser of a host, as Hermes does it, and `run` takes the result."""
    parser = argparse.ArgumentParser(prog="hermes")
    parser.add_argument("--json", action="store_true")
    host = parser.add_subparsers(dest="command").add_parser("extensions")
    add_commands(host)
    host.set_defaults(func=run)

    args = parser.parse_args(["extensions", "list", "--json"])

    assert args.command == "extensions"
    assert args.json is False
    assert args.func(args, prog="hermes extensions") == 0
    assert json.loads(home.capsys.readouterr().out)["extensions"] is not None


def test_the_hosts_name_stands_in_what_comes_next(home):
    """Next steps are told with the command that the user typed."""
    parser = argparse.ArgumentParser()
    add_commands(parser)

    run(parser.parse_args(["install"]), prog="hermes extensions")

    assert "hermes extensions doctor" in home.capsys.readouterr().out


def test_errors_are_one_json_value_too(home):
    """With --json a failure is JSON on stdout, with file and line, and exit code 1."""
    home.write_config("extensions:\n  on: [a\n")

    output = home.run("disable", "a", "--json")

    assert output.code in {1, 2}
    home.add("a")
    output = home.run("disable", "a", "--json")
    assert output.code == 1
    assert output.json["file"] == str(home.config)
    assert output.err == ""


def test_a_closed_pipe_is_no_error(home):
    """A reader that goes away early causes no traceback."""
    for number in range(200):
        home.add(f"one-{number}")
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_ext.cli", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()

    assert process.wait() == 0
    assert errors == b""


# -- in a chat ------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["", "list", "  list "])
def test_a_chat_may_list(home, asked):
    """`/extensions` and `/extensions list` show what is installed, as plain text."""
    home.add("alpha")

    answer = slash(asked)

    assert "alpha" in answer
    assert "\x1b" not in answer
    assert max(map(len, answer.splitlines())) <= 80


def test_a_chat_sees_what_runs_in_this_process(home):
    """What was loaded is shown as it runs; what the files say by now is one line."""
    changed = "changed since: takes effect on the next turn, or after a restart"
    home.run("install")
    home.add("alpha")
    home.add("beta", GOOD.replace("40", "41"))
    live = Runtime.from_config(home=home.path)
    assert changed not in slash("list", live=live)

    home.run("disable", "alpha")
    home.add("gamma")
    rows = slash("list", live=live).split("\n")

    place = {row.split()[0]: number for number, row in enumerate(rows) if row[:1].strip()}
    assert [rows[place[name]].split()[-1] for name in ("alpha", "beta")] == ["enabled"] * 2
    assert [rows[place[name] + 1].strip() == changed for name in ("alpha", "beta", "gamma")] == [
        True,
        False,
        True,
    ]
    assert changed in slash("info alpha", live=live)
    assert "extensions.disabled names it" in slash("list")

    home.run("uninstall")
    refused = Rulebook(evolve(live.rules, refusal="no tool runs"))
    live = Runtime.of(live.services, refused)
    shown = slash("list", live=live)
    assert "Every tool call is refused: no tool runs" in shown
    assert "Not in force" not in shown


def test_a_chat_may_ask_about_one(home):
    """`/extensions info NAME` shows one; an unknown name is answered, not raised."""
    home.add("alpha", manifest="description: Looks after things\n")

    assert "Looks after things" in slash("info alpha")
    assert 'no extension "alhpa"' in slash("info alhpa")
    assert 'Did you mean "alpha"?' in slash("info alhpa")


@pytest.mark.parametrize(
    "asked", ["enable alpha", "disable alpha", "install", "uninstall", "doctor", "trust ."]
)
def test_a_chat_changes_nothing(home, asked):
    """All else is refused in a chat, names the terminal's command, and touches no file."""
    home.add("alpha")
    before = sorted(home.path.rglob("*"))

    answer = slash(asked)

    assert "not available in a chat" in answer
    assert f"hermes extensions {asked}" in answer
    assert sorted(home.path.rglob("*")) == before


@pytest.mark.parametrize("asked", ["info", "info a b", "list now", 'info "a', "list --load"])
def test_a_chat_command_that_makes_no_sense_is_answered(home, asked):
    """Wrong usage gets an answer in words; nothing is raised into the chat."""
    assert slash(asked)


def test_a_chat_never_sees_control_characters(home):
    """What a person typed goes back escaped."""
    assert "\x1b" not in slash("\x1b[31mboo")
