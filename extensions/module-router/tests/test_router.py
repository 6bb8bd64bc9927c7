"""What is broad, and what opens the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import Bundled, readme_of, schema_of

from hermes_ext import Turn

MAP = "# Map\n\n" + "".join(f"- part {n}: src/part{n}\n" for n in range(40))


@pytest.fixture
def on(tmp_path: Path) -> Bundled:
    found = Bundled(tmp_path, "module-router")
    found.write("AGENTS.md", MAP)
    found.write("src/billing/a.py")
    return found


def read(turn: Turn, result: str, tool: str = "read_file", **more: Any) -> None:
    """A document was read, with this result."""
    args = {"path": "AGENTS.md"} if tool == "read_file" else {"command": "cat AGENTS.md"}
    turn.intercept_tool_call(tool, args)
    turn.transform_tool_result(tool, args, result, **more)


def searched(turn: Turn, command: str = "grep -rn invoice .") -> bool:
    return not turn.intercept_tool_call("terminal", {"command": command}).blocked


BROAD = """
grep -rn x .
grep -r x
grep -Rl x ..
rg x
rg x .
find . -name '*.py'
find
ls -R
ls -laR .
tree
git grep x
git ls-files
rg --files
ugrep -r x
ug x
ack x
ag x
fd x
ls **
grep x **/*
shopt -s globstar; cat **/*.py
cat ./**/*.py
find . -maxdepth 2
find . -maxdepth $N
find . -exec echo -maxdepth 1 ';'
find . -maxdepth 1 -exec grep -r x {} +
tree -L 2
cd src && grep -r x ..
grep -rn x "$PWD"
x=.; grep -r y $x
bash -c 'grep -r x .'
cat $(grep -rl x .)
grep -r x . | head
grep -rn x /
""".strip().splitlines()

NARROW = """
grep -rn x src
grep x AGENTS.md
find src -name '*.py'
ls
ls -la src
ls -R src
cat AGENTS.md
git status
git log
rg x src/billing
ug x src
cat src/**/*.py
cat */*.md
grep '**/*' AGENTS.md
find . -maxdepth 1
find . -maxdepth 0 -name src
find . -maxdepth 1 -exec cat {} +
tree -L 1
tree -L1 .
make
""".strip().splitlines()


@pytest.mark.parametrize("command", BROAD)
def test_broad_searches_wait(on: Bundled, command: str) -> None:
    outcome = on.shell(command)
    assert outcome.blocked_by == "module-router"
    assert "AGENTS.md" in str(outcome.message)


@pytest.mark.parametrize("command", NARROW)
def test_the_rest_does_not(on: Bundled, command: str) -> None:
    assert not on.shell(command).blocked


def test_a_pattern_that_reads_many_files_everywhere_waits(on: Bundled) -> None:
    """Many files in one directory are none of it, and a few in many directories are not."""
    for number in range(60):
        on.write(f"lib/{number}.md")
        on.write(f"part{number % 6}/{number}.txt")
    assert not on.shell("cat lib/*.md").blocked
    assert not on.shell("cat part*/1*.txt").blocked
    assert on.shell("cat part*/*.txt").blocked


@pytest.mark.parametrize(
    ("args", "broad"),
    [
        ({"pattern": "x"}, True),
        ({"pattern": "x", "path": "."}, True),
        ({"pattern": "x", "path": "src/.."}, True),
        ({"pattern": "x", "path": "src"}, False),
        ({"pattern": "x", "path": "AGENTS.md"}, False),
    ],
)
def test_search_files(on: Bundled, args: dict[str, Any], broad: bool) -> None:
    assert on.call("search_files", args).blocked is broad


@pytest.mark.parametrize(
    "result",
    [MAP, json.dumps({"content": MAP}), json.dumps({"output": MAP[:900], "exit_code": 0})],
    ids=["text", "json", "first part"],
)
def test_a_result_that_shows_the_document_opens_the_way(on: Bundled, result: str) -> None:
    for tool in ("read_file", "terminal"):
        with on.turn() as turn:
            assert not searched(turn)
            read(turn, result, tool)
            assert searched(turn)


def test_numbered_lines_count_as_the_document(on: Bundled) -> None:
    """As read_file gives them."""
    numbered = "\n".join(f"{n}|{line}" for n, line in enumerate(MAP.splitlines(), 1))
    with on.turn() as turn:
        read(turn, json.dumps({"content": numbered}))
        assert searched(turn)


@pytest.mark.parametrize(
    ("result", "more"),
    [
        ("", {}),
        ("part 30", {}),
        (MAP[400:], {}),
        (MAP, {"status": "error"}),
        (json.dumps({"error": MAP}), {}),
    ],
    ids=["empty", "a line", "the end", "failed", "an error"],
)
def test_other_results_do_not(on: Bundled, result: str, more: dict[str, Any]) -> None:
    with on.turn() as turn:
        read(turn, result, **more)
        assert not searched(turn)


def test_the_call_alone_opens_nothing(on: Bundled) -> None:
    """A search in the same batch as the reading is still blocked."""
    with on.turn() as turn:
        turn.intercept_tool_call("read_file", {"path": "AGENTS.md"})
        assert not searched(turn)


STUBS = [
    json.dumps({"status": "unchanged", "path": "AGENTS.md", "dedup": True}),
    json.dumps({"error": "BLOCKED: STOP calling read_file", "already_read": 3}),
]


@pytest.mark.parametrize("stub", STUBS, ids=["stub", "refused"])
def test_what_the_conversation_has_already(on: Bundled, stub: str) -> None:
    """read_file gives an unchanged file's text once: asking again counts, if it was shown."""
    with on.turn() as turn:
        read(turn, stub)
        assert not searched(turn)
        read(turn, MAP)
    with on.turn() as turn:
        assert not searched(turn)
        read(turn, stub, status="error" if "error" in stub else "ok")
        assert searched(turn)
    on.write("AGENTS.md", f"# Another\n{MAP}")
    with on.turn() as turn:
        read(turn, stub)
        assert not searched(turn)


