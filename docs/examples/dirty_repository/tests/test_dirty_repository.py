"""Who made which uncommitted change, told apart in a real repository."""

from __future__ import annotations

import subprocess
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
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.com")


def git(folder: Path, *args: str) -> None:
    subprocess.run([*GIT, *args], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.py").write_text("a\n")
    (root / "b.py").write_text("b\n")
    commit(root)
    return root


@pytest.fixture
def extension(load_extension: LoadExtension, repository: Path) -> LoadedExtension:
    return load_extension(EXTENSION, project_root=repository)


def write(turn: DrivenTurn, path: Path, text: str) -> None:
    """A call of write_file that is allowed, and does what it says."""
    args = {"path": str(path), "content": text}
    assert_passed(turn.call("write_file", args, tool_call_id=f"{path} {text}"))
    path.write_text(text)
    turn.result("write_file", args, "ok", tool_call_id=f"{path} {text}")


def test_the_agents_own_changes_do_not_stop_it(
    extension: LoadedExtension, repository: Path
) -> None:
    """Over turns and restarts, until the user changes one of the same files."""
    with extension.turn() as turn:
        write(turn, repository / "a.py", "1\n")
        write(turn, repository / "new.py", "1\n")
        write(turn, repository / "a.py", "2\n")
    extension.restart()
    assert_passed(extension.call("terminal", {"command": "make"}))
    (repository / "a.py").write_text("the user's\n")
    outcome = extension.call("write_file", {"path": "b.py", "content": ""})
    assert_blocked(outcome, by="dirty_repository", match=r"a\.py has changes that are not yours")
    commit(repository)
    assert_passed(extension.call("write_file", {"path": "b.py", "content": ""}))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": "b.py", "content": ""}),
        ("patch", {"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: b.py\n"}),
        ("terminal", {"command": "sed -i s/b/c/ b.py"}),
        ("terminal", {"command": "make"}),
        ("terminal", {"command": "git stash"}),
        ("execute_code", {"code": "open('b.py', 'w').write('')"}),
        ("mcp_files_write", {"path": "b.py"}),
    ],
)
def test_no_tool_writes_beside_others_changes(
    extension: LoadedExtension, repository: Path, tool: str, args: dict[str, Any]
) -> None:
    """Untracked files, changes and deletions of others; reading goes on."""
    assert_passed(extension.call(tool, args, session_id="clean"))
    (repository / "notes.txt").write_text("the user's\n")
    assert_blocked(extension.call(tool, args), by="dirty_repository", match=r"notes\.txt")
    (repository / "notes.txt").unlink()
    (repository / "a.py").unlink()
    assert_blocked(extension.call(tool, args), match=r"a\.py")
    assert_passed(extension.call("read_file", {"path": "b.py"}))
    assert_passed(extension.call("terminal", {"command": "git diff"}))


def test_another_session_does_not_own_what_this_one_wrote(
    extension: LoadedExtension, repository: Path
) -> None:
    """A subagent, which has the conversation, does."""
    with extension.turn("one") as turn:
        write(turn, repository / "a.py", "1\n")
    args = {"path": "b.py", "content": ""}
    assert_blocked(extension.call("write_file", args, session_id="two"), match=r"a\.py")
    child = {"session_id": "child", "conversation_id": "one", "is_subagent": True}
    assert_passed(extension.call("write_file", args, **child))


def test_calls_that_run_at_once_do_not_stop_each_other(
    extension: LoadedExtension, repository: Path
) -> None:
    """What a running call said that it writes is the agent's, and nothing beside it."""
    with extension.turn() as turn:
        first = {"path": "a.py", "content": "1\n"}
        assert_passed(turn.call("write_file", first, tool_call_id="first"))
        (repository / "a.py").write_text("1\n")
        (repository / "b.py").write_text("the user's\n")
        outcome = turn.call("write_file", {"path": "c.py", "content": ""})
        assert_blocked(outcome, match=r"b\.py")
        git(repository, "checkout", "b.py")
        assert_passed(turn.call("write_file", {"path": "c.py", "content": ""}))
        (repository / "b.py").write_text("the user's\n")
        turn.result("write_file", first, "ok", tool_call_id="first")
    assert_blocked(extension.call("terminal", {"command": "make"}), match=r"b\.py")
    git(repository, "checkout", "b.py")
    assert_passed(extension.call("terminal", {"command": "make"}))


def test_the_repository_is_the_one_that_is_written_to(
    extension: LoadedExtension, tmp_path: Path, repository: Path
) -> None:
    """Through a link too; outside of any repository nothing is judged."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x.txt").write_text("the user's\n")
    (repository / "link").symlink_to(other)
    commit(repository)
    outcome = extension.call("write_file", {"path": "link/y.txt", "content": ""})
    assert_blocked(outcome, match=r"other/x\.txt")
    assert_blocked(extension.call("terminal", {"command": f"cd {other} && make"}))
    assert_passed(extension.call("write_file", {"path": "a.py", "content": ""}))
    assert_passed(extension.call("write_file", {"path": str(tmp_path / "z"), "content": ""}))


def test_where_git_does_not_answer_nothing_is_written(
    extension: LoadedExtension, repository: Path
) -> None:
    """A guard that fails blocks."""
    (repository / ".git" / "HEAD").write_text("nonsense")
    with extension.expect_failure("git"):
        assert extension.call("write_file", {"path": "a.py", "content": ""}).blocked
