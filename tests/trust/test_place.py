"""Where a project is looked for, and which places are never used."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext.trust import place
from hermes_ext.trust.place import Project, find_project, project_of, repository_root

AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)


@pytest.fixture(autouse=True)
def _somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose home is elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def brings(folder: Path, *, git: bool = False, settings: bool = False) -> Path:
    """Makes a folder that has extensions, or only settings of extensions."""
    made = folder / ".hermes" / "extensions"
    (made.parent if settings else made).mkdir(parents=True)
    if not settings:
        (made / "a.py").touch()
    else:
        (folder / ".hermes" / "extensions.yaml").touch()
    if git:
        (folder / ".git").mkdir()
    return folder


def found(directory: Path, home: Path | None = None, global_dir: Path | None = None) -> Path | None:
    """The root of the project there, which is one that may be used."""
    home = home or directory / "no-home"
    project = find_project(directory, home=home, global_dir=global_dir or home / "extensions")
    assert project is None or project.refused is None
    return None if project is None else project.root


def refused(directory: Path) -> str:
    """Why the project there is not used."""
    project = find_project(directory, home=directory / "h", global_dir=directory / "g")
    assert project is not None
    assert project.refused is not None
    return project.refused


def below(folder: Path) -> Path:
    deep = folder / "src" / "deep"
    deep.mkdir(parents=True, exist_ok=True)
    return deep


def chain(link: Path, end: str = "end") -> None:
    """Makes a link that leads through 1,500 others."""
    link.parent.mkdir(parents=True, exist_ok=True)
    for number in range(1500):
        (link.parent / f"x{number}").symlink_to(f"x{number + 1}")
    (link.parent / "x1500").symlink_to(end)
    link.symlink_to("x0")


@pytest.mark.parametrize("name", [".hermes", ".hermes/extensions", ".hermes/extensions.yaml"])
@pytest.mark.parametrize("end", ["end", "nowhere/../x0"])
def test_a_chain_of_links_is_refused(base, name, end):
    """No more links are followed than the system follows, and it is told."""
    (base / "repo" / ".git").mkdir(parents=True)
    chain(base / "repo" / name, end)
    if name == ".hermes":  # nothing can be seen below it
        assert refused(base / "repo").endswith("Too many levels of symbolic links")
        return
    assert f"{name} cannot be looked at: Too many levels" in refused(base / "repo")


def test_a_directory_behind_a_chain_of_links_has_no_project(base):
    """Nor does what lies behind links past a folder that is not there."""
    brings(base / "end")
    chain(base / "link")
    (base / "past").symlink_to("nowhere/../x0")
    assert found(base / "link") is None
    # From 3.13 on Python follows any number of links past what is not there.
    assert found(base / "past") in (None, base / "end")
    assert found(base / "x1490") == base / "end"


def test_the_nearest_one_up_to_the_root_of_the_repository(base):
    """A nested project comes before the one that it is in; a repository above is another one."""
    outer = brings(base / "outer", git=True)
    inner = brings(outer / "packages" / "inner")
    other = outer / "vendor"
    (other / ".git").mkdir(parents=True)

    assert found(below(outer)) == outer
    assert found(below(inner)) == inner
    assert found(below(other)) is None


@pytest.mark.parametrize("git", ["gitdir: ../.git/modules/x\n", "gitdir: /elsewhere/worktrees/x\n"])
def test_a_submodule_and_a_worktree_are_repositories(base, git):
    """There `.git` is a file."""
    brings(base / "outer", git=True)
    inner = base / "outer" / "inner"
    inner.mkdir()
    (inner / ".git").write_text(git)

    assert found(below(inner)) is None
    assert repository_root(below(inner)) == inner


def test_settings_alone_make_a_project(base):
    """`.hermes/extensions.yaml` is enough."""
    root = brings(base / "repo", git=True, settings=True)
    assert found(below(root)) == root


def test_without_a_repository_only_the_directory_itself(base):
    """Nothing above it: `/tmp/.hermes` is not for all that works below `/tmp`."""
    root = brings(base / "plain")
    assert found(root) == root
    assert found(below(root)) is None


def test_other_things_in_a_hermes_folder_make_none(base):
    """Plans and notes are no extensions."""
    (base / "repo" / ".hermes" / "plans").mkdir(parents=True)
    assert found(base / "repo") is None


def test_a_directory_reached_by_a_link_is_where_it_really_is(base):
    """The path of a project is its real one."""
    root = brings(base / "repo", git=True)
    (base / "link").symlink_to(below(root))
    assert found(base / "link") == root


class TestNobodysPlaces:
    """`/`, home folders, the Hermes home and the global directory are no projects."""

    def test_the_root(self):
        assert found(Path("/")) is None
        assert repository_root(Path("/")) is None

    @pytest.mark.parametrize("how", ["itself", "link"])
    def test_the_home_folder(self, base, monkeypatch, how):
        home = brings(base / "me", git=True)
        (base / "link").symlink_to(home)
        monkeypatch.setenv("HOME", str(home if how == "itself" else base / "link"))

        assert found(home) is None
        assert found(below(home)) is None
        assert repository_root(below(home)) is None

    def test_the_home_folder_of_the_user_database(self, base, monkeypatch):
        """Where `HOME` is set to something else, or to nothing."""
        home = brings(base / "me", git=True)
        monkeypatch.setattr(place, "_home_in_the_database", lambda user: (str(home),))
        assert found(home) is None

    def test_a_home_that_is_not_set(self, monkeypatch):
        """Then it is the one of the user database."""
        monkeypatch.delenv("HOME")
        assert found(Path.home()) is None

    def test_a_folder_of_a_repository_in_the_home_is_one_for_itself(self, base, monkeypatch):
        """A home that is a repository, for its dot files, counts as none."""
        home = brings(base / "me", git=True)
        monkeypatch.setenv("HOME", str(home))
        inner = brings(home / "work")
        assert found(inner) == inner
        assert found(below(inner)) is None

    @pytest.mark.parametrize("link", [False, True])
    @pytest.mark.parametrize("profile", ["", "profiles/x"])
    def test_the_hermes_home(self, base, link, profile):
        """Also the one above a profile, also by a link."""
        root = brings(base / "repo", git=True)
        (base / "link").symlink_to(root / ".hermes")
        home = (base / "link" if link else root / ".hermes") / profile
        home.mkdir(parents=True, exist_ok=True)
        assert found(below(root), home=home, global_dir=base / "elsewhere") is None

    @pytest.mark.parametrize("link", [False, True])
    def test_the_global_directory(self, base, link):
        """The same extensions are not loaded twice."""
        root = brings(base / "repo", git=True)
        (base / "link").symlink_to(root / ".hermes" / "extensions")
        global_dir = base / "link" if link else root / ".hermes" / "extensions"
        assert found(root, home=base / "home", global_dir=global_dir) is None

    def test_the_one_above_is_used_then(self, base):
        """A Hermes home in a folder of a repository does not hide the repository's extensions."""
        root = brings(base / "repo", git=True)
        inner = brings(root / "inner")
        assert found(inner, home=inner / ".hermes") == root

    def test_a_hermes_home_elsewhere_in_the_project_is_no_hindrance(self, base):
        """The project is one for all that."""
        root = brings(base / "repo", git=True)
        (root / "hermes-home").mkdir()
        assert found(root, home=root / "hermes-home") == root

    def test_a_hermes_home_among_the_extensions_is_refused(self, base):
        """To trust the tree would write into it, and so change it."""
        root = brings(base / "repo", git=True)
        home = root / ".hermes" / "extensions" / "home"
        project = find_project(root, home=home, global_dir=home / "extensions")
        assert "the Hermes home" in project.refused


