"""Several trusted projects from the working directory upwards, and linked work trees."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.projects import GOOD, GUARD, Place

from hermes_ext import Runtime
from hermes_ext.doctor import examine
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding import discovery
from hermes_ext.loading.imports.importing import PREFIX
from hermes_ext.loading.inventory import inventory
from hermes_ext.records import ExtensionRecord, Status

TELLS = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call"{how})
def check(tool_args):
    return HookResult.block({says!r}) if tool_args.get("stop") in (None, {says!r}) else None
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing bundled, a home elsewhere, and `sys.modules` as before."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(discovery, "bundled_dir", lambda: tmp_path / "bundled")
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    monkeypatch.delenv("HERMES_EXT_TRUST", raising=False)
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith((PREFIX, "agent")):
            del sys.modules[name]


@pytest.fixture
def outer(tmp_path: Path) -> Place:
    """A trusted project with the guard `outer`, and a folder `sub` in it."""
    place = Place(tmp_path.resolve(), "w")
    place.add("outer", rule("outer"))
    place.trust()
    (place.root / "sub").mkdir()
    return place


def rule(says: str, *, guard: bool = True) -> str:
    """An extension that blocks with these words what asks for all, or for them."""
    return TELLS.format(how=", guard=True" if guard else "", says=says)


def inside(place: Place, name: str) -> Place:
    """A project further down, of the same home."""
    return Place(place.root, name, place.home)


def says(place: Place, cwd: Path, **args: str) -> str | None:
    """What a new process says of a call in a directory; None where it may run."""
    return says_now(Runtime.from_config(home=place.home, cwd=cwd), cwd, **args)


def says_now(runtime: Runtime, cwd: Path, **args: str) -> str | None:
    """The same of a process that runs."""
    with runtime.turn(session_id="s", cwd=cwd) as turn:
        outcome = turn.intercept_tool_call("jot", dict(args))
    return outcome.message if outcome.blocked else None


def notices(place: Place, cwd: Path) -> tuple[str, ...]:
    return Runtime.from_config(home=place.home, cwd=cwd).notices


def rows(place: Place, cwd: Path) -> dict[tuple[str, Path | None], ExtensionRecord]:
    """The records of the inventory, which are those of a load too, by name and place."""
    seen = inventory(place.home, cwd).records
    loaded = Runtime.from_config(home=place.home, cwd=cwd).records
    told = {(e.name, e.path): (e.status, e.reason) for e in loaded if e.status is Status.SHADOWED}
    assert told == {
        (e.name, e.path): (e.status, e.reason) for e in seen if e.status is Status.SHADOWED
    }
    return {(each.name, each.path): each for each in loaded}


def git(folder: Path, *argv: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *argv], cwd=folder, check=True, capture_output=True)


BELOW: dict[str, Callable[[Path], object]] = {
    "git init": lambda sub: (sub / ".git").mkdir(),
    "an empty file .git": lambda sub: (sub / ".git").touch(),
    "a dangling link .git": lambda sub: (sub / ".git").symlink_to("nowhere"),
    "a pipe .git": lambda sub: os.mkfifo(sub / ".git"),
    "the repository's own .git moves": lambda sub: (sub.parent / ".git").rename(sub.parent / "x"),
    "the repository's own .git moves down": lambda sub: (sub.parent / ".git").rename(sub / ".git"),
    "a submodule": lambda sub: (sub / ".git").write_text("gitdir: ../.git/modules/sub\n"),
    "a .git that names itself": lambda sub: (sub / ".git").write_text("gitdir: .\n"),
    "a .git that names no path": lambda sub: (sub / ".git").write_bytes(b"gitdir: \0\xff\n"),
    "a long .git": lambda sub: (sub / ".git").write_text("gitdir: " + "x/" * 9_000),
    "a vendored clone with rules": lambda sub: (
        (sub / ".git").mkdir(),
        (sub / ".hermes" / "extensions").mkdir(parents=True),
        (sub / ".hermes" / "extensions" / "outer.py").write_text(GOOD),
    ),
    "settings": lambda sub: (
        (sub / ".hermes").mkdir(),
        (sub / ".hermes" / "extensions.yaml").write_text("outer: {}\n"),
    ),
    "a file .hermes": lambda sub: (sub / ".hermes").touch(),
    "a link .hermes": lambda sub: (sub / ".hermes").symlink_to("/"),
    "extensions that are a link to the outer ones": lambda sub: (
        (sub / ".hermes").mkdir(),
        (sub / ".hermes" / "extensions").symlink_to("../../.hermes/extensions"),
    ),
}


@pytest.mark.parametrize("case", BELOW)
def test_what_appears_below_takes_no_rule_away(outer: Place, case: str) -> None:
    """Neither of a process that runs, nor of one that starts."""
    sub = outer.root / "sub"
    runtime = Runtime.from_config(home=outer.home, cwd=sub)
    BELOW[case](sub)
    assert says_now(runtime, sub) == "outer"
    assert says(outer, sub) == "outer"
    assert inventory(outer.home, sub).projects.nearest.project.root == outer.root


def test_without_a_repository_a_trusted_project_applies_below_it(outer: Place) -> None:
    """The way that `mv .git` leaves it; what is not trusted is still not looked for there."""
    shutil.rmtree(outer.root / ".git")
    assert says(outer, outer.root / "sub") == "outer"
    outer.untrust()
    assert says(outer, outer.root / "sub") is None
    assert notices(outer, outer.root / "sub") == ()


def test_a_trusted_project_that_changed_is_told_from_below_a_repository(outer: Place) -> None:
    """One line says what is not in force and how to trust it again."""
    (outer.root / "sub" / ".git").mkdir()
    outer.add("outer", GOOD)
    (line,) = notices(outer, outer.root / "sub")
    assert "changed since you trusted them: extensions/outer/__init__.py" in line
    assert f"trust {outer.root}" in line


def test_rules_that_are_gone_are_told(outer: Place) -> None:
    """Not passed over in silence: a person has trusted them, and can say that they are to go."""
    shutil.rmtree(outer.hermes)
    (line,) = notices(outer, outer.root / "sub")
    assert "are no longer there, so they are not loaded" in line
    assert f"untrust {outer.root}" in line
    outer.untrust()
    assert notices(outer, outer.root / "sub") == ()


def test_a_damaged_list_is_told_from_below_a_repository(outer: Place) -> None:
    (outer.root / "sub" / ".git").mkdir()
    (outer.home / "extensions-trust" / "trusted.json").write_text("{")
    (line,) = notices(outer, outer.root / "sub")
    assert "the list of trusted projects is damaged" in line


def test_a_pinned_project_applies_below_a_repository(
    outer: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest says nothing of where it is; what is not pinned there is not told."""
    digest = outer.trust()
    outer.untrust()
    (outer.root / "sub" / ".git").mkdir()
    monkeypatch.setenv("HERMES_EXT_TRUST", digest)
    assert says(outer, outer.root / "sub") == "outer"
    monkeypatch.setenv("HERMES_EXT_TRUST", "0" * 64)
    assert says(outer, outer.root / "sub") is None
    assert notices(outer, outer.root / "sub") == ()