@pytest.mark.parametrize("text", ["", "\n \n", "\0\0\n"], ids=["empty", "blank", "no text"])
def test_a_document_that_cannot_be_shown_locks_nobody_out(on: Bundled, text: str) -> None:
    on.write("AGENTS.md", text)
    outcome = on.shell("grep -r x .")
    assert not outcome.blocked
    assert outcome.metadata["absent"] == ["AGENTS.md"]


def test_what_tools_change_in_a_document(on: Bundled) -> None:
    """Byte order marks, masked passwords and lines that were cut."""
    on.write("AGENTS.md", "\ufeff" + f"{MAP[:200]}token: secret\n{'long ' * 900}\n{MAP[200:]}")
    shown = f"{MAP[:200]}token: ***\n{('long ' * 900)[:2000]}... [truncated]\n{MAP[200:]}"
    with on.turn() as turn:
        read(turn, json.dumps({"content": shown}))
        assert searched(turn)


def test_a_document_that_is_not_there_is_told(tmp_path: Path) -> None:
    on = Bundled(tmp_path, "module-router", documents=["AGENTS.md", "docs/none.md"])
    on.write("AGENTS.md", MAP)
    assert "Tell the user that docs/none.md" in str(on.shell("grep -r x .").message)


def test_another_file_with_the_same_text_does_not_count(on: Bundled) -> None:
    with on.turn() as turn:
        turn.transform_tool_result("read_file", {"path": "src/billing/a.py"}, MAP)
        assert not searched(turn)


def test_the_next_turn_reads_anew(on: Bundled) -> None:
    with on.turn() as turn:
        read(turn, MAP)
        assert searched(turn)
    with on.turn() as turn:
        assert not searched(turn)


def test_settings(tmp_path: Path) -> None:
    """All or any of several documents; one that is not there counts as read; depth and narrow."""
    on = Bundled(tmp_path, "module-router", documents=["AGENTS.md", "docs/map.md", "none.md"])
    on.write("AGENTS.md", MAP)
    on.write("docs/map.md", "another\n")
    on.write("src/a/b.py")
    with on.turn() as turn:
        read(turn, MAP)
        assert not searched(turn)
        turn.transform_tool_result("read_file", {"path": "docs/map.md"}, "another")
        assert searched(turn)
    on.restarted(documents=["AGENTS.md", "docs/map.md"], need="any", broad_depth=1, narrow=["docs"])
    with on.turn() as turn:
        assert not searched(turn, "grep -r x src")
        assert searched(turn, "grep -r x docs")
        assert searched(turn, "grep -r x src/a")
        read(turn, MAP)
        assert searched(turn, "grep -r x src")
    on.restarted(documents=["none.md"])
    assert not on.shell("grep -r x .").blocked


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("module-router")["properties"].items():
        assert f"`{name}`" in readme_of("module-router")
        assert "default" in setting
        assert setting["description"]


def test_where_nothing_can_be_stored(on: Bundled) -> None:
    """A document that was read opens the way for its turn, and is to be read in the next one."""
    on.without_store()
    for _ in range(2):
        with on.turn() as turn:
            assert not searched(turn)
            read(turn, MAP)
            assert searched(turn)
