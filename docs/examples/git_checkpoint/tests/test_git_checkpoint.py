"""A checkpoint holds all, costs the user nothing, and there is one for each turn that writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes_ext.testing import LoadedExtension, LoadExtension, assert_passed

EXTENSION = Path(__file__).parents[1]
WRITE = ("write_file", {"path": "a.txt", "content": "by the agent\n"})
READ = ("read_file", {"path": "a.txt"})


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("*.log\n")
    (root / "a.txt").write_text("1\n")
    return root


def loaded(load_extension: LoadExtension, repository: Path, keep: int = 50) -> LoadedExtension:
    return load_extension(EXTENSION, config={"keep": keep}, project_root=repository)


def test_it_holds_every_file_and_changes_nothing(
    load_extension: LoadExtension, repository: Path
) -> None:
    """Staged, changed, untracked and deleted; index, branch, stash and files are as before."""
    (repository / "gone.txt").write_text("x")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "x")
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")
    (repository / "a.txt").write_text("2\n")
    (repository / "new.txt").write_text("new\n")
    (repository / "x.log").write_text("ignored")
    (repository / "gone.txt").unlink()
    hook = repository / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    shown = [("status", "--porcelain"), ("for-each-ref", "refs/heads"), ("stash", "list")]
    before = [git(repository, *each) for each in shown]
    extension = loaded(load_extension, repository)
    assert_passed(extension.call(*WRITE))
    assert [git(repository, *each) for each in shown] == before
    (ref,) = extension.command("checkpoints").split()
    assert git(repository, "ls-tree", "-r", "--name-only", ref).split() == [
        ".gitignore", "a.txt", "new.txt", "staged.txt",
    ]  # fmt: skip
    assert git(repository, "show", f"{ref}:a.txt") == "2\n"
    (repository / "a.txt").write_text("by the agent\n")
    git(repository, "restore", f"--source={ref}", "a.txt")
    assert (repository / "a.txt").read_text() == "2\n"


def test_one_for_each_turn_that_writes(load_extension: LoadExtension, repository: Path) -> None:
    """Before the first commit too; parallel calls share one, and only the newest are kept."""
    extension = loaded(load_extension, repository, keep=2)
    assert extension.command("checkpoints") == "There are none."
    for number in range(3):
        (repository / "a.txt").write_text(f"{number}\n")
        with extension.turn() as turn:
            assert_passed(turn.call(*READ))
            for outcome in turn.parallel([WRITE, ("terminal", {"command": "make"}), WRITE]):
                assert_passed(outcome)
    refs = extension.command("checkpoints").split()
    assert [git(repository, "show", f"{ref}:a.txt") for ref in refs] == ["2\n", "1\n"]
    assert_passed(extension.call(*READ))
    assert extension.command("checkpoints").split() == refs


def test_without_a_checkpoint_nothing_is_written(
    load_extension: LoadExtension, repository: Path
) -> None:
    """Where there is no repository there is none to make."""
    extension = loaded(load_extension, repository)
    (repository / ".git" / "HEAD").write_text("nonsense")
    with extension.expect_failure("git"):
        assert extension.call(*WRITE).blocked
    bare = repository.parent / "bare"
    bare.mkdir()
    assert_passed(extension.call(*WRITE, project_root=bare, cwd=bare))