def outside(base: Path) -> Path:
    made = base / "outside"
    (made / "extensions").mkdir(parents=True)
    (made / "extensions" / "a.py").touch()
    (made / "extensions.yaml").touch()
    return made


REFUSED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    ".hermes is a link out": (
        lambda root, out: (root / ".hermes").symlink_to(out),
        r"/\.hermes is a link to .*/outside, which is outside of the project",
    ),
    "extensions are a link out": (
        lambda root, out: (root / ".hermes" / "extensions").symlink_to(out / "extensions"),
        r"/\.hermes/extensions is a link to .*outside of the project",
    ),
    "settings are a link out": (
        lambda root, out: (root / ".hermes" / "extensions.yaml").symlink_to(
            "../../outside/extensions.yaml"
        ),
        r"/\.hermes/extensions\.yaml is a link to .*outside of the project",
    ),
    "a dangling link": (
        lambda root, out: (root / ".hermes" / "extensions").symlink_to("nowhere"),
        r"/\.hermes/extensions is a link to .*/nowhere, which is not there",
    ),
    "a link to itself": (
        lambda root, out: (root / ".hermes" / "extensions").symlink_to("extensions"),
        r"/\.hermes/extensions cannot be looked at: Too many levels",
    ),
    "extensions are a file": (
        lambda root, out: (root / ".hermes" / "extensions").touch(),
        r"/\.hermes/extensions is not a folder",
    ),
    "settings are a folder": (
        lambda root, out: (root / ".hermes" / "extensions.yaml").mkdir(),
        r"/\.hermes/extensions\.yaml is not a regular file",
    ),
    "settings are a pipe": (
        lambda root, out: os.mkfifo(root / ".hermes" / "extensions.yaml"),
        r"/\.hermes/extensions\.yaml is not a regular file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_be_somebody_elses_is_found_and_refused(base, case):
    """The reason names the file or folder and what is wrong with it."""
    make, reason = REFUSED[case]
    root = base / "repo"
    (root / ".git").mkdir(parents=True)
    if ".hermes is" not in case:
        (root / ".hermes").mkdir()
    make(root, outside(base))

    assert re.search(reason, refused(below(root)))


def test_links_within_the_project_are_no_hindrance(base):
    """Some keep all of an agent's folders in one place, and link to them."""
    root = base / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "agents" / "extensions").mkdir(parents=True)
    (root / "agents" / "extensions" / "a.py").touch()
    (root / ".hermes").symlink_to("agents")
    assert found(root) == root


