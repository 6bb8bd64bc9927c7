"""A decision log that is far larger than memory should be: it is read as a stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Home

from hermes_ext.turns.decisions.reading import LogFiles, LogLines, follow_decisions, read_decisions

MEGABYTE = 1_000_000
MOST_MEMORY = 100 * MEGABYTE
# Read whole, also the smaller one needs several times that memory.
SIZE = (200 if os.environ.get("LONG") else 40) * MEGABYTE

needs_rss = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="memory is measured as Linux tells it"
)

PASSED: dict[str, Any] = {
    "time": "2026-01-01T00:00:00.000Z", "turn": "t-pass", "session": "s", "conversation": "s",
    "hook": "intercept_tool_call", "tool": "terminal", "tool_call_id": "c1", "call": "ls",
    "action": "pass", "changed": False, "digests": {"in": "0" * 64, "out": "0" * 64},
    "duration_ns": 1,
}  # fmt: skip
BLOCKED = PASSED | {
    "turn": "t-block", "action": "block", "blocked_by": "rules", "extension": "rules",
    "handler": "careful", "message": "not this",
}  # fmt: skip
# As a child says it: the most that it ever had in memory, in kilobytes. Not by getrusage, in which
# a child begins with what its parent had when it forked.
CHILD = """
import re, sys
from pathlib import Path
from hermes_ext.cli import main
code = main(sys.argv[1:])
sys.stdout.flush()
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], file=sys.stderr)
sys.exit(code)
"""


def encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def many(line: dict[str, Any], size: int) -> Iterator[bytes]:
    """So many bytes of equal lines, in large pieces."""
    piece = encoded(line) * (MEGABYTE // len(encoded(line)))
    for _ in range(size // len(piece)):
        yield piece


def block_last() -> Iterator[bytes]:
    yield from many(PASSED, SIZE)
    yield encoded(BLOCKED)


def block_before() -> Iterator[bytes]:
    # Every line is looked at; less of them, because that takes a while.
    yield encoded(BLOCKED)
    yield from many(PASSED, SIZE // 8)


def long_lines_behind_it() -> Iterator[bytes]:
    yield encoded(BLOCKED)
    yield from many(PASSED | {"payloads": {"in": "z" * 900_000}}, SIZE)


@pytest.fixture
def file(home: Home) -> Path:
    file = home.path / "logs" / "extensions.jsonl"
    file.parent.mkdir()
    return file


def fill(file: Path, pieces: Iterator[bytes]) -> None:
    with file.open("wb") as target:
        for piece in pieces:
            target.write(piece)


@needs_rss
@pytest.mark.parametrize("pieces", [block_last, block_before, long_lines_behind_it])
def test_memory(file: Path, pieces: Any) -> None:
    """`why last`, `log -n` and `why TURN` find what there is in 100 MB of memory in all."""
    fill(file, pieces())
    wanted = [("why", "last"), ("why", "t-bl"), ("log", "--action", "block", "-n", "3")]
    if pieces is block_last:
        wanted = [("why", "last"), ("log", "-n", "3")]
    for argv in wanted:
        assert_found(argv)
    file.unlink()  # pytest keeps the folders of the last runs


@needs_rss
def test_memory_where_one_line_is_200_mb(file: Path) -> None:
    """What stands before its payload is told, whichever way it is come upon."""
    with file.open("wb") as target:
        target.write(encoded(BLOCKED | {"payloads": {"in": "X"}})[:-4])
        target.seek(200 * MEGABYTE, os.SEEK_CUR)  # takes no room on the disk
        target.write(b'"}}\n' + encoded(PASSED))
    for argv in (("why", "last"), ("why", "t-bl"), ("log", "-n", "2")):
        assert_found(argv)


def assert_found(argv: tuple[str, ...]) -> None:
    """The command tells of the block, in bounded memory."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *argv], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "not this" in done.stdout
    assert int(done.stderr.split()[-1]) * 1024 < MOST_MEMORY


