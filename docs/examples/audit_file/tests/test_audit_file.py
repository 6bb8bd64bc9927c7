"""What is in the file, and that it never stands in the way."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from hermes_ext.testing import LoadedExtension, LoadExtension, assert_blocked, assert_passed

EXTENSION = Path(__file__).parents[1]
READ = ("read_file", {"path": "a.py"})


def lines(extension: LoadedExtension) -> list[dict[str, Any]]:
    text = (extension.home / "logs" / "audit.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_calls_and_results(load_extension: LoadExtension) -> None:
    """One line each, which only the user can read."""
    extension = load_extension(EXTENSION, config={"longest": 10})
    with extension.turn("one") as turn:
        args = {"path": "ä.py", "content": ["x" * 100, 1, None]}
        assert_passed(turn.call("write_file", args, tool_call_id="c1"))
        outcome = turn.result("write_file", args, "ok\n", tool_call_id="c1", status="ok")
        assert_passed(outcome)
    asked, runs, result = lines(extension)
    assert asked["args"] == {"path": "ä.py", "content": ["xxxxxxxxxx… (100 characters)", 1, None]}
    assert [each["what"] for each in (asked, runs, result)] == ["asked", "runs", "result"]
    assert {(each["session"], each["call"], each["tool"]) for each in lines(extension)} == {
        ("one", "c1", "write_file")
    }
    assert result["result"] == "ok\n"
    assert result["status"] == "ok"
    file = extension.home / "logs" / "audit.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_parallel_calls_of_several_sessions(load_extension: LoadExtension) -> None:
    """No line is lost or broken."""
    extension = load_extension(EXTENSION)
    with extension.turn("one") as one, extension.turn("two") as two:
        one.parallel([READ] * 20)
        two.parallel([READ] * 20)
    found = lines(extension)
    assert len(found) == 80
    assert len({(each["session"], each["call"], each["what"]) for each in found}) == 80


def test_what_is_refused_is_asked_and_does_not_run(load_extension: LoadExtension) -> None:
    """The agent's hands are kept off the file itself."""
    extension = load_extension(EXTENSION)
    logs = extension.home / "logs"
    for command in ("rm {}/audit.jsonl", "mv {} {}.old", "cd {} && ./x audit.jsonl"):
        outcome = extension.call("terminal", {"command": command.replace("{}", str(logs))})
        assert_blocked(outcome, by="audit_file")
    assert [each["what"] for each in lines(extension)] == ["asked"] * 3
    assert_passed(extension.call("terminal", {"command": f"cat {logs}/audit.jsonl"}))


def test_a_file_that_cannot_be_written_stops_nobody(load_extension: LoadExtension) -> None:
    """The failure is logged, the call runs."""
    extension = load_extension(EXTENSION)
    (extension.home / "logs" / "audit.jsonl").mkdir(parents=True)
    with extension.expect_failure("audit"):
        outcome = extension.call(*READ)
    assert not outcome.blocked
    assert outcome.errors
