"""`replay`: recorded events through today's extensions, and exactly the verdicts that changed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Home

from hermes_ext import Runtime
from hermes_ext.turns.decisions.log import DecisionLog

EVENTS = 1000
LIMITS = """
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True, tools=["write_file"])
def too_long(tool_args, config):
    if len(tool_args["content"]) > config["longest"]:
        return HookResult.block("too long", metadata={"setting": "limits.longest"})

@register_hook("intercept_tool_call", guard=True, tools=["jot"])
def too_often(state, config):
    if state.count("jots") > config["most"]:
        return HookResult.ask(f"more than {config['most']}?")

@register_hook("transform_user_input")
def tidy(user_message):
    return HookResult.rewrite(user_message.strip())
"""
MANIFEST = """config:
  properties: {longest: {type: integer, default: 100}, most: {type: integer, default: 2}}
"""
CONFIG = "extensions:\n  log: payloads\n  limits: {{longest: {longest}, most: {most}}}\n"


class Played:
    """A home with `limits` in it, and turns of its own runtime."""

    def __init__(self, home: Home, tmp_path: Path) -> None:
        self.home, self.tmp_path = home, tmp_path
        self.code = home.add("limits", LIMITS, MANIFEST) / "__init__.py"
        self.set()

    def set(self, longest: int = 100, most: int = 2) -> None:
        self.home.write_config(CONFIG.format(longest=longest, most=most))

    def turn(self, does: Callable[[Any], object], **options: Any) -> None:
        runtime = Runtime.from_config(home=self.home.path, cwd=self.tmp_path)
        with runtime.turn(**{"session_id": "s1", **options}) as turn:
            does(turn)
        runtime.close()

    def replay(self, *argv: str) -> dict[str, Any]:
        told: dict[str, Any] = self.home.run("replay", *argv, "--json").json
        return told


def write(length: int) -> Callable[[Any], object]:
    return lambda turn: turn.intercept_tool_call(
        "write_file", {"path": "a", "content": "x" * length}
    )


@pytest.fixture
def played(home: Home, tmp_path: Path) -> Played:
    return Played(home, tmp_path)


LENGTH = {True: ("block", "too long"), False: ("pass", None)}


def asked(jots: int, most: int) -> tuple[str, str | None]:
    return ("ask", f"more than {most}?") if jots > most else ("pass", None)


def verdict(told: dict[str, Any]) -> tuple[str, str | None]:
    return told["action"], told["message"]


def test_a_thousand_events_and_one_edited_setting(played: Played, home: Home) -> None:
    """The changes are those that a plain computation finds: of values, and of counts in turns."""
    random.seed(7)
    expected = []
    runtime = Runtime.from_config(home=home.path, cwd=played.tmp_path)
    made = 0
    while made < EVENTS:
        turn_id, jots = f"t{made}", 0
        with runtime.turn(session_id=f"s{made % 7}", turn_id=turn_id, turn_number=1) as turn:
            for number in range(random.randint(1, 9)):
                kind, length = random.choice(("write", "jot", "say")), random.randint(0, 200)
                if kind == "write":
                    write(length)(turn)
                    then, now = LENGTH[length > 100], LENGTH[length > 150]
                elif kind == "jot":
                    turn.intercept_tool_call("jot", {"n": number})
                    jots += 1
                    then, now = asked(jots, 2), asked(jots, 4)
                else:
                    turn.transform_user_input(f" {length} ")
                    then = now = ("rewrite", None)
                made += 1
                if then != now:
                    expected.append((turn_id, *then, *now))
    runtime.close()
    assert len(expected) > 50
    edited = played.tmp_path / "edited.yaml"
    edited.write_text(CONFIG.format(longest=150, most=4))

    began = time.monotonic()
    told = played.replay("--config", str(edited))

    changed = [
        (each["turn"], *verdict(each["then"]), *verdict(each["now"])) for each in told["changed"]
    ]
    assert changed == expected
    assert (told["compared"], told["unchanged"]) == (made, made - len(expected))
    assert told["not_replayable"] == []
    assert time.monotonic() - began < 60  # it is 2 s on a machine that does nothing else


def test_then_and_now(played: Played, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side, with who, why, by which setting, and the difference of values; exit code 1."""
    monkeypatch.delenv("COLUMNS")
    played.turn(write(110), turn_id="0123456789")
    played.turn(lambda turn: turn.transform_user_input(" password=hunter2hunter2 \nb"))
    assert home.run("replay").code == 0
    assert "2 replayed, 2 unchanged, 0 changed" in home.run("replay").out
    played.set(longest=120)
    played.code.write_text(LIMITS.replace(".strip()", '.replace("b", "c")'))

    output = home.run("replay")

    assert output.code == 1
    assert "then  block by limits: too long [limits.longest]" in output.out
    assert "now   pass" in output.out
    assert "intercept_tool_call  write_file  turn 01234567" in output.out
    assert "        -b\n" in output.out
    assert "        +c\n" in output.out
    assert "2 replayed, 0 unchanged, 2 changed" in output.out
    assert "hunter2" not in output.out + json.dumps(played.replay())


