"""A running process that has not taken a change is named by `list` and `info` of another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Home

from hermes_ext.loading.reloading.not_taken import NotTakenFile, with_old_rules

RULE = """
from hermes_ext import register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_name):
    return None
"""

# Does one turn for each line that it reads, and says that it is over.
AGENT = """
import sys
from pathlib import Path
from hermes_ext import Runtime

runtime = Runtime.from_config()
for line in sys.stdin:
    with runtime.turn(session_id="s"):
        if line.startswith("edit "):
            file = Path(line[5:].strip())
            file.write_text(file.read_text() + "# changed\\n")
    print("over", flush=True)
"""


class Agent:
    """A process with its own runtime; `turn` is one turn of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def turn(self, work: str = "go") -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{work}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "over\n"

    def end(self) -> None:
        """Let the process end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@contextmanager
def agent() -> Iterator[Agent]:
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            yield Agent(process)
        finally:
            process.kill()


def files(home: Home) -> dict[str, bytes]:
    return {
        str(path.relative_to(home.path)): path.read_bytes()
        for path in sorted(home.path.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def state(home: Home) -> list[Path]:
    return sorted((home.path / "cache" / "hermes-ext" / "not-taken").glob("*"))


def test_a_process_with_old_rules_is_named(home: Home) -> None:
    """As long as it runs and has not taken the change, and no longer; `--json` has it too."""
    file = home.add("rule", RULE) / "__init__.py"
    with agent() as first, agent() as second:
        for each in (first, second):
            each.turn()
        before = files(home)
        assert home.run("list", "--json").json["old_rules"] == []
        file.write_text("def (:\n")  # a person's edit, which does not load
        first.turn()
        out = " ".join(home.run("list").out.split())
        named = f"A running Hermes (pid {first.process.pid}, since "
        assert re.search(
            rf"{re.escape(named)}\d{{4}}-\d\d-\d\d \d\d:\d\d\) uses older rules: .*rule", out
        ), out
        (told,) = home.run("info", "rule", "--json").json["old_rules"]
        assert told["pid"] == first.process.pid
        assert str(file) in told["reason"]
        assert str(second.process.pid) not in out  # it has had no turn since
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in state(home))
        file.write_text(RULE)
        first.turn()
        assert home.run("list", "--json").json["old_rules"] == []
        assert state(home) == []
        assert files(home).keys() == before.keys()


@pytest.mark.parametrize("way", ["end", "kill"])
def test_a_process_that_is_over_is_not_named(home: Home, way: str) -> None:
    """What a killed process left behind is no running one, and the next look removes it."""
    file = home.add("rule", RULE) / "__init__.py"
    with agent() as one:
        one.turn(f"edit {file}")
        one.turn()
        assert len(with_old_rules(home.path)) == 1
        if way == "end":
            one.end()
            assert state(home) == []
        else:
            one.process.kill()
            one.process.wait()
            assert state(home) != []
    assert home.run("list", "--json").json["old_rules"] == []
    assert state(home) == []


def test_a_number_that_another_process_has_by_now(home: Home) -> None:
    """A left-over file whose process number is in use again names nobody."""
    mine = NotTakenFile(home.path)
    mine.report("reason")
    (told,) = with_old_rules(home.path)
    assert told.pid == os.getpid()
    (written,) = state(home)[-1:]
    left_over = written.with_name(f"{os.getpid()}-left-over.json")
    left_over.write_bytes(written.read_bytes())
    assert len(with_old_rules(home.path)) == 1
    assert not left_over.exists()
    mine.remove()
    assert with_old_rules(home.path) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"pid": "1", "since": "2026-01-01", "reason": ""}',
        b'{"pid": 1, "since": "yesterday", "reason": ""}',
        b'{"pid": 1, "since": 5, "reason": ""}',
        b'{"pid": 1}',
        b"[" * 60_000,
    ],
)
def test_what_is_no_such_file_is_passed_over(home: Home, content: bytes) -> None:
    """Damaged files, pipes and folders in the place stop no command."""
    folder = home.path / "cache" / "hermes-ext" / "not-taken"
    folder.mkdir(parents=True)
    (folder / "1-x.json").write_bytes(content)
    (folder / "2-x.json").mkdir()
    os.mkfifo(folder / "3-x.json")
    (folder / "4-x.json").symlink_to("/dev/zero")
    assert home.run("list", "--json").json["old_rules"] == []


def test_a_disk_that_takes_nothing_costs_only_the_line(home: Home) -> None:
    """Where the file cannot be written, nothing is raised."""
    (home.path / "cache").write_text("a file")
    one = NotTakenFile(home.path)
    one.report("reason")
    one.remove()
    assert with_old_rules(home.path) == ()


def test_control_characters_are_written_out(home: Home) -> None:
    """What the file says cannot draw on the terminal."""
    one = NotTakenFile(home.path)
    one.report("a\x1b[2Jb")
    (told,) = json.loads(home.run("list", "--json").out)["old_rules"]
    assert told["reason"] == r"a\x1b[2Jb"
    one.remove()