# -- several --------------------------------------------------------------------------------------


def test_all_trusted_projects_apply(outer: Place) -> None:
    """The outer first in the records; the nearest is the one that `list` names as the project."""
    inner = inside(outer, "sub/inner")
    inner.add("inner", rule("inner"))
    inner.trust()
    for words in ("outer", "inner"):
        assert says(outer, inner.root, stop=words) == words
    assert says(outer, inner.root.parent, stop="inner") is None
    seen = inventory(outer.home, inner.root)
    assert [each.project.root for each in seen.projects.trusted] == [outer.root, inner.root]
    assert seen.projects.nearest.project.root == inner.root
    assert notices(outer, inner.root) == ()


def test_a_nearer_one_does_not_replace_an_outer_guard(outer: Place) -> None:
    inner = inside(outer, "sub")
    inner.add("Outer", rule("inner", guard=False))
    inner.trust()
    assert says(outer, inner.root) == "outer"
    row = rows(outer, inner.root)["Outer", inner.hermes / "extensions" / "Outer"]
    assert row.status is Status.SHADOWED
    assert "the project extension 'outer'" in row.reason
    assert "because it is a guard" in row.reason
    assert "extensions.overridable" in row.reason


@pytest.mark.parametrize(
    ("config", "guard", "expected"),
    [
        ("  overridable: [outer]\n", True, "inner"),
        ("", False, "inner"),
        ("  required: [outer]\n", False, "outer"),
    ],
    ids=["overridable", "no guard", "required"],
)
def test_a_nearer_one_replaces_an_outer_one_by_the_same_rule(
    outer: Place, config: str, guard: bool, expected: str
) -> None:
    outer.config(config)
    outer.add("outer", rule("outer", guard=guard))
    outer.trust()
    inner = inside(outer, "sub")
    inner.add("outer", rule("inner", guard=guard))
    inner.trust()
    assert says(outer, inner.root) == expected
    assert says(outer, outer.root) == "outer"
    rows(outer, inner.root)