@needs_rss
def test_memory_of_replay(home: Home, file: Path) -> None:
    """Events are made again one by one; those that cannot be are counted."""
    home.add("rules")
    home.write_config("extensions: {log: payloads}\n")
    fill(file, many(PASSED, SIZE // 2))
    done = subprocess.run(
        [sys.executable, "-c", _IN_CHILDREN, "replay", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "written without payloads" in done.stdout, done
    assert int(done.stderr.split()[-1]) * 1024 < MOST_MEMORY


_IN_CHILDREN = CHILD.replace("RUSAGE_SELF", "RUSAGE_CHILDREN")


# -- what is read ---------------------------------------------------------------------------------


def numbered(count: int, size: int = 0) -> bytes:
    lines = (f'{{"n": {n}, "x": "{"é" * (size * n % 997)}"}}\n' for n in range(count))
    return "".join(lines).encode()


@pytest.mark.parametrize("block", [1, 2, 7, 64, 1 << 18])
@pytest.mark.parametrize(
    ("end", "is_whole"),
    [
        ("", True),
        ("\n", True),
        ("\n\n", True),
        ('{"n": 30}', False),
        ('\n{"n": 30', True),
        ("\xff", False),
    ],
)
def test_both_directions_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, end: str, is_whole: bool
) -> None:
    """However the pieces fall that the files are read in, and whatever the end looks like."""
    monkeypatch.setattr("hermes_ext.turns.decisions.reading._BLOCK", block)
    path = tmp_path / "log"
    path.write_bytes(numbered(30, 3)[:-1] + end.encode("latin-1"))
    path.with_name("log.1").write_bytes(b"\n\n" + numbered(3) + b"{torn\n[1]\n")
    path.with_name("log.2").write_bytes(b"")
    expected = [0, 1, 2, *range(30 if is_whole else 29)]
    with LogFiles(path) as files:
        forward = [line["n"] for line in files.oldest_first()]
        backward = [line["n"] for line in files.newest_first()]
        by_number = [line["n"] for line in LogLines(files)]
    assert forward == backward[::-1] == by_number == expected
    assert [line["n"] for line in read_decisions(path, 2)] == expected[-2:]


def test_what_is_known_of_a_line_that_is_too_long(tmp_path: Path) -> None:
    """The entries before the long one, and how long it is; the lines around it are whole."""
    path = tmp_path / "log"
    long_one = {"time": "t", "hook": "h", "n": 12, "payloads": {"in": "x" * 5_000}, "m": 1}
    path.write_bytes(encoded({"n": 1}) + encoded(long_one) + encoded({"n": 3}))
    length = len(encoded(long_one)) - 1
    begin = {"time": "t", "hook": "h", "n": 12, "too_long": length}
    expected: list[Any] = [{"n": 1}, begin, {"n": 3}]
    with LogFiles(path, longest=100) as files:
        assert [*files.oldest_first()] == expected
        assert [*files.newest_first()] == expected[::-1]
        assert LogLines(files)[1] == expected[1]


@pytest.mark.parametrize("longest", range(2, 60))
def test_a_line_that_is_cut_anywhere(tmp_path: Path, longest: int) -> None:
    """No entry is taken of which the end is missing."""
    path = tmp_path / "log"
    whole = {"time": "abc", "n": 1234, "list": [1, {"a": "}"}], "last": "x" * 90}
    path.write_bytes(encoded(whole))
    with LogFiles(path, longest=longest) as files:
        found = [*files.oldest_first()]
    for line in found:
        assert line.pop("too_long") == len(encoded(whole)) - 1
        assert line == {key: whole[key] for key in line}
        assert "last" not in line


def test_following_bounds_a_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is written in pieces."""
    monkeypatch.setattr("hermes_ext.turns.decisions.reading.LONGEST_LINE", 50)
    path = tmp_path / "log"
    path.write_text("")
    pieces = iter(['{"n":1,"x":"', "x" * 200, '"}\n{"n":2}\n'])

    def wait() -> None:
        with path.open("a") as file:
            file.write(next(pieces))

    found = follow_decisions(path, wait=wait)
    assert [next(found), next(found)] == [{"n": 1, "too_long": 214}, {"n": 2}]
    found.close()


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    """What is there is given; nothing is read twice, and it comes to an end."""
    path = tmp_path / "log"
    path.write_bytes(numbered(5_000))
    for way in ("newest_first", "oldest_first"):
        path.write_bytes(numbered(5_000))
        with LogFiles(path) as files:
            lines: Iterator[dict[str, Any]] = getattr(files, way)()
            seen = [next(lines)["n"]]
            os.truncate(path, 100)
            seen += [line["n"] for line in lines]
        assert len(seen) == len(set(seen))
