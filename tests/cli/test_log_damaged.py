"""`log` and `why` of a log that somebody else has written to, or put something in the place of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import GOOD, Home

from hermes_ext.cli import slash

LINE = {
    "time": "2026-01-01T00:00:00Z",
    "session": "s",
    "conversation": "s",
    "turn": "t",
    "hook": "intercept_tool_call",
    "tool": "terminal",
    "action": "block",
    "blocked_by": "rules",
    "extension": "rules",
    "handler": "check",
    "message": "no",
    "asks": [],
    "by": [],
}
KEYS = (*LINE, "cwd", "file", "line", "steps", "setting", "error", "failure", "decided_by")
VALUES = (
    None,
    [],
    {},
    [1],
    {"a": 1},
    [{"extension": [5], "action": {}, "file": [], "error": "x", "observed": True}],
    -1,
    10**400,
    True,
    "\x1b[31mred\x07\u202e\n{0.__class__} {nothing} {",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00",
)


@pytest.fixture
def file(home: Home) -> Path:
    file = home.path / "logs" / "extensions.jsonl"
    file.parent.mkdir(exist_ok=True)
    return file


def test_lines_of_any_kind(home: Home, file: Path) -> None:
    """Whatever stands in a line, it is told, as text, and no character of it acts."""
    written = [{**LINE, key: value} for key in KEYS for value in VALUES] + [{}]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in written))

    shown = home.run("log", "--last", "10000", "--json")
    assert shown.code == 0
    assert len(json.loads(shown.out)["lines"]) == sum(
        isinstance(one.get("time"), str) for one in written
    )
    asked: list[tuple[str, ...]] = [
        ("log", "--last", "10000"),
        ("log", "--extension", "rules", "--action", "error"),
        ("log", "--since", "1d"),
        ("why", "t"),
        ("why", "last"),
    ]
    for argv in asked:
        told = home.run(*argv)
        assert told.code in (0, 1)
        assert not set(told.out + told.err) & set("\x1b\x07\u202e"), argv
    assert json.loads(home.run("why", "t", "--json").out)["decisions"]


@pytest.mark.parametrize("number", ["", ".1"])
def test_a_pipe_in_its_place_is_not_waited_for(home: Home, file: Path, number: str) -> None:
    """Nor one in the place of a rotated file."""
    os.mkfifo(f"{file}{number}")
    told = home.run("log")
    assert "there is no decision log yet" in told.out + told.err


def test_what_cannot_be_read_is_told(home: Home, file: Path) -> None:
    """With the file; in a chat too."""
    file.symlink_to(file)
    told = home.run("why", "--json")
    assert told.code == 1
    assert "the decision log cannot be read" in told.json["error"]
    assert "cannot be read" in slash("log", home=home.path, session="s")
    home.add("rules", GOOD)
    for command in (["replay"], ["test", "rules", "--last"]):  # not blamed on an extension
        told = home.run(*command, "--json")
        assert told.code == 1
        assert told.json["error"].startswith("the decision log cannot be read")


def test_a_file_in_the_place_of_its_folder(home: Home, file: Path) -> None:
    """There is no log then."""
    file.parent.rmdir()
    file.parent.write_text("x")
    told = home.run("log")
    assert "there is no decision log yet" in told.out + told.err
