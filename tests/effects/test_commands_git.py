"""What git writes: the repository, the work tree, and what its settings make it run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of


def _repository(folder: Path) -> Machine:
    for name in (".git/hooks", ".git/objects", ".git/refs", "d"):
        (folder / "w" / name).mkdir(parents=True)
    (folder / "w/.git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / "w/.git/config").write_text("[core]\n\tbare = false\n")
    (folder / "w/.git/hooks/pre-commit.sample").touch()
    (folder / "w/a.txt").touch()
    return Machine(cwd=folder / "w/d", homes=(str(folder / "h"),))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A directory below a work tree, which nobody changes."""
    return _repository(tmp_path_factory.mktemp("git"))


@pytest.fixture
def own(tmp_path: Path) -> Machine:
    """One that a test may change."""
    return _repository(tmp_path)


def _effects(command: str, machine: Machine) -> Effects:
    return effects_of(ToolCall("terminal", {"command": command}), machine=machine)


def _trees(effects: Effects, machine: Machine) -> set[str]:
    return {os.path.relpath(change.path, machine.cwd) for change in effects.changes}


@pytest.mark.parametrize(
    ("command", "trees"),
    [
        ("git add -A", "../.git"),
        ("git commit -qm x", "../.git"),
        ("git branch new", "../.git"),
        ("git branch -D old", "../.git"),
        ("git tag -am x v1", "../.git"),
        ("git fetch -q --all", "../.git"),
        ("git reset --soft HEAD~1", "../.git"),
        ("git restore --staged x", "../.git"),
        ("git rm -r --cached x", "../.git"),
        ("git checkout -b new", "../.git"),
        ("git switch -c new", "../.git"),
        ("git stash drop", "../.git"),
        ("git remote add o url", "../.git"),
        ("git apply --cached x.patch", "../.git"),
        ("git checkout main", "../.git .."),
        ("git checkout -b new main", "../.git .."),
        ("git reset --hard", "../.git .."),
        ("git stash", "../.git .."),
        ("git stash pop", "../.git .."),
        ("git pull -q --rebase", "../.git .."),
        ("git merge side", "../.git .."),
        ("git apply x.patch", "../.git .."),
        ("git apply --directory=n x.patch", "../.git .. ../n"),
        ("git checkout -- x y", "../.git x y"),
        ("git checkout main -- '*.py'", "../.git .."),
        ("git restore x", "../.git x"),
        ("git restore -s main -SW x", "../.git x"),
        ("git rm -q e/x", "../.git e/x e"),
        ("git mv x y", "../.git x y"),
        ("git -C .. mv a.txt d", "../.git ../a.txt a.txt"),
        ("git clean -fd", "."),
        ("git clean -f x", "x"),
        ("git config user.name x", "../.git/config ../.git/config.worktree"),
        ("git config --global user.name x", "../../h/.gitconfig ../../h/.config/git/config"),
        ("git config -f x user.name y", "x"),
        ("git init n", "n n/.git"),
        ("git clone https://example.com/n.git", "n"),
        ("git clone -q --depth 1 git@example.com:a/b m", "m"),
        ("git archive -o x.tar HEAD", "x.tar"),
        ("git format-patch -o n -1", "n"),
        ("git diff --output=x", "x"),
        ("git worktree add ../../n main", "../.git ../../n"),
    ],
)
def test_what_git_writes(machine: Machine, command: str, trees: str) -> None:
    """Below a work tree, its root and its repository are found and told apart."""
    effects = _effects(command, machine)
    assert _trees(effects, machine) == set(trees.split())
    assert effects.exact, effects.unknown


@pytest.mark.parametrize(
    "command",
    [
        "git status -sb",
        "git log -p --stat -S x -- .",
        "git diff HEAD~1 -- a.txt",
        "git show HEAD:a.txt",
        "git branch -vv --contains main",
        "git branch --merged main",
        "git tag -l 'v*'",
        "git tag -n3",
        "git stash list",
        "git stash show -p stash@{0}",
        "git config user.name",
        "git config --get-regexp 'alias.*'",
        "git config list",
        "git remote -v",
        "git reflog -5",
        "git grep -n x",
        "git ls-files -o",
        "git worktree list",
        "git submodule status",
        "git clean -nd",
        "git apply --check x.patch",
        "git format-patch --stdout -1",
        "git archive HEAD",
        "git blame -L 1,2 a.txt",
    ],
)
def test_what_git_only_reads(machine: Machine, command: str) -> None:
    """These change nothing, and read the repository."""
    effects = _effects(command, machine)
    assert not effects.may_write, (effects.unknown, effects.changes)
    assert machine.cwd is not None
    assert machine.cwd.parent in effects.reads


