"""What must have been read, by whom, and when it must be read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import (
    DrivenTurn,
    LoadedExtension,
    LoadExtension,
    assert_blocked,
    assert_passed,
)

EXTENSION = Path(__file__).parents[1]
WRITE = ("write_file", {"path": "a.py", "content": "2\n"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "build" / "project"  # `build` above the project is not free
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("1\n")
    (folder / "link.py").symlink_to("a.py")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.py").write_text("1\n")
    return folder


@pytest.fixture
def extension(load_extension: LoadExtension, project: Path) -> LoadedExtension:
    return load_extension(EXTENSION, project_root=project)


def read(turn: DrivenTurn, path: str, status: str = "ok") -> None:
    args = {"path": path}
    assert_passed(turn.call("read_file", args))
    turn.result("read_file", args, "1\n", status=status)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        WRITE,
        ("write_file", {"path": "sub/../a.py", "content": ""}),
        ("write_file", {"path": "link.py", "content": ""}),
        ("patch", {"path": "a.py", "old_string": "1", "new_string": "2"}),
        ("patch", {"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: a.py\n"}),
        ("terminal", {"command": "echo x > a.py"}),
        ("terminal", {"command": "cp sub/b.py a.py"}),
        ("terminal", {"command": "rm a.py && echo x > a.py"}),
        ("terminal", {"command": "sed -i s/1/2/ a.py; make"}),
        ("execute_code", {"code": "open('a.py', 'w').write('')"}),
        ("mcp_files_write", {"path": "a.py"}),
    ],
)
def test_no_tool_overwrites_what_was_not_read(
    extension: LoadedExtension, tool: str, args: dict[str, Any]
) -> None:
    """By any name of the file; reading it, by any of them, opens it for the conversation."""
    outcome = extension.call(tool, args)
    assert_blocked(outcome, by="read_before_write", match=r"Read .*a\.py before")
    with extension.turn() as turn:
        read(turn, "a.py", status="error")
        assert_blocked(turn.call(tool, args))
        if "cp" in str(args):
            read(turn, "sub/b.py")
        read(turn, str(extension.project / "link.py"))
        assert_passed(turn.call("write_file", {"path": "a.py", "content": "2\n"}))
    extension.restart()
    child = {"session_id": "child", "conversation_id": "test", "is_subagent": True}
    assert_passed(extension.call(*WRITE, **child))
    assert_blocked(extension.call(*WRITE, session_id="other"))


def test_looking_at_it_otherwise_is_not_reading(extension: LoadedExtension) -> None:
    """`wc` shows nothing of it."""
    with extension.turn() as turn:
        for command in ("wc -l a.py", "cat a.py > /dev/null"):
            turn.call("terminal", {"command": command})
            turn.result("terminal", {"command": command}, "1 a.py", status="ok")
        assert_blocked(turn.call(*WRITE))


def test_what_others_change_is_read_again(extension: LoadedExtension, project: Path) -> None:
    """What the agent's own edit made of it is known to it."""
    with extension.turn() as turn:
        read(turn, "a.py")
        assert_passed(turn.call(*WRITE))
        (project / "a.py").write_text("2\n")
        turn.result(*WRITE, "ok", status="ok")
        assert_passed(turn.call(*WRITE))
        (project / "a.py").write_text("the user's\n")
        assert_blocked(turn.call(*WRITE), match="has changed since you read it")
        read(turn, "a.py")
        assert_passed(turn.call(*WRITE))


def test_folders(extension: LoadedExtension, project: Path) -> None:
    """All files of one that goes have to be read, but for those that anyone can make anew."""
    assert_blocked(extension.call("terminal", {"command": "rm -r sub"}), match=r"sub/b\.py")
    for free in ("dist", ".git"):
        (project / free).mkdir()
        (project / free / "x").write_text("x")
    assert_passed(extension.call("terminal", {"command": "rm -r dist"}))
    assert_passed(extension.call("terminal", {"command": "git commit -m x"}))
    with extension.turn() as turn:
        read(turn, "sub/b.py")
        assert_passed(turn.call("terminal", {"command": "rm -r sub"}))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": "new.py", "content": ""}),
        ("terminal", {"command": "mkdir -p x && touch x/y"}),
        ("terminal", {"command": "make"}),
        ("read_file", {"path": "a.py"}),
    ],
)
def test_what_is_free(extension: LoadedExtension, tool: str, args: dict[str, Any]) -> None:
    """Creating, reading, and programs of which nobody knows what they do."""
    assert_passed(extension.call(tool, args))


def test_a_file_that_is_not_named(extension: LoadedExtension) -> None:
    """What a program that is known writes to has to be told."""
    outcome = extension.call("terminal", {"command": "rm $(cat list)"})
    assert_blocked(outcome, match="Name it")
