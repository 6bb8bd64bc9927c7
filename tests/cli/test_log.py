"""`log`: the newest lines of the decision log, and each new one, by filters and without secrets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import GOOD, Home, schema_of

from hermes_ext import Runtime
from hermes_ext.cli import slash
from hermes_ext.turns.decisions.line import DecisionEvent
from hermes_ext.turns.decisions.log import DecisionLog
from hermes_ext.turns.decisions.reading import follow_decisions

RULES = """
from hermes_ext import HookResult, register_hook

@register_hook("transform_user_input")
def shout(user_message):
    if user_message.islower():
        return HookResult.rewrite(user_message.upper(), metadata={"setting": "rules.volume"})

@register_hook("intercept_tool_call", guard=True, tools=["terminal"])
def careful(tool_args):
    command = tool_args["command"]
    if command.startswith("rm"):
        return HookResult.block(f"not {command}", metadata={"setting": "extensions.rules.words"})
    if command.startswith("push"):
        return HookResult.ask("push?", metadata={"setting": ["rules.words", "rules.volume"]})
    if command.startswith("crash"):
        raise ValueError("no such thing")
"""
SECRET = "hunter2" + "hunter2"


MANIFEST = "config: {properties: {volume: {default: 3}, words: {default: [rm, push]}}}\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hermes home with the decision log of two sessions."""
    path = tmp_path_factory.mktemp("recorded")
    played(path)
    return path


@pytest.fixture
def log(home: Home, recorded: Path) -> Path:
    """A decision log that real turns of a real runtime wrote."""
    shutil.copytree(recorded, home.path, dirs_exist_ok=True)
    return home.path / "logs" / "extensions.jsonl"


def played(home: Path, level: str = "decisions", name: str = "rules") -> None:
    for each, code in ((name, RULES), ("quiet", GOOD)):
        folder = home / "extensions" / each
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(code)
    (home / "extensions" / name / "extension.yaml").write_text(MANIFEST)
    config = f"extensions:\n  log: {level}\n  {name}:\n    words: [rm]\n"
    (home / "config.yaml").write_text(config)
    runtime = Runtime.from_config(home=home)
    for session in ("alpha-1", "beta-2"):
        with runtime.turn(session_id=session, turn_id=f"turn-of-{session}") as turn:
            turn.transform_user_input("hello")
            turn.intercept_tool_call("read_file", {"path": "a"})
            for command in ("ls", f"rm --password={SECRET}", "push", "crash"):
                turn.intercept_tool_call("terminal", {"command": command})
    runtime.close()


def lines(home: Home, *argv: str) -> list[dict[str, Any]]:
    output = home.run("log", *argv, "--json")
    assert output.code == 0, output
    found: list[dict[str, Any]] = output.json["lines"]
    return found


def test_the_newest_lines(home: Home, log: Path) -> None:
    """One line for each chain, oldest first; `--last` says how many of the newest."""
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(written) == 12
    assert [line["time"] for line in lines(home)] == [line["time"] for line in written]
    assert [line["turn"] for line in lines(home, "-n", "2")] == ["turn-of-beta-2"] * 2
    assert lines(home, "--last", "0") == []

    shown = home.run("log", "--last", "3").out.splitlines()
    assert len(shown) == 3
    assert all(word in shown[0] for word in ("block", "terminal", "rules: not rm"))
    assert "rules: push? This needs a person's approval" in shown[1]
    assert "rules: careful failed (ValueError), so this call is refused" in shown[2]
    assert lines(home, "-n", "1")[0]["failure"] == "exception"


