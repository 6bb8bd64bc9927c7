"""The decision log: digests, lines, the writer, rotation, reading, and bad days of the disk."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext.turns.decisions import log as log_module
from hermes_ext.turns.decisions.canonical import canonical_digest, canonical_json
from hermes_ext.turns.decisions.level import LogLevel
from hermes_ext.turns.decisions.line import DecisionEvent, build_line
from hermes_ext.turns.decisions.log import DecisionLog
from hermes_ext.turns.decisions.reading import read_decisions

# Other work on the machine must not fail a property.
at_ease = settings(deadline=None, max_examples=60)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
needs_dev_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this platform has no /dev/full"
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def event_of(number: int = 0, **changes: Any) -> DecisionEvent:
    return DecisionEvent(
        **{
            "hook": "intercept_tool_call",
            "before": {"path": f"{number}.py"},
            "outcome": {"action": "pass", "changed": False, "duration_ns": 0},
            "turn": f"turn-{number}",
            "session": "s1",
            "conversation": "c1",
            "tool": "write_file",
            "tool_call_id": f"call-{number}",
            **changes,
        }
    )


BLOCKED = {
    "action": "block",
    "changed": False,
    "blocked_by": "workflow-guard",
    "message": "no plan yet",
    "decider": 1,
    "duration_ns": 1234,
    "metadata": {"setting": "blocked_tools", "secret": "hunter2"},
    "steps": [
        {"extension": "a", "handler": "look", "action": "pass", "value": "hunter2"},
        {
            "extension": "workflow-guard",
            "handler": "gate",
            "guard": True,
            "action": "block",
            "reason": "no plan yet",
            "setting": ["blocked_tools"],
            "file": "/guard.py",
            "line": 7,
            "error": {"kind": "timeout", "message": "late", "locals": "hunter2"},
        },
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "extensions.jsonl"


def logged(log: DecisionLog, *events: DecisionEvent) -> list[dict[str, Any]]:
    for event in events:
        log.write(event)
    assert log.flush(30)
    return list(read_decisions(log.path))


def python(code: str, *args: object, **options: Any) -> subprocess.Popen[str]:
    prelude = (
        "import os, sys, threading\n"
        "from hermes_ext.turns.decisions.line import DecisionEvent\n"
        "from hermes_ext.turns.decisions.log import DecisionLog\n"
        "def event(number):\n"
        "    turn = f'{os.getpid()}-{number}'\n"
        "    return DecisionEvent('h', number, {'action': 'pass'}, turn=turn)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", prelude + code, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out


def nested(depth: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(depth):
        value = {"in": [value]}
    return value


class Opaque:
    """A value that JSON does not know."""


class TestCanonicalJson:
    """The text that digests are made of."""

    @at_ease
    @given(json_values)
    def test_is_json_of_the_same_value(self, value: Any) -> None:
        """Canonical JSON is one ASCII line without control characters that reads back equal."""
        text = canonical_json(value)
        assert json.loads(text) == value
        assert text.isascii()
        assert text.isprintable()

    @at_ease
    @given(st.dictionaries(st.text(), json_values))
    def test_order_of_keys_does_not_matter(self, value: dict[str, Any]) -> None:
        """Equal mappings have one digest, however they were filled."""
        turned = dict(reversed(value.items()))
        assert canonical_digest(turned) == canonical_digest(value)
        assert canonical_digest([turned]) == canonical_digest((value,))

    @at_ease
    @given(json_values, json_values)
    def test_other_values_have_other_digests(self, one: Any, other: Any) -> None:
        """Two values have the same digest only if JSON writes them the same."""
        same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
        assert (canonical_digest(one) == canonical_digest(other)) is same

    @settings(deadline=None, max_examples=15)
    @given(json_values)
    def test_depth_does_not_matter(self, value: Any) -> None:
        """What is too deep for the C encoder is written as the C encoder would."""
        shallow, deep = canonical_json(nested(3, value)), canonical_json(nested(20_000, value))
        assert deep == '{"in":[' * 19_997 + shallow + "]}" * 19_997

    def test_is_a_known_digest(self) -> None:
        """The digest is what sha256sum says of the JSON without spaces, so it never changes."""
        assert canonical_digest({"b": 1, "a": "ä"}) == (
            "78892fb919682f85e08161f2cd8e0e904520a093cd75421077a1c865e59e90c6"
        )

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (b"\x00\xff", '{"$bytes":"00ff"}'),
            (Path("a/b"), '{"$path":"a/b"}'),
            ({3, 1, 2}, '{"$set":["1","2","3"]}'),
            (float("nan"), '{"$float":"nan"}'),
            (float("-inf"), '{"$float":"-inf"}'),
            (Opaque(), f'{{"$type":"{Opaque.__module__}.Opaque"}}'),
            ({1: "a", "b": 2, None: 3}, '{"b":2,"1":"a","null":3}'),
            ({(1, 2): 3}, '{"[1,2]":3}'),
            ((1, (2,)), "[1,[2]]"),
            ("\x7f\x1b\ud800", '"\\u007f\\u001b\\ud800"'),
            (10**5000, f'{{"$int":"{hex(10**5000)}"}}'),
            (LogLevel.OFF, '"off"'),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_other_values_have_a_stand_in(self, value: Any, text: str) -> None:
        """What is no JSON is written by its content where that is plain, else by its type."""
        assert canonical_json(value) == text
        assert canonical_json([value]) == f"[{text}]"

    def test_a_cycle_ends(self) -> None:
        """A value that holds itself has a digest."""
        endless: list[Any] = [1]
        endless.append(endless)
        assert canonical_json(endless) == '[1,{"$type":"cycle"}]'
        twice = [1]
        assert canonical_json([twice, twice, float("nan")]) == '[[1],[1],{"$float":"nan"}]'


class TestLine:
    """What is logged for one chain."""

    def test_a_pass_is_short(self) -> None:
        """A chain in which nothing happened has its ids, its digest, and nothing empty."""
        event = event_of(time=1_700_000_000.1239)
        digest = canonical_digest({"path": "0.py"})
        assert build_line(event, LogLevel.DECISIONS) == {
            "time": "2023-11-14T22:13:20.123Z",
            "turn": "turn-0",
            "session": "s1",
            "conversation": "c1",
            "hook": "intercept_tool_call",
            "tool": "write_file",
            "tool_call_id": "call-0",
            "call": "0.py",
            "action": "pass",
            "changed": False,
            "digests": {"in": digest, "out": digest},
            "duration_ns": 0,
        }

    def test_a_block_says_who_and_why(self) -> None:
        """A block has extension, handler, message, setting and place in the code; no digest out."""
        line = build_line(event_of(outcome=BLOCKED), LogLevel.DECISIONS)
        assert line["action"] == "block"
        assert line["blocked_by"] == "workflow-guard"
        assert line["message"] == "no plan yet"
        assert (line["extension"], line["handler"]) == ("workflow-guard", "gate")
        assert (line["setting"], line["file"], line["line"]) == (["blocked_tools"], "/guard.py", 7)
        assert line["digests"] == {"in": canonical_digest({"path": "0.py"})}
        assert "steps" not in line

    def test_a_rewrite_says_what_it_changed(self) -> None:
        outcome = {**BLOCKED, "action": "rewrite", "changed": True, "value": "a c"}
        line = build_line(event_of(before="a b", outcome=outcome), LogLevel.DECISIONS)
        assert line["change"] == [{"removed": 1, "added": "c"}]

    @pytest.mark.parametrize("level", ["decisions", "steps"])
    def test_no_payload_without_payloads(self, level: str) -> None:
        """Below `payloads` neither values nor metadata nor injected texts are written."""
        outcome = {
            **BLOCKED,
            "action": "rewrite",
            "changed": True,
            "value": "hunter2",
            "message": None,
            "system_injections": [{"extension": "a", "text": "hunter2", "keep": "turn"}],
            "user_injections": ["hunter2"],
        }
        line = build_line(event_of(before="hunter2", outcome=outcome), LogLevel(level))
        assert "hunter2" not in json.dumps(line)
        assert line["digests"]["out"] == canonical_digest("hunter2")
        assert line["injections"] == {
            "system": [{"extension": "a", "keep": "turn", "digest": canonical_digest("hunter2")}],
            "user": [{"digest": canonical_digest("hunter2")}],
        }

    def test_steps_say_what_each_handler_did(self) -> None:
        """At level `steps` each handler's step is there, its error too."""
        steps = build_line(event_of(outcome=BLOCKED), LogLevel.STEPS)["steps"]
        assert steps[0] == {"extension": "a", "handler": "look", "action": "pass"}
        assert steps[1]["error"] == {"kind": "timeout", "message": "late"}
        assert steps[1]["guard"] is True

    def test_payloads_have_everything(self) -> None:
        """At level `payloads` a line has the values, as they went in and came out, and the rest."""
        outcome = {**BLOCKED, "action": "rewrite", "changed": True, "value": {"path": "b"}}
        line = build_line(event_of(outcome=outcome), LogLevel.PAYLOADS)
        assert line["payloads"] == {"in": {"path": "0.py"}, "out": {"path": "b"}}
        assert line["metadata"]["secret"] == "hunter2"
        assert line["steps"] == BLOCKED["steps"]
        assert line["digests"]["out"] == canonical_digest({"path": "b"})

    def test_an_ask_says_whether_it_was_approved(self) -> None:
        """Asks are there with the answer, a no as well as a yes; who gave it too."""
        ask = {"extension": "a", "handler": "h", "reason": "sure?", "key": None}
        for approved in (True, False):
            outcome = {"action": "ask", "asks": [ask], "approved": approved, "decided_by": "user"}
            line = build_line(event_of(outcome=outcome), LogLevel.DECISIONS)
            assert line["asks"] == [{"extension": "a", "handler": "h", "reason": "sure?"}]
            assert line["approved"] is approved
            assert line["decided_by"] == "user"

    def test_a_confinement_is_told_with_what_became_of_it(self) -> None:
        """Who wants it and what may change, at each level; of an observed one what might have."""
        bounds = {"writable": ["plans"], "network": "none"}
        confine = {"extension": "a", "handler": "h", "reason": "no plan", **bounds}
        confined = {
            "writable": ["/p/plans"],
            "network": "none",
            "kept_by": "kernel",
            "left_out": [{"path": "x", "why": "it does not exist"}],
        }
        step = {"extension": "a", "handler": "h", "action": "confine", "reason": "no plan"}
        steps = [step | {"bounds": bounds}, step | {"bounds": bounds, "observed": True}]
        outcome = {
            "action": "confine",
            "confines": [confine],
            "confined": confined,
            "steps": steps,
            "decider": 0,
        }
        for level in (LogLevel.DECISIONS, LogLevel.STEPS, LogLevel.PAYLOADS):
            line = build_line(event_of(outcome=outcome), level)
            assert (line["action"], line["extension"]) == ("confine", "a")
            assert (line["confines"], line["confined"]) == ([confine], confined)
            (watched,) = [each for each in line.get("by", line.get("steps")) if "observed" in each]
            assert watched["bounds"] == bounds

    def test_long_texts_are_cut(self) -> None:
        """A message of any length takes a line of bounded length, which says how long it was."""
        outcome = {"action": "block", "blocked_by": "a", "message": "x" * 100_000}
        message = build_line(event_of(outcome=outcome), LogLevel.STEPS)["message"]
        assert len(message) < 600
        assert "100000 characters" in message