def test_a_nearer_one_that_fails_leaves_the_outer_in_force(outer: Place) -> None:
    outer.config("  overridable: [outer]\n")
    inner = inside(outer, "sub")
    inner.add("outer", "1 / 0\n")
    inner.trust()
    assert says(outer, inner.root) == "outer"


def test_three_of_one_name_end_as_three_records(outer: Place) -> None:
    """The global one, the outer project's and the inner's: one is in force, two say why not."""
    outer.add("same", rule("global", guard=False), to_home=True)
    outer.add("same", rule("first", guard=False))
    outer.trust()
    inner = inside(outer, "sub")
    inner.add("same", rule("second", guard=False))
    inner.trust()
    assert says(outer, inner.root, stop="second") == "second"
    assert says(outer, inner.root, stop="first") is None
    found = [each for (name, _), each in rows(outer, inner.root).items() if name == "same"]
    assert sorted(each.status for each in found) == ["enabled", "shadowed", "shadowed"]


def test_settings_of_several_projects(outer: Place) -> None:
    """The outer first, the nearer over them, of a guard only what `project_may_set` opens."""
    tells = "from hermes_ext import HookResult, register_hook\n" + (
        '@register_hook("intercept_tool_call", guard=True)\n'
        "def check(config):\n"
        "    return HookResult.block(' '.join(str(config.get(k)) for k in 'abc'))\n"
    )
    outer.config("  project_may_set: [mine.a, mine.b]\n  mine: {a: 0, b: 0, c: 0}\n")
    outer.add("mine", tells, to_home=True)
    shutil.rmtree(outer.hermes / "extensions")
    outer.settings("mine: {a: 1, b: 1, c: 1}\n")
    outer.trust()
    inner = inside(outer, "sub")
    inner.settings("mine: {b: 2, c: 2}\n")
    inner.trust()
    assert says(outer, outer.root) == "1 1 0"
    assert says(outer, inner.root) == "1 2 0"
    problems = [str(each) for each in inventory(outer.home, inner.root).problems]
    told = [str(e) for e in Runtime.from_config(home=outer.home, cwd=inner.root).problems]
    for place in (outer, inner):
        assert any(f"{place.hermes}/extensions.yaml:1: mine.c" in text for text in told)
    assert problems == []


def test_settings_of_a_nearer_project_for_an_outer_ones_own(outer: Place) -> None:
    """Its own project sets all of it; one further down what the user opens of a guard."""
    tells = "from hermes_ext import HookResult, register_hook\n" + (
        '@register_hook("intercept_tool_call", guard=True)\n'
        "def check(config):\n"
        "    return HookResult.block(f\"{config.get('a')} {config.get('b')}\")\n"
    )
    outer.config("  project_may_set: [theirs.b]\n")
    shutil.rmtree(outer.hermes / "extensions")
    outer.add("theirs", tells)
    outer.settings("theirs: {a: 1, b: 1}\n")
    outer.trust()
    inner = inside(outer, "sub")
    inner.settings("theirs: {a: 2, b: 2}\n")
    inner.trust()
    assert says(outer, inner.root) == "1 2"


def test_wrong_settings_of_one_project_leave_those_of_the_others(outer: Place) -> None:
    schema = '{"config": {"type": "object", "properties": {"n": {"type": "integer"}}}}'
    source = "from hermes_ext import HookResult, register_hook\n" + (
        '@register_hook("intercept_tool_call")\n'
        "def check(config):\n    return HookResult.block(str(config.get('n')))\n"
    )
    shutil.rmtree(outer.hermes / "extensions")
    outer.add("mine", {"__init__.py": source, "extension.yaml": schema}, to_home=True)
    outer.settings("mine: {n: many}\n")
    outer.trust()
    inner = inside(outer, "sub")
    inner.settings("mine: {n: 2}\n")
    inner.trust()
    assert says(outer, outer.root) == "None"
    assert says(outer, inner.root) == "2"


