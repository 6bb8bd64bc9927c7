"""Events and logs that come through a pipe: `-`, `/dev/stdin`, `<(…)`, a named pipe."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.cli.conftest import Home, Output

GUARD = """
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def careful(tool_args):
    if "push" in str(tool_args):
        return HookResult.block("no push")
"""
EVENT = json.dumps(
    {
        "hook": "intercept_tool_call",
        "tool_name": "terminal",
        "tool_args": {"command": "git push"},
    }
)


def shell(home: Home, line: str, **options: object) -> Output:
    """One line of bash, in which `ext` stands for the command."""
    command = shlex.join([sys.executable, "-P", "-m", "hermes_ext.cli"])
    done = subprocess.run(
        ["bash", "-c", line.replace("ext ", f"{command} ", 1)],
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, "HERMES_HOME": str(home.path), "EVENT": EVENT},
        **options,  # type: ignore[call-overload]
    )
    return Output(done.returncode, done.stdout, done.stderr, "test")


@pytest.fixture
def rules(home: Home) -> Home:
    home.add("rules", GUARD)
    return home


@pytest.mark.parametrize(
    "line",
    [
        'ext test rules --event - --json <<<"$EVENT"',
        'ext test rules --event /dev/stdin --json <<<"$EVENT"',
        'ext test rules --event <(printf %s "$EVENT") --json',
        'printf %s "$EVENT" > e.json; ext test rules --event /dev/stdin --json < e.json',
        'printf %s "$EVENT" > e.json; ext test rules --event /dev/fd/7 --json 7< e.json',
        'printf %s "$EVENT" | ext test rules --event - --json',
        'mkfifo p; printf %s "$EVENT" > p & ext test rules --event p --json',
    ],
)
def test_events_come_through_a_pipe(rules: Home, line: str) -> None:
    """Each of them is a file of events, for the child process that runs the extension too."""
    output = shell(rules, line)
    assert output.code == 0, output
    (event,) = output.json["events"]
    assert event["verdict"]["action"] == "block"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "the file has no events (standard input)"),
        ("[]", "the file has no events (standard input)"),
        ("[", "the file is not valid YAML"),
        ('{"hook": "intercept_tool_call"}', "tool_name: is needed"),
        ("\0", "the file is UTF-16 or binary, expected UTF-8 (standard input)"),
        ("x" * 50_000_001, "the file is larger than 50,000,000 bytes (standard input)"),
    ],
    ids=["empty", "none", "bad", "incomplete", "binary", "huge"],
)
def test_what_is_piped_is_no_event(rules: Home, given: str, told: str) -> None:
    """A message says so, with the line where there is one; nothing else is printed."""
    output = shell(rules, "ext test rules --event -", input=given)
    assert output.code == 1, output
    assert told in output.err
    assert "standard input" in output.err
    assert "Traceback" not in output.err
    assert output.out == ""


def test_a_terminal_is_not_waited_for(rules: Home) -> None:
    """Nobody types events: standard input that is a terminal is an error at once."""
    master, slave = pty.openpty()
    try:
        for line in (
            "ext test rules --event -",
            "ext test rules --event /dev/stdin",
            "ext replay -",
        ):
            output = shell(rules, line, stdin=slave, timeout=60)
            assert output.code == 2, output
            assert "it is a terminal" in output.err
    finally:
        os.close(master)
        os.close(slave)


def test_standard_input_is_closed(rules: Home) -> None:
    """A message, no traceback."""
    output = shell(rules, "ext test rules --event - <&-")
    assert output.code == 2, output
    assert "it is closed" in output.err


@pytest.mark.parametrize("name", [".", "none.json", "/dev/null"])
def test_what_is_no_file_of_events(rules: Home, name: str) -> None:
    """A folder, nothing at all, and a device that gives nothing."""
    output = shell(rules, f"ext test rules --event {name}")
    assert output.code == 1, output
    assert output.err.startswith("error: ")
    assert "Traceback" not in output.err


def test_a_log_comes_through_a_pipe(rules: Home, tmp_path: Path) -> None:
    """`replay` reads a log from a pipe as it reads a file."""
    from hermes_ext import Runtime

    rules.write_config("extensions: {log: payloads}\n")
    runtime = Runtime.from_config(home=rules.path, cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        turn.intercept_tool_call("terminal", {"command": "git push"})
    runtime.close()
    log = rules.path / "logs" / "extensions.jsonl"
    for line in ("ext replay - --json", "ext replay /dev/stdin --json"):
        with log.open("rb") as stream:
            told = json.loads(shell(rules, line, stdin=stream).out)
        assert (told["compared"], told["changed"]) == (1, [])
    told = json.loads(shell(rules, f"ext replay <(cat {shlex.quote(str(log))}) --json").out)
    assert told["compared"] == 1
    output = shell(rules, "ext replay -", input="")
    assert output.code != 0
    assert "standard input" in output.err


def test_a_pipe_that_is_written_late(rules: Home, tmp_path: Path) -> None:
    """What comes in pieces is read to its end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("w") as file:
            for char in EVENT:
                file.write(char)
                file.flush()

    thread = threading.Thread(target=write)
    thread.start()
    output = shell(rules, f"ext test rules --event {shlex.quote(str(pipe))} --json")
    thread.join()
    assert output.code == 0, output