class TestWriting:
    """From a turn to the file."""

    def test_one_line_per_chain_in_order(self, path: Path) -> None:
        """Every event becomes one line, in the order of writing, built off the caller's thread."""
        threads: set[str] = set()

        def outcome() -> dict[str, Any]:
            threads.add(threading.current_thread().name)
            return {"action": "pass"}

        lines = logged(DecisionLog(path), *(event_of(n, outcome=outcome) for n in range(50)))
        assert [line["turn"] for line in lines] == [f"turn-{n}" for n in range(50)]
        assert threads == {"hermes-ext-decisions"}
        assert path.read_bytes().count(b"\n") == 50

    def test_time_and_hook_come_first(self, path: Path) -> None:
        """A line reads from left to right: when, which turn, which hook, what."""
        logged(DecisionLog(path), event_of())
        keys = list(json.loads(path.read_text()))
        assert keys[:5] == ["time", "turn", "session", "conversation", "hook"]

    def test_off_writes_nothing(self, path: Path) -> None:
        """At level `off` neither file nor directory is made, and no thread starts."""
        log = DecisionLog(path, "off")
        assert not log.on
        assert logged(log, event_of()) == []
        assert not path.parent.exists()

    def test_unknown_levels_are_refused(self, path: Path) -> None:
        """A level that does not exist is a ValueError where the log is made."""
        with pytest.raises(ValueError, match="verbose"):
            DecisionLog(path, "verbose")

    def test_the_file_is_private(self, path: Path) -> None:
        """Only the owner can read the log."""
        logged(DecisionLog(path), event_of())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.parametrize(
        "text", ["\x1b[31m\r\n\x00\x7f\x9b", "\u202e\u2028\u2029", "\ud800"], ids=ascii
    )
    def test_control_characters_are_escaped(self, path: Path, text: str) -> None:
        """No text can write to the reader's terminal or make a second line; it reads back whole."""
        outcome = {"action": "block", "blocked_by": text, "message": text}
        (line,) = logged(DecisionLog(path), event_of(outcome=outcome, tool=text))
        assert (line["message"], line["tool"], line["blocked_by"]) == (text, text, text)
        raw = path.read_text("ascii")
        assert raw.endswith("\n")
        assert raw[:-1].isprintable()

    def test_any_payload_is_written(self, path: Path) -> None:
        """At level `payloads` a value that is no JSON costs neither its line nor the next ones."""
        odd = {"bytes": b"\x00", "nan": float("nan"), "object": Opaque(), "deep": nested(200, 1)}
        lines = logged(DecisionLog(path, "payloads"), event_of(before=odd), event_of(1))
        assert lines[0]["payloads"]["in"]["bytes"] == {"$bytes": "00"}
        assert lines[1]["turn"] == "turn-1"

    @pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit])
    def test_a_failing_outcome_costs_its_own_line(
        self, path: Path, kind: type[BaseException]
    ) -> None:
        """Where a line cannot be built a short one says so, and the log goes on."""

        def fails() -> dict[str, Any]:
            raise kind("hunter2")

        lines = logged(DecisionLog(path), event_of(outcome=fails), event_of(1))
        assert lines[0]["turn"] == "turn-0"
        assert kind.__name__ in lines[0]["error"]
        assert "hunter2" not in path.read_text()
        assert lines[1]["action"] == "pass"

    def test_a_full_queue_drops_the_oldest_and_says_how_many(self, path: Path) -> None:
        """When the writer cannot follow, the newest events stay and one line counts the others."""
        started, go_on = threading.Event(), threading.Event()

        def slow() -> dict[str, Any]:
            started.set()
            go_on.wait(30)
            return {"action": "pass"}

        log = DecisionLog(path, queue_limit=5)
        log.write(event_of(0, outcome=slow))
        assert started.wait(30)
        for number in range(1, 21):
            log.write(event_of(number))
        assert not log.flush(0)
        go_on.set()
        lines = logged(log)
        dropped = [line["dropped"] for line in lines if "dropped" in line]
        assert dropped == [15]
        turns = [line["turn"] for line in lines if "turn" in line]
        assert turns == [f"turn-{n}" for n in (0, 16, 17, 18, 19, 20)]

    def test_after_a_pause_it_goes_on(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its thread ends where nothing comes for a while; the next event has another."""
        monkeypatch.setattr(log_module, "_IDLE_SECONDS", 0.0)
        log = DecisionLog(path)
        for number in range(10):
            assert len(logged(log, event_of(number))) == number + 1

    def test_many_threads_lose_nothing(self, path: Path) -> None:
        """Events from parallel tool calls all arrive, each thread's in its order."""
        log = DecisionLog(path)

        def write(first: int) -> None:
            for number in range(first, first + 100):
                log.write(event_of(number))

        threads = [threading.Thread(target=write, args=(n * 100,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [int(line["turn"].removeprefix("turn-")) for line in logged(log)]
        assert sorted(numbers) == list(range(800))
        for first in range(0, 800, 100):
            mine = [n for n in numbers if first <= n < first + 100]
            assert mine == sorted(mine)


class TestProcesses:
    """More than one process, forks, and the end of a process."""

    def test_the_end_of_a_process_loses_nothing(self, path: Path) -> None:
        """What waits when a program ends, also by an exception, is written."""
        code = (
            "log = DecisionLog(sys.argv[1])\n"
            "for number in range(500): log.write(event(number))\n"
            "sys.exit(0)"
        )
        finished(python(code, path))
        assert len(list(read_decisions(path))) == 500

    def test_writing_at_exit_works(self, path: Path) -> None:
        """An event that another exit handler writes is written, as late as it comes."""
        code = (
            "import atexit\n"
            "log = DecisionLog(sys.argv[1])\n"
            "atexit.register(lambda: (log.write(event(1)), log.flush()))"
        )
        finished(python(code, path))
        assert len(list(read_decisions(path))) == 1

    def test_two_processes_share_a_rotating_log(self, path: Path) -> None:
        """Lines of two processes never mix, and rotation by both loses none that fits."""
        code = (
            "log = DecisionLog(sys.argv[1], max_bytes=20_000, files=20)\n"
            "input()\n"
            "for number in range(500): log.write(event(number))\n"
            "assert log.flush(60)\n"
            "print(os.getpid(), log.notices)"
        )
        both = [python(code, path, stdin=subprocess.PIPE) for _ in range(2)]
        for process in both:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        ids = []
        for process in both:
            pid, notices = finished(process).split(maxsplit=1)
            assert notices == "[]\n"
            ids.append(pid)
        turns = [line["turn"] for line in read_decisions(path)]
        assert sorted(turns) == sorted(f"{pid}-{n}" for pid in ids for n in range(500))
        assert len(list(path.parent.glob("extensions.jsonl.*[0-9]"))) > 2

    @needs_fork
    def test_long_lines_of_many_processes_stay_whole(self, path: Path) -> None:
        """Beside writers in the middle of long lines no line is torn and no empty one comes in."""
        code = (
            "log = DecisionLog(sys.argv[1], 'payloads', max_bytes=1_000_000_000)\n"
            "text = 'x' * 400_000\n"
            "children = []\n"
            "for _ in range(6):\n"
            "    if (child := os.fork()) == 0:\n"
            "        for number in range(12):\n"
            "            log.write(DecisionEvent('h', text, {'action': 'pass'}))\n"
            "        os._exit(0 if log.flush(60) and not log.notices else 1)\n"
            "    children.append(child)\n"
            "assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6"
        )
        finished(python(code, path))
        lengths = [len(line) for line in path.read_bytes().split(b"\n")]
        assert lengths.pop() == 0
        assert len(lengths) == 72
        assert set(lengths) == {lengths[0]}

    @needs_fork
    def test_a_forked_child_writes_its_own_and_only_its_own(self, path: Path) -> None:
        """A child's events are written; what waited in the parent, once and by the parent."""
        code = (
            "import warnings\n"
            "warnings.simplefilter('ignore', DeprecationWarning)\n"
            "go_on = threading.Event()\n"
            "def slow():\n"
            "    go_on.wait(30)\n"
            "    return {'action': 'pass'}\n"
            "log = DecisionLog(sys.argv[1])\n"
            "log.write(DecisionEvent('h', 1, slow, turn='slow'))\n"
            "log.write(DecisionEvent('h', 1, {'action': 'pass'}, turn='waiting'))\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    log.write(DecisionEvent('h', 1, {'action': 'pass'}, turn='child'))\n"
            "    os._exit(0 if log.flush(30) else 1)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "go_on.set()"
        )
        finished(python(code, path))
        assert [line["turn"] for line in read_decisions(path)] == ["child", "slow", "waiting"]


class TestRotation:
    """Files of bounded size."""

    def test_old_lines_go_and_the_newest_stay(self, path: Path) -> None:
        """At most `files` files of at most `max_bytes`; reading gives the newest lines in order."""
        log = DecisionLog(path, max_bytes=2_000, files=3)
        numbers = [int(line["turn"][5:]) for line in logged(log, *map(event_of, range(100)))]
        files = sorted(file.name for file in path.parent.glob("*[!k]"))
        assert files == ["extensions.jsonl", "extensions.jsonl.1", "extensions.jsonl.2"]
        assert all((path.parent / name).stat().st_size <= 2_000 for name in files)
        assert numbers == list(range(numbers[0], 100))
        assert 0 < numbers[0] < 99
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}

    def test_a_single_file_starts_over(self, path: Path) -> None:
        """With `files=1` nothing is kept beside the current file."""
        log = DecisionLog(path, max_bytes=2_000, files=1)
        lines = logged(log, *map(event_of, range(100)))
        assert lines[-1]["turn"] == "turn-99"
        assert [file.name for file in path.parent.glob("*[!k]")] == ["extensions.jsonl"]

    def test_a_line_longer_than_a_file_is_written(self, path: Path) -> None:
        """A payload larger than `max_bytes` has a file of its own."""
        log = DecisionLog(path, "payloads", max_bytes=1_000)
        lines = logged(log, event_of(0), event_of(1, before="x" * 5_000), event_of(2))
        assert [line["turn"] for line in lines] == ["turn-0", "turn-1", "turn-2"]
        assert len(lines[1]["payloads"]["in"]) == 5_000

    def test_a_file_that_cannot_be_rotated_grows(self, path: Path) -> None:
        """Where renaming fails lines are still written."""
        (path.parent / "extensions.jsonl.1").mkdir(parents=True)
        log = DecisionLog(path, max_bytes=500, files=2)
        assert len(logged(log, *map(event_of, range(10)))) == 10


class TestReading:
    """Reading what was written, whatever happened to it."""

    def test_torn_and_foreign_lines_are_left_out(self, path: Path) -> None:
        """A torn line, one that is no object, and bytes that are no text cost only themselves."""
        path.parent.mkdir()
        path.write_bytes(b'{"n": 1}\n{"n": 2\n[3]\n\xff\xfe\n\n{"n": 4}\r\n{"n": 5}\n{"n"')
        assert [line["n"] for line in read_decisions(path)] == [1, 4, 5]

    def test_a_torn_end_does_not_swallow_the_next_line(self, path: Path) -> None:
        """After a writer was killed in the middle of a line the next one begins a line."""
        path.parent.mkdir()
        path.write_text('{"turn": "whole"}\n{"turn": "to')
        lines = logged(DecisionLog(path), event_of())
        assert [line["turn"] for line in lines] == ["whole", "turn-0"]

    @pytest.mark.parametrize(
        ("last", "expected"),
        [
            (None, [1, 2, 3, 4, 5, 6]),
            (1, [6]),
            (3, [4, 5, 6]),
            (4, [3, 4, 5, 6]),
            (99, [1, 2, 3, 4, 5, 6]),
            (0, []),
        ],
    )
    def test_last_counts_over_all_files(
        self, path: Path, last: int | None, expected: list[int]
    ) -> None:
        """`last` gives the newest lines, oldest first, also where they lie in several files."""
        path.parent.mkdir()
        for name, content in (
            ("", "5 6"),
            (".1", "3 4"),
            (".2", "2"),
            (".10", "1"),
            (".lock", "9"),
        ):
            lines = "".join(f'{{"n": {number}}}\n' for number in content.split())
            path.with_name(path.name + name).write_text(lines)
        assert [line["n"] for line in read_decisions(path, last)] == expected

    def test_no_log_has_no_lines(self, path: Path) -> None:
        """A log that was never written reads as empty."""
        assert list(read_decisions(path)) == []
        path.parent.mkdir()
        assert list(read_decisions(path, last=3)) == []


class TestOutage:
    """A disk that takes nothing."""

    @needs_dev_full
    def test_a_full_disk_costs_lines_and_says_so_once(self, path: Path) -> None:
        """Writing to a full disk raises nothing; later one line counts what was dropped."""
        path.parent.mkdir()
        path.symlink_to("/dev/full")
        told: list[str] = []
        log = DecisionLog(path, notify=told.append)
        for number in range(10):
            log.write(event_of(number))
        assert log.flush(30)
        assert log.notices == told
        assert len(told) == 1
        assert str(path) in told[0]
        assert os.strerror(errno.ENOSPC) in told[0]
        path.unlink()
        lines = logged(log, event_of(10))
        assert lines[0]["dropped"] == 10
        assert [line.get("turn") for line in lines] == [None, "turn-10"]

    def test_a_line_that_has_room_for_its_half_only_is_lost_and_told(self, path: Path) -> None:
        code = (
            "import resource\n"
            "log = DecisionLog(sys.argv[1])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
            "log.write(event(0))\n"
            "assert log.flush(60)\n"
            "print(log.notices)"
        )
        assert os.strerror(errno.ENOSPC) in finished(python(code, path))
        assert path.stat().st_size == 100

    @pytest.mark.parametrize("obstacle", ["directory is a file", "path is a directory"])
    def test_an_impossible_path_costs_lines_only(self, path: Path, obstacle: str) -> None:
        """Where the file cannot be made nothing is raised, and there is one notice."""
        if obstacle == "directory is a file":
            path.parent.write_text("in the way")
        else:
            path.mkdir(parents=True)
        log = DecisionLog(path)
        for number in range(3):
            log.write(event_of(number))
        assert log.flush(30)
        assert len(log.notices) == 1

    def test_a_removed_directory_is_made_again(self, path: Path) -> None:
        """A log whose directory is removed while it is in use goes on in a new one."""
        log = DecisionLog(path)
        logged(log, event_of(0))
        path.unlink()
        path.parent.rmdir()
        assert [line["turn"] for line in logged(log, event_of(1))] == ["turn-1"]
