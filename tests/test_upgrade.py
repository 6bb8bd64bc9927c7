"""A home that an earlier version wrote is read and used by this one.

`upgrade/home.tar.gz` was written by the commit c6a2cd9 and the real Hermes, with
`upgrade/make_home.py`: two turns of a conversation in a trusted project, a start beside a plugin
that took a function, and a process that was killed while it kept its old rules.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.harness.home import HermesHome

from hermes_ext.__about__ import __version__
from hermes_ext.cli import main
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.hosts.hermes.home.sentinel import SentinelState, sentinel_state
from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

ARCHIVE = Path(__file__).parent / "upgrade" / "home.tar.gz"
CODE = "/opt/older"  # where the earlier version was

Command = Callable[..., Any]


def unpack(base: Path, model: str = "http://127.0.0.1:9") -> None:
    """Put the home and the project below a folder, with the paths of this machine in them."""
    words = {"@BASE@": str(base), "@CODE@": CODE, "@MODEL@": model, "@HERMES@": str(host_package())}
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(base, filter="data")
        times = {base / each.name: each.mtime for each in packed.getmembers()}
    for path, time in times.items():
        data = path.read_bytes()
        if data.startswith(b"SQLite format 3\0"):
            replace_in_database(path, words)
        else:
            for word, machine in words.items():
                data = data.replace(word.encode(), machine.encode())
            path.write_bytes(data)
        os.utime(path, (time, time))


def replace_in_database(path: Path, words: dict[str, str]) -> None:
    with closing(sqlite3.connect(path)) as database:
        for word, machine in words.items():
            if path.name == "state.db":
                database.execute("UPDATE sessions SET cwd = REPLACE(cwd, ?, ?)", (word, machine))
        database.commit()


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the unpacked `home` and `project`, with the project as working directory."""
    unpack(tmp_path)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@pytest.fixture
def command(base: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command of today in the old home; returns its JSON output, or its text."""

    def run(*arguments: str, code: int = 0) -> Any:
        assert main([*arguments]) == code
        output = capsys.readouterr().out
        return json.loads(output) if "--json" in arguments else output

    return run


def test_what_is_on_and_what_the_last_load_recorded(command: Command) -> None:
    """`list` runs no code: the hooks that it shows are those that the earlier version noted."""
    rows = {each["name"]: each for each in command("list", "--json")["extensions"]}

    assert {name: rows[name]["status"] for name in ("house-rules", "plan-tools", "noisy")} == {
        "house-rules": "enabled",
        "plan-tools": "enabled",  # so the project is trusted
        "noisy": "disabled",
    }
    assert [each["hook"] for each in rows["house-rules"]["hooks"]] == [
        "transform_user_input",
        "intercept_tool_call",
        "transform_tool_result",
    ]
    assert rows["loop-breaker"]["status"] == "enabled"


def test_notes_of_earlier_processes(base: Path, command: Command) -> None:
    """Lost hooks are named; a note of a process that was killed is nobody's, and removed."""
    notes = base / "home/cache/hermes-ext/not-taken"
    assert len([*notes.glob("*.json")]) == 1

    listed = command("list", "--json")

    assert "run_tool_execution_middleware was taken by the plugin z_taker" in listed["not_in_force"]
    assert listed["old_rules"] == []
    assert [*notes.glob("*.json")] == []


def test_known_manifests(base: Path, command: Command) -> None:
    """A manifest that an earlier process of this release has read is not read again."""
    file = base / "home/cache/hermes-ext/manifests.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("What holds in this house.", "As it was noted."), encoding="utf-8")
    is_of_this_release = f"hermes-ext {__version__}" in text

    shown = command("info", "house-rules", "--json")["extension"]["description"]

    assert shown == ("As it was noted." if is_of_this_release else "What holds in this house.")


def test_settings(command: Command) -> None:
    """Each value is that of the user, or of the trusted project."""
    settings = command("info", "house-rules", "--json")["settings"]

    assert {each["key"]: (each["value"], each["from"].split(":")[0]) for each in settings} == {
        "forbidden": ("evil", "config.yaml"),
        "greeting": ("Project says:", ".hermes/extensions.yaml"),
    }


def test_a_change_keeps_comments(base: Path, command: Command) -> None:
    config = base / "home/config.yaml"
    before = config.read_text(encoding="utf-8").splitlines()

    command("enable", "noisy")

    after = config.read_text(encoding="utf-8").splitlines()
    assert [line for line in before if line not in after] == ["  disabled: [noisy]"]


def test_a_changed_project_is_compared_with_what_was_trusted(base: Path, command: Command) -> None:
    """With the copy that the earlier version kept, line by line."""
    assert command("trust", "--diff")
    (base / "project/.hermes/extensions.yaml").write_text(
        'house-rules:\n  greeting: "Now:"\n', encoding="utf-8"
    )

    shown = command("trust", "--diff", code=1)

    assert re.search(r'-\s*greeting: "Project says:"', shown), shown
    assert re.search(r'\+\s*greeting: "Now:"', shown), shown
    rows = {each["name"]: each for each in command("list", "--json")["extensions"]}
    assert rows["plan-tools"]["status"] == "untrusted"


def test_the_decision_log(base: Path, command: Command) -> None:
    """`log` shows every old line, `why` the last refusal, `replay` decides all as before."""
    lines = (base / "home/logs/extensions.jsonl").read_text(encoding="utf-8").splitlines()

    logged = command("log", "-n", "100", "--json")["lines"]

    assert [each["digests"] for each in logged] == [json.loads(each)["digests"] for each in lines]
    assert "no evil in files" in command("why", "--action", "block")
    replayed = command("replay", "--json")
    assert (replayed["changed"], replayed["compared"] > 0) == ([], True)


def test_the_sentinel(base: Path, command: Command) -> None:
    """It is known as ours: `install` leaves or renews it, `uninstall` removes it."""
    home = base / "home"
    assert sentinel_state(home) in {SentinelState.CURRENT, SentinelState.OLD}

    command("install")
    assert sentinel_state(home) is SentinelState.CURRENT
    command("uninstall")
    assert sentinel_state(home) is SentinelState.ABSENT


@pytest.mark.hermes
def test_the_conversation_goes_on(
    model_factory: Callable[..., ScriptedModel], hermes: Callable[..., HermesHome]
) -> None:
    """In the real Hermes: rules and trust in force, numbers and session state where they were."""

    def answer(request: ModelRequest) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("Done.")
        write = ToolUse("write_file", {"path": "b.txt", "content": "evil"}, "call_of_today")
        return Reply(tool_calls=[write])

    model = model_factory(answer)
    home = hermes(model)
    unpack(home.base, model.root_url)

    run = home.chat("third", "--continue").check()

    request = model.main_requests[0]
    assert "Project says: third (turn 3, counted 3)" in request.last_user
    assert "Follow the plan." in request.system
    assert "no evil in files" in str(model.main_requests[-1].messages[-1])
    assert not (home.project / "b.txt").exists()
    assert not (home.home / "cache/hermes-ext/lost-hooks.json").exists()
    assert "sentinel" not in run.stdout + run.stderr
    with closing(sqlite3.connect(home.home / "extensions-state.db")) as database:
        rows = database.execute("SELECT json FROM value WHERE key = 'words'").fetchall()
    assert '["first", "second", "third"]' in {row[0] for row in rows}