@AS_ROOT
@pytest.mark.parametrize("whose", [".hermes", ".hermes/extensions"])
def test_a_folder_of_another_user_is_refused(base, whose):
    """Somebody else could put code there for us to run, in `/tmp` for instance."""
    root = brings(base / "repo", git=True)
    os.chown(root / whose, 12345, -1)
    assert refused(root) == f"{root / whose} belongs to another user (uid 12345)"


def test_a_folder_that_is_closed_is_refused(base, closed):
    """What cannot be looked at is told, not taken for nothing."""
    root = brings(base / "repo", git=True)
    closed(root / ".hermes")
    assert "Permission denied" in refused(root)


@pytest.mark.parametrize("path", ["with\0nul", "x" * 5000, "not/there"])
def test_no_directory_no_error(base, path):
    """Whatever a host gives as directory, an answer comes."""
    project = find_project(base / path, home=base, global_dir=base)
    assert project is None


def test_a_working_directory_that_is_gone(base, monkeypatch):
    """A relative directory then leads nowhere."""
    (base / "gone").mkdir()
    monkeypatch.chdir(base / "gone")
    shutil.rmtree(base / "gone")
    assert find_project(Path(), home=base, global_dir=base) is None


def test_a_projects_paths():
    """All below `.hermes`."""
    project = Project(Path("/x"))
    assert project.folder == Path("/x/.hermes")
    assert project.extensions == Path("/x/.hermes/extensions")
    assert project.settings_file == Path("/x/.hermes/extensions.yaml")


def test_the_project_that_a_handler_is_told_of(base, monkeypatch):
    """The repository's root as the path goes there, else the directory, and never a home."""
    root = brings(base / "repo", git=True)
    (base / "link").symlink_to(root)
    (base / "plain").mkdir()
    monkeypatch.setenv("HOME", str(base / "plain"))

    assert project_of(below(base / "link")) == base / "link"
    assert project_of(base) == base
    assert project_of(base / "plain") is None
    assert project_of(Path("/")) is None