def test_an_inner_project_that_is_untrusted_again_leaves_the_outer(outer: Place) -> None:
    """Turn by turn, in one process, with the outer's modules loaded once."""
    inner = inside(outer, "sub")
    inner.add("inner", rule("inner"))
    runtime = Runtime.from_config(home=outer.home, cwd=outer.root)
    assert says_now(runtime, inner.root, stop="inner") is None
    inner.trust()
    assert says_now(runtime, inner.root, stop="inner") == "inner"
    assert says_now(runtime, inner.root, stop="outer") == "outer"
    inner.untrust()
    assert says_now(runtime, inner.root, stop="inner") is None
    outer.untrust()
    assert says_now(runtime, inner.root) is None
    loaded = [name for name in sys.modules if name.startswith(f"{PREFIX}.outer")]
    assert len(loaded) == 1


def test_doctor_knows_all_of_them(outer: Place) -> None:
    """A trusted one that changed is a finding, whatever lies in between."""
    (outer.root / "sub" / ".git").mkdir()
    assert "changed" not in {each.code for each in examine(outer.home, outer.root / "sub")}
    outer.add("outer", GOOD)
    found = {each.code: each for each in examine(outer.home, outer.root / "sub")}
    assert found["changed"].where == str(outer.hermes)


# -- linked work trees ----------------------------------------------------------------------------


@pytest.fixture
def main(outer: Place) -> Place:
    """A real repository with a trusted guard, whose `.hermes` git ignores."""
    shutil.rmtree(outer.root / ".git")
    git(outer.root, "init", "-q")
    (outer.root / ".gitignore").write_text(".hermes\n")
    git(outer.root, "add", ".gitignore")
    git(outer.root, "commit", "-qm", "one")
    return outer


def linked(main: Place, where: str = "../feature", *, commit: bool = False) -> Path:
    """A linked work tree; with `commit` it has the rules in it."""
    if commit:
        git(main.root, "add", "-f", ".hermes")
        git(main.root, "commit", "-qm", "rules")
    git(main.root, "worktree", "add", "-q", "--detach", where)
    made = (main.root / where).resolve()
    (made / "deep").mkdir()
    return made


@pytest.mark.parametrize("where", ["../feature", ".worktrees/hermes-1a2b"])
def test_a_linked_work_tree_without_rules_has_the_main_ones(main: Place, where: str) -> None:
    """Also from a folder in it, and from one that has a `.git` of its own."""
    tree = linked(main, where)
    (tree / "deep" / ".git").touch()
    for cwd in (tree, tree / "deep"):
        assert says(main, cwd) == "outer"
        assert notices(main, cwd) == ()


@pytest.mark.parametrize("where", ["../feature", ".worktrees/hermes-1a2b"])
def test_a_linked_work_tree_with_the_same_rules_uses_its_own(main: Place, where: str) -> None:
    """Nothing is to be trusted again, and what the rules keep is that of the main work tree."""
    tree = linked(main, where, commit=True)
    assert says(main, tree / "deep") == "outer"
    assert notices(main, tree) == ()
    runtime = Runtime.from_config(home=main.home, cwd=tree)
    (record,) = [each for each in runtime.records if each.loaded]
    assert record.path == tree / ".hermes" / "extensions" / "outer"
    there = Runtime.from_config(home=main.home, cwd=main.root)
    assert runtime.rules.whole_name("outer") == there.rules.whole_name("outer")
    assert runtime.data_dir("outer") == there.data_dir("outer")
    main.untrust()
    assert says_now(runtime, tree) is None


@pytest.mark.parametrize("where", ["../feature", ".worktrees/hermes-1a2b"])
def test_a_linked_work_tree_with_other_rules_has_the_main_ones(main: Place, where: str) -> None:
    """One line says that its own were not used, and how to trust them; then they are."""
    tree = linked(main, where, commit=True)
    own = tree / ".hermes" / "extensions" / "outer" / "__init__.py"
    own.write_text(rule("own"))
    assert says(main, tree) == "outer"
    (line,) = notices(main, tree)
    assert f"{tree}/.hermes are not loaded: outer" in line
    assert f"trust {tree}" in line
    assert f"The extensions of {main.root} stay in force there" in line