def test_a_failure_that_stopped_nothing(home: Home) -> None:
    """Its row says that it failed, not only who."""
    home.add(
        "rules",
        "from hermes_ext import register_hook\n"
        "@register_hook('transform_user_input')\ndef fails():\n    raise ValueError\n",
    )
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1") as turn:
        turn.transform_user_input("hello")
    runtime.close()

    (row,) = home.run("log").out.splitlines()
    assert row.split()[3] == "pass"
    assert row.endswith("rules: failed (exception)")


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (("--session", "alpha"), 6),
        (("--turn", "turn-of-b"), 6),
        (("--hook", "transform-user-input"), 2),
        (("--extension", "Rules"), 8),
        (("--extension", "quiet"), 0),
        (("--action", "block"), 6),
        (("--action", "ask"), 2),
        (("--action", "error"), 2),
        (("--action", "rewrite", "--session", "beta-2"), 1),
        (("--since", "1h"), 12),
        (("--since", "2000-01-01"), 12),
        (("--since", "2999-01-01T12:00"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_filters(home: Home, log: Path, argv: tuple[str, ...], found: int) -> None:
    """Each filter leaves what it says, also together with others; nothing found is exit code 1."""
    output = home.run("log", *argv, "--json")

    assert len(output.json["lines"]) == found
    assert output.code == (0 if found else 1)
    if not found:
        assert "no lines with" in output.json["note"]
        assert output.json["note"] in home.run("log", *argv).out


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("--extension", "ruels"), 1, 'Did you mean "rules"?'),
        (("--extension", "zzz"), 1, "Extensions: budget, "),
        (("--extension", "quiet"), 1, "It is there, and has decided nothing yet"),
        (("--session", "alpha-2"), 1, 'Did you mean "alpha-1"?'),
        (("--turn", "x"), 1, "Its last turn is turn-of-beta-2"),
        (("--hook", "intercept_tool"), 2, 'Did you mean "intercept_tool_call"?'),
        (("--action", "blok"), 2, 'Did you mean "block"?'),
        (("--action", "zzz"), 2, "Actions: pass, "),
        (("--since", "yesterday"), 2, "Write 30m, 2h, 3d"),
        (("--last", "-1"), 2, "is not a number of lines"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_name_that_is_wrong(
    home: Home, log: Path, argv: tuple[str, ...], code: int, told: str
) -> None:
    """What was probably meant is told; what cannot be right at all is wrong usage."""
    output = home.run("log", *argv)

    assert output.code == code
    assert told in output.out + output.err


def test_each_extension_is_named_once(home: Home) -> None:
    """As its folder is called, however the log has it."""
    played(home.path, name="my_rules")

    told = home.run("log", "--extension", "zzz").out

    assert "my_rules" in told
    assert "my-rules" not in told


def test_a_log_that_is_not_there_or_off(home: Home) -> None:
    """It says why there is none, and how to turn it on; old lines are shown all the same."""
    output = home.run("log")
    assert output.code == 1
    assert "there is no decision log yet" in output.err
    assert str(home.path / "logs" / "extensions.jsonl") in output.err

    file = home.write_config("extensions:\n  log: off\n")
    told = f'extensions.log is off in {file}:2. Set it to "decisions"'
    assert told in home.run("log").err
    assert told in home.run("log", "--json").json["error"]

    played(home.path)
    home.write_config("extensions:\n  log: off\n")
    output = home.run("log", "-n", "1")
    assert output.code == 0
    assert told in output.out
    assert "careful failed" in output.out


def test_lines_that_say_that_others_are_missing(home: Home, log: Path) -> None:
    """Dropped, broken and torn lines cost nothing but themselves."""
    log.write_text(
        '{"time":"2026-01-01T00:00:00.000Z","dropped":7}\n'
        '{"time":"2026-01-01T00:00:01.000Z","hook":"x","error":"the line could not be built"}\n'
        '{"time":"2026-01-01T00:00:02.000Z","hook":"x","act\n'
    )
    output = home.run("log")

    assert "7 decisions could not be written" in output.out
    assert "the line could not be built" in output.out
    assert len(lines(home)) == 2


@pytest.mark.parametrize("level", ["decisions", "steps", "payloads"])
def test_no_secret_is_shown(home: Home, level: str) -> None:
    """Whatever the level, what is shown has none; below `payloads` none is written either."""
    played(home.path, level)
    file = (home.path / "logs" / "extensions.jsonl").read_text()

    assert (SECRET in file) is (level == "payloads")
    for argv in (("log",), ("log", "--json"), ("why", "turn-of-a"), ("why", "--action", "block")):
        output = home.run(*argv)
        assert output.code == 0
        assert SECRET not in output.out
    shown = [line for line in lines(home, "--action", "block") if "--password" in str(line)]
    assert len(shown) == 2
    assert "rm --password=[redacted]" in shown[0]["message"]


# -- following ------------------------------------------------------------------------------------


class Followed:
    """`log --follow` as a process of its own."""

    def __init__(self, home: Home, *argv: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hermes_ext.cli", "log", "--follow", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        # A line that never comes must not be waited for for ever.
        self.limit = threading.Timer(120, self.process.kill)
        self.limit.daemon = True
        self.limit.start()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def interrupted(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@pytest.fixture
def following() -> Iterator[list[Followed]]:
    """Processes that are ended whatever happens."""
    started: list[Followed] = []
    yield started
    for each in started:
        each.limit.cancel()
        each.process.kill()
        each.process.communicate()


def test_following(home: Home, log: Path, following: list[Followed]) -> None:
    """It begins with the newest, goes on with what is written, also in the files that come after,
    and ends by Ctrl-C with 130 and no traceback.
    """
    followed = Followed(home, "-n", "2", "--action", "block", "--json")
    following.append(followed)
    first = [json.loads(followed.line()) for _ in range(2)]
    assert [line["message"][:5] for line in first] == ["push?", "caref"]

    writer = DecisionLog(log, max_bytes=2_000)
    for number in range(40):
        outcome = {"action": "block", "blocked_by": "rules", "message": f"{number}"}
        writer.write(DecisionEvent("intercept_tool_call", {}, outcome))
        if number % 10 == 9:  # as slowly as a person sees it
            assert writer.flush(30)
            got = [json.loads(followed.line()) for _ in range(10)]
            assert [int(line["message"]) for line in got] == [*range(number - 9, number + 1)]
            schema_of("decision").validate(got[0])
    assert log.with_name(f"{log.name}.1").exists()

    assert followed.interrupted() == (130, "\n")


def test_following_a_log_that_is_yet_to_come(home: Home, following: list[Followed]) -> None:
    """It waits for the first line, and a reader that goes away ends it."""
    followed = Followed(home)
    following.append(followed)
    played(home.path)
    assert "rewrite" in followed.line()
    assert any("rules: not rm" in followed.line() for _ in range(11))
    assert followed.process.stdout is not None
    followed.process.stdout.close()
    writer = DecisionLog(home.path / "logs" / "extensions.jsonl")
    deadline = time.monotonic() + 60
    while followed.process.poll() is None and time.monotonic() < deadline:
        writer.write(DecisionEvent("intercept_tool_call", {}, {"action": "pass"}))
        writer.flush(30)
        try:
            followed.process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    assert followed.process.returncode == 0
    assert followed.process.stderr is not None
    assert followed.process.stderr.read() == ""


def test_nothing_is_missed_however_often_it_is_rotated(tmp_path: Path) -> None:
    """Between two looks, files were begun and ended; each line comes once, in its order."""
    path = tmp_path / "log"
    writer = DecisionLog(path, max_bytes=700, files=9)
    written = 0

    def more() -> None:
        nonlocal written
        for _ in range(7):  # some three files
            written += 1
            writer.write(DecisionEvent("h", {}, {"action": "pass"}, turn=f"{written}"))
        assert writer.flush(30)

    found = follow_decisions(path, wait=more)
    assert [int(next(found)["turn"]) for _ in range(70)] == [*range(1, 71)]
    found.close()


def test_a_file_that_is_emptied_is_read_from_its_begin(tmp_path: Path) -> None:
    """`> log` in a shell does not end the following."""
    path = tmp_path / "log"
    path.write_text('{"n":1}\n{"n":2}\n')
    steps = iter(["", '{"n":3}\n', "", '{"n":4}\n{"n":5}\n{"n'])

    def wait() -> None:
        path.write_text(next(steps))

    found = follow_decisions(path, wait=wait)
    assert [next(found)["n"] for _ in range(5)] == [1, 2, 3, 4, 5]
    found.close()


# -- in a chat ------------------------------------------------------------------------------------


def test_a_chat_sees_its_own_session_alone(home: Home, log: Path) -> None:
    """Its lines and those of its subagents, as plain text; of nobody else, whatever is asked."""
    runtime = Runtime.from_config(home=home.path)
    for session, conversation in (("child", "alpha-1"), ("stranger", "beta-2")):
        where = {"session_id": session, "conversation_id": conversation}
        with runtime.turn(**where, turn_id=f"turn-of-{session}", is_subagent=True) as turn:
            turn.intercept_tool_call("terminal", {"command": f"rm {session}"})
    runtime.close()

    told = slash("log", home=home.path, session="alpha-1")
    assert told.count("turn-of-") == 7
    assert "not rm child" in told
    assert "stranger" not in told
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 80
    assert slash("log 1", home=home.path, session="alpha-1").count("turn-of-") == 1
    assert "not rm child" in slash("why", home=home.path, session="alpha-1")
    assert "session alpha-1" in slash("why turn-of-alpha", home=home.path, session="alpha-1")

    other = slash("why turn-of-beta", home=home.path, session="alpha-1")
    assert "no lines with turn turn-of-beta" in other
    assert "beta-2" not in other
    for session in (None, ""):
        assert "not known here" in slash("log", home=home.path, session=session)
        assert "not known here" in slash("why", home=home.path, session=session)
    assert slash("log x", home=home.path, session="alpha-1") == "Usage: /extensions log [N]"
    assert slash("log --follow", home=home.path, session="alpha-1").startswith("Usage")
    assert slash("why a b", home=home.path, session="alpha-1").startswith("Usage")