@pytest.mark.parametrize(
    "setting",
    [
        "[core]\n\tfsmonitor = ./x",
        "[core] fsMonitor=./x",
        "[CORE]\n  pager = ./x",
        "[pager]\n\tlog = ./x",
        '[diff "x"]\n\ttextconv = ./x',
        "[diff]\n\texternal = ./x",
        '[filter "x"]\n\tclean = ./x',
        "[include]\n\tpath = ../x",
        '[includeIf "gitdir:/"]\n\tpath = ../x',
        "[core]\n\tworktree = /x",
        "[core]\n\tsshCommand = ./x",
        '[remote "o"]\n\tuploadpack = ./x',
    ],
)
def test_settings_make_git_run_other_programs(own: Machine, setting: str) -> None:
    """Whoever may write into a repository could run something by `git status`."""
    assert own.cwd is not None
    assert _effects("git status", own).exact
    with (own.cwd.parent / ".git/config").open("a") as file:
        file.write(f"{setting}\n")
    assert not _effects("git status", own).exact
    assert not _effects(f"cd / && git -C {own.cwd} log", own).exact


@pytest.mark.parametrize(
    "setting",
    [
        "[core]\n\tfsmonitor = true",
        "[core]\n\tpager = cat",
        '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process',
        '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main',
        "[user]\n\tname = x",
    ],
)
def test_usual_settings_run_nothing(own: Machine, setting: str) -> None:
    """These stand in many repositories."""
    assert own.cwd is not None
    with (own.cwd.parent / ".git/config").open("a") as file:
        file.write(f"{setting}\n")
    assert _effects("git status", own).exact


def test_hooks_run_when_git_writes(own: Machine) -> None:
    """A hook may do anything; samples do nothing, and most of them wait for a change."""
    assert own.cwd is not None
    hooks = own.cwd.parent / ".git/hooks"
    assert _effects("git commit -m x", own).exact
    (hooks / "pre-commit").touch()
    assert not _effects("git commit -m x", own).exact
    assert _effects("git status", own).exact
    (hooks / "post-index-change").touch()
    assert not _effects("git status", own).exact


def test_a_repository_that_the_same_call_changes(own: Machine) -> None:
    """What a call does to the settings counts for the git behind it."""
    assert _effects("git add . && git status", own).exact
    assert not _effects("echo x >> ../.git/config; git status", own).exact
    assert not _effects("mkdir y; cp -rT y ..; git status", own).exact
    assert not _effects("git config core.fsmonitor ./x; git status", own).exact


def test_a_bare_repository_is_one_too(own: Machine) -> None:
    """A directory with `HEAD`, `objects` and `refs` has settings that count."""
    assert own.cwd is not None
    bare = own.cwd / "b.git"
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").touch()
    (bare / "config").write_text("[core]\n\tfsmonitor = ./x\n")
    assert not _effects("cd b.git && git log", own).exact


def test_a_work_tree_elsewhere_leads_to_its_repository(own: Machine) -> None:
    """`.git` may be a file that names the repository, with a common one behind it."""
    assert own.cwd is not None
    tree, private = own.cwd.parent.parent / "t", own.cwd.parent / ".git/worktrees/t"
    tree.mkdir()
    private.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {private}\n")
    (private / "commondir").write_text("../..\n")
    there = Machine(cwd=tree, homes=own.homes)
    assert _trees(_effects("git add .", there), there) == {"../w/.git", "../w/.git/worktrees/t"}


def test_pushing_may_write_on_this_machine(own: Machine) -> None:
    """A remote may be a path; one that is far away is not."""
    assert own.cwd is not None
    assert _effects("git push origin main", own).exact
    assert not _effects("git push ../other main", own).exact
    with (own.cwd.parent / ".git/config").open("a") as file:
        file.write('[remote "origin"]\n\turl = https://example.com/x.git\n')
    assert _effects("git push origin main", own).exact
    with (own.cwd.parent / ".git/config").open("a") as file:
        file.write("\turl = ../other\n")
    assert not _effects("git push", own).exact
