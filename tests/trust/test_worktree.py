"""The main work tree of a linked one, read from files that anybody may have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext.trust.worktree import Link, link_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """`feature`, a linked work tree of `main`, as git makes them."""
    base = tmp_path.resolve()
    admin = base / "main" / ".git" / "worktrees" / "feature"
    admin.mkdir(parents=True)
    (base / "feature").mkdir()
    (base / "feature" / ".git").write_text(f"gitdir: {admin}\n")
    (admin / "commondir").write_text("../..\n")
    (admin / "gitdir").write_text(f"{base / 'feature' / '.git'}\n")
    return base / "feature"


def admin_of(tree: Path) -> Path:
    return tree.parent / "main" / ".git" / "worktrees" / tree.name


def test_a_linked_work_tree(tree: Path) -> None:
    """Its main one, and that the repository confirms it."""
    assert link_of(tree) == Link(tree.parent / "main", confirmed=True)


def test_relative_paths(tree: Path) -> None:
    """As `worktree.useRelativePaths` writes them."""
    (tree / ".git").write_text("gitdir: ../main/.git/worktrees/feature\n")
    (admin_of(tree) / "gitdir").write_text("../../../../feature/.git\n")
    assert link_of(tree) == Link(tree.parent / "main", confirmed=True)


def test_the_main_work_tree_is_none(tree: Path) -> None:
    assert link_of(tree.parent / "main") is None


def test_a_repository_elsewhere_belongs_to_the_root_that_names_it(tree: Path) -> None:
    """Where the shared folder does not lie in the main work tree."""
    main = tree.parent / "main"
    (main / ".git").rename(tree.parent / "kept")
    (main / ".git").write_text("gitdir: ../kept\n")
    (tree / ".git").write_text("gitdir: ../kept/worktrees/feature\n")
    assert link_of(tree) is None
    assert link_of(tree, [tree, tree.parent, main]) == Link(main, confirmed=True)


UNCONFIRMED: dict[str, Callable[[Path], object]] = {
    "moved": lambda admin: (admin / "gitdir").write_text("/elsewhere/.git\n"),
    "nothing": lambda admin: (admin / "gitdir").unlink(),
    "a folder": lambda admin: ((admin / "gitdir").unlink(), (admin / "gitdir").mkdir()),
    "a pipe": lambda admin: ((admin / "gitdir").unlink(), os.mkfifo(admin / "gitdir")),
}


@pytest.mark.parametrize("case", UNCONFIRMED)
def test_a_link_that_the_repository_does_not_confirm(tree: Path, case: str) -> None:
    """Still leads to the main work tree."""
    UNCONFIRMED[case](admin_of(tree))
    assert link_of(tree) == Link(tree.parent / "main", confirmed=False)


def again(file: Path, content: bytes | None = None) -> None:
    file.unlink()
    if content is not None:
        file.write_bytes(content)


NO_LINK: dict[str, Callable[[Path], object]] = {
    "no .git": lambda tree: again(tree / ".git"),
    "an empty .git": lambda tree: again(tree / ".git", b""),
    "other words": lambda tree: again(tree / ".git", b"ref: refs/heads/main\n"),
    "no path": lambda tree: again(tree / ".git", b"gitdir: \n"),
    "a NUL": lambda tree: again(tree / ".git", b"gitdir: a\0b\n"),
    "two lines": lambda tree: again(tree / ".git", b"gitdir: a\nb\n"),
    "too long": lambda tree: again(
        tree / ".git", f"gitdir: {admin_of(tree)}{'/' * 10_000}\n".encode()
    ),
    "a pipe .git": lambda tree: (again(tree / ".git"), os.mkfifo(tree / ".git")),
    "no commondir, as in a submodule": lambda tree: again(admin_of(tree) / "commondir"),
    "an empty commondir": lambda tree: again(admin_of(tree) / "commondir", b"\n"),
    "a pipe for commondir": lambda tree: (
        again(admin_of(tree) / "commondir"),
        os.mkfifo(admin_of(tree) / "commondir"),
    ),
    "a commondir without an end": lambda tree: (
        again(admin_of(tree) / "commondir"),
        (admin_of(tree) / "commondir").symlink_to("/dev/zero"),
    ),
    "a chain of links": lambda tree: (
        again(tree / ".git", b"gitdir: loop\n"),
        (tree / "loop").symlink_to("loop"),
    ),
}


@pytest.mark.parametrize("case", NO_LINK)
def test_what_is_no_link(tree: Path, case: str) -> None:
    """Nothing is waited for, and nothing is raised."""
    NO_LINK[case](tree)
    assert link_of(tree, [tree.parent / "main"]) is None