def test_a_linked_work_tree_that_is_trusted_itself_uses_its_own(main: Place) -> None:
    """Beside the main one instead of its rules, below it after them."""
    beside = linked(main, commit=True)
    below = linked(main, ".worktrees/x")
    for tree in (beside, below):
        own = Place(tree.parent, "made-by-this", main.home)
        own.root, own.hermes = tree, tree / ".hermes"
        shutil.rmtree(own.hermes / "extensions" / "outer")
        own.add("own", rule("own"))
        own.trust()
        assert says(main, tree, stop="own") == "own"
    assert says(main, beside, stop="outer") is None
    assert says(main, below, stop="outer") == "outer"


def test_a_project_in_a_folder_of_the_main_work_tree(main: Place) -> None:
    """Applies at the same place of the linked one."""
    part = inside(main, "packages/a")
    shutil.rmtree(part.root / ".git")
    part.add("part", rule("part"))
    part.trust()
    tree = linked(main)
    (tree / "packages" / "a" / "src").mkdir(parents=True)
    assert says(main, tree / "packages" / "a" / "src", stop="part") == "part"
    assert says(main, tree / "packages" / "a", stop="outer") == "outer"
    assert says(main, tree, stop="part") is None


def test_a_work_tree_whose_main_one_changed_its_rules(main: Place) -> None:
    """It has what was trusted; where that is nowhere any more, a line says so."""
    same, without = linked(main, commit=True), main.root.parent / "without"
    git(main.root, "worktree", "add", "-q", "--detach", str(without), "HEAD~1")
    main.add("outer", GOOD)
    assert says(main, same) == "outer"
    assert says(main, without) is None
    assert any("changed since you trusted" in line for line in notices(main, without))


@pytest.mark.parametrize("kind", ["--separate-git-dir", "submodule"])
def test_a_main_work_tree_whose_repository_is_elsewhere(outer: Place, kind: str) -> None:
    """There nothing but its own `.git` file tells which it is."""
    shutil.rmtree(outer.root / ".git")
    if kind == "submodule":
        top = outer.root.parent / "top"
        git(outer.root, "init", "-q")
        (outer.root / "x").touch()
        git(outer.root, "add", "x")
        git(outer.root, "commit", "-qm", "one")
        git(outer.root.parent, "init", "-q", str(top))
        git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../w", "sub")
        place = Place(top.parent, "made-by-this", outer.home)
        place.root, place.hermes = top / "sub", top / "sub" / ".hermes"
        place.add("outer", rule("outer"))
        place.trust()
    else:
        place = outer
        git(place.root, "init", "-q", "--separate-git-dir", str(outer.home.parent / "kept"))
        (place.root / "x").touch()
        git(place.root, "add", "x")
        git(place.root, "commit", "-qm", "one")
    tree = outer.root.parent / "feature"
    git(place.root, "worktree", "add", "-q", "--detach", str(tree))
    assert says(place, tree) == "outer"


HOSTILE = {
    "names nothing": "gitdir: {git}/worktrees/none\n",
    "names another's admin folder": "gitdir: {git}/worktrees/feature\n",
    "brings an admin folder": "gitdir: admin\n",
}


def lie(folder: Path, text: str, main: Place) -> None:
    """Have a folder say that it is a work tree of a repository that knows nothing of it."""
    (folder / ".git").write_text(text.format(git=main.root / ".git"))
    (folder / "admin").mkdir()
    (folder / "admin" / "commondir").write_text(str(main.root / ".git"))
    (folder / "admin" / "gitdir").write_text(str(folder / ".git"))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_git_file_that_lies_only_adds_rules(main: Place, case: str) -> None:
    """A trusted project that says that it is a work tree of another keeps the rules it has."""
    linked(main)
    own = Place(main.root, "packages/evil", main.home)
    own.add("own", rule("own"))
    own.trust()
    shutil.rmtree(own.root / ".git")
    lie(own.root, HOSTILE[case], main)
    for words in ("own", "outer"):
        assert says(main, own.root, stop=words) == words

    copy = main.root / "copy"
    shutil.copytree(main.hermes, copy / ".hermes")
    lie(copy, HOSTILE[case], main)
    assert says(main, copy) == "outer"
    (record,) = [e for e in Runtime.from_config(home=main.home, cwd=copy).records if e.loaded]
    assert record.path == main.hermes / "extensions" / "outer"