def test_filters_choose_what_is_compared(played: Played, home: Home) -> None:
    """Session, turn, hook, extension, time, and the newest so many."""
    for number in range(4):
        played.turn(write(110), session_id=f"s{number % 2}", turn_id=f"t{number}")
    played.turn(lambda turn: turn.transform_user_input("hello"), turn_id="t9")
    played.set(longest=120)
    filters = {
        ("--session", "s1"): ["t1", "t3"],
        ("--turn", "t2"): ["t2"],
        ("--hook", "intercept_tool_call", "--limit", "3"): ["t1", "t2", "t3"],
        ("--hook", "transform_user_input"): [],
        ("--extension", "limits", "--since", "1h"): ["t0", "t1", "t2", "t3"],
    }
    for argv, turns in filters.items():
        assert [each["turn"] for each in played.replay(*argv)["changed"]] == turns, argv
    assert "0 lines are none" in home.run("replay", "--limit", "0").err
    assert "no lines with turn nothing" in played.replay("--turn", "nothing")["error"]
    assert 'Did you mean "limits"' in played.replay("--extension", "limitz")["error"]


def test_a_log_elsewhere_with_its_rotated_files(played: Played, home: Home, tmp_path: Path) -> None:
    """They are read in their order, so that counts are as they were."""
    log = DecisionLog(tmp_path / "old" / "log.jsonl", "payloads", max_bytes=4000, files=9)
    runtime = Runtime.from_config(home=home.path, cwd=tmp_path)
    runtime.services.log = log
    with runtime.turn(session_id="s1", turn_number=1) as turn:
        for number in range(12):
            turn.intercept_tool_call("jot", {"n": number})
    runtime.close()
    assert log.path.with_name("log.jsonl.2").exists()
    played.set(most=5)

    told = played.replay(str(log.path))

    assert [each["input"]["n"] for each in told["changed"]] == [2, 3, 4, *range(5, 12)]
    assert {each["now"]["message"] for each in told["changed"]} == {"more than 5?", None}
    assert [each["now"]["action"] for each in told["changed"]] == ["pass"] * 3 + ["ask"] * 7


def test_a_log_that_cannot_be_replayed(played: Played, home: Home) -> None:
    """None, or without payloads: it says how to have them; a mix says how many are left out."""
    assert "there is no decision log" in played.replay()["error"]
    home.write_config("extensions: {log: decisions}\n")
    played.turn(write(110))
    output = home.run("replay")
    assert (output.code, output.out) == (1, "")
    assert "none of 1 lines can be replayed: written without payloads" in output.err
    assert "`log: payloads`" in output.err
    played.set()
    played.turn(write(10))

    mixed = home.run("replay")

    assert mixed.code == 0
    assert "1 cannot be replayed: written without payloads" in mixed.out
    assert "`log: payloads`" in mixed.out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_copy_in_another_encoding(
    played: Played, home: Home, tmp_path: Path, encoding: str
) -> None:
    """A shell may write one: it is told, and never taken for a log in which nothing changed."""
    played.turn(write(110))
    played.turn(write(10))
    copy = tmp_path / "copy.jsonl"
    text = (home.path / "logs" / "extensions.jsonl").read_text(encoding="utf-8")
    copy.write_bytes(text.encode(encoding))
    played.set(most=100)
    if encoding == "utf-16":
        assert "is UTF-16, expected UTF-8" in played.replay(str(copy))["error"]
    else:
        assert played.replay(str(copy))["lines"] == played.replay()["lines"] > 1


def test_an_extension_that_does_not_load(played: Played, home: Home) -> None:
    """It is told, as is what its absence changes."""
    played.turn(write(110), turn_id="t1")
    played.code.write_text("1 / 0\n")
    broken = home.run("replay")
    assert broken.code == 1
    assert "Not loaded, so without a say here: limits" in broken.out
    assert "then  block by limits" in broken.out