def test_a_work_tree_that_was_moved_keeps_the_rules(main: Place) -> None:
    """Its repository names another place, until `git worktree repair`."""
    tree = linked(main)
    moved = tree.rename(tree.with_name("moved"))
    assert says(main, moved) == "outer"


def test_a_folder_elsewhere_that_lies_gets_the_rules(main: Place, tmp_path: Path) -> None:
    """More rules than it would have, and its own are not trusted by what it says."""
    stranger = tmp_path.resolve() / "stranger"
    stranger.mkdir()
    lie(stranger, "gitdir: admin\n", main)
    assert says(main, stranger) == "outer"
    (stranger / ".hermes" / "extensions").mkdir(parents=True)
    (stranger / ".hermes" / "extensions" / "evil.py").write_text(rule("evil"))
    assert says(main, stranger, stop="evil") is None
    assert says(main, stranger) == "outer"


@pytest.mark.parametrize("what", ["link", "rules", "main work tree"])
def test_what_goes_while_a_process_runs(main: Place, what: str) -> None:
    """What was in force in a linked work tree stays, until the process ends."""
    tree = linked(main)
    runtime = Runtime.from_config(home=main.home, cwd=tree)
    assert says_now(runtime, tree) == "outer"
    if what == "link":
        (tree / ".git").write_text("")
    elif what == "rules":
        shutil.rmtree(main.hermes)
    else:
        main.root.rename(main.root.with_name("moved"))
    for _ in range(2):
        assert says_now(runtime, tree) == "outer"


# -- nothing below takes a rule away --------------------------------------------------------------

_FOLDERS = ("", "a", "a/b", "a/b/c")
_CHANGES = st.tuples(
    st.sampled_from(_FOLDERS),
    st.sampled_from(["git folder", "git file", "git lies", "no git", "untrusted", "rubbish"]),
)


def _change(root: Path, folder: str, what: str) -> None:
    place = root / folder
    dot = place / ".git"
    if dot.is_dir():
        shutil.rmtree(dot)
    dot.unlink(missing_ok=True)
    if what == "git folder":
        dot.mkdir()
    elif what == "git file":
        dot.touch()
    elif what == "git lies":
        dot.write_text(f"gitdir: {root}/.git/worktrees/x\n")
    elif what == "untrusted" and not (place / ".hermes").exists():
        (place / ".hermes" / "extensions").mkdir(parents=True)
        (place / ".hermes" / "extensions" / "rule-0.py").write_text(GOOD)
    elif what == "rubbish":
        (place / ".hermes").mkdir(exist_ok=True)
        (place / ".hermes" / "note.txt").touch()


@given(
    trusted=st.sets(st.sampled_from(_FOLDERS), min_size=1),
    changes=st.lists(_CHANGES, max_size=6),
    cwd=st.sampled_from(_FOLDERS),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_trusted_projects_above_apply_whatever_else_there_is(
    tmp_path_factory: pytest.TempPathFactory,
    trusted: set[str],
    changes: list[tuple[str, str]],
    cwd: str,
) -> None:
    """The model: of what is trusted, all at or above the directory, the outermost first."""
    base = tmp_path_factory.mktemp("nested").resolve()
    root = base / "w"
    (root / "a/b/c").mkdir(parents=True)
    home = base / "home"
    home.mkdir()
    for folder in sorted(trusted):
        place = Place(base / "made", f"by-{len(folder)}", home)
        place.root, place.hermes = root / folder, root / folder / ".hermes"
        place.add(f"rule-{len(folder)}", GUARD)
        place.trust()
    for folder, what in changes:
        _change(root, folder, what)
    expected = [
        root / each
        for each in _FOLDERS
        if each in trusted and f"{cwd}/".startswith(f"{each}/" if each else "")
    ]
    seen = inventory(home, root / cwd)
    assert [each.project.root for each in seen.projects.trusted] == expected
    enabled = {e.name for e in seen.records if e.status is Status.ENABLED}
    assert enabled == {f"rule-{len(str(each.relative_to(root)).strip('.'))}" for each in expected}
    assert all(e.source is Source.PROJECT for e in seen.records)
