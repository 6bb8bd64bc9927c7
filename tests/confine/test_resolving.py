"""`Confinement.of`: only real directories of the project become writable; the rest is left out."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext.confine import Confinement, Reason
from hermes_ext.confine import _resolving as resolving

REASON = Reason("plans", "no plan yet")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a home, with `plans/deep` and a file `src/main.py`."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "home" / "project"
    for folder in ("plans/deep", "src", ".git/hooks", ".hermes/extensions"):
        (project / folder).mkdir(parents=True)
    (project / "src" / "main.py").write_text("x = 1\n")
    (project / "plans" / "plan.md").write_text("a plan\n")
    return project


def of(root: Path | None, *writable: str) -> Confinement:
    return Confinement.of(writable, root=root, reason=REASON)


def why(root: Path | None, path: str) -> str:
    """Why a path is left out; nothing else is writable then."""
    found = of(root, path)
    assert found.writable == ()
    ((named, told),) = found.left_out
    assert named == path
    return told


@pytest.mark.parametrize(
    ("written", "leads_to"),
    [
        ("plans", "plans"),
        ("plans/", "plans"),
        ("./plans", "plans"),
        ("plans/deep", "plans/deep"),
        (".", ""),
        ("plans//deep/.", "plans/deep"),
    ],
)
def test_directories_of_the_project_are_writable(root: Path, written: str, leads_to: str) -> None:
    """However they are written; `.` is the whole project."""
    found = of(root, written)
    assert (found.writable, found.left_out) == ((root / leads_to,), ())
    assert (found.network, found.reasons) == ("host", (REASON,))


def test_an_absolute_path_is_taken(root: Path, tmp_path: Path) -> None:
    """By the project's name or by its real one, where a link leads to the project."""
    (tmp_path / "link").symlink_to(root)
    for start in (root, tmp_path / "link"):
        for other in (root, tmp_path / "link"):
            assert of(start, str(other / "plans")).writable == (
                (root / "plans",) if other in (start, root) else ()
            )


def test_each_path_stands_for_itself(root: Path) -> None:
    """One that is left out takes no other with it, and a path that is named twice is there once."""
    found = Confinement.of(
        ["plans", "absent", "src", "plans/"], root=root, network="none", reason=REASON
    )
    assert found.writable == (root / "plans", root / "src")
    assert found.left_out == (("absent", "it does not exist"),)
    assert found.network == "none"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("absent", "it does not exist"),
        ("src/main.py", "it is not a directory"),
        ("src/main.py/x", "main.py is not a directory"),
        ("..", "it contains .."),
        ("plans/../src", "it contains .."),
        ("/", "it is not in"),
        ("/etc", "it is not in"),
        ("~", "it does not exist (~ is not expanded)"),
        ("plans/*", "it does not exist (patterns are not expanded)"),
        ("$HOME/x", "it does not exist (variables are not expanded)"),
        (".git", ".git is never writable"),
        (".git/hooks", ".git is never writable"),
        (".hermes/extensions", ".hermes is never writable"),
        ("plans/.HERMES", ".HERMES is never writable"),
        ("a\0b", "it cannot be read"),
        ("x" * 5000, "it cannot be read"),
    ],
    ids=lambda value: value[:20].replace("\0", "NUL"),
)
def test_what_is_no_directory_of_the_project_is_left_out(root: Path, path: str, told: str) -> None:
    """Files, what is elsewhere, what has rules or the repository in it; each with why."""
    assert told in why(root, path)


def test_no_directory_of_a_project_is_known() -> None:
    """Then nothing is writable, and nothing fails."""
    assert why(None, "plans") == "the project directory is not known"
    assert why(Path("/nowhere/at/all"), "plans") == "it does not exist"


@pytest.mark.parametrize("link", ["plans", "plans/deep"])
def test_links_are_left_out(root: Path, link: str) -> None:
    """Also where they lead back into the project, and one further up is a link too."""
    place = root / link
    moved = root / "moved"
    place.rename(moved)
    place.symlink_to(moved)
    first = "plans" if link == "plans" else "it"
    assert why(root, "plans/deep") == f"{first} is a symbolic link"
    assert why(root, link) == "it is a symbolic link"


def test_a_link_to_the_project_itself(root: Path) -> None:
    """`plans -> .` would make all of it writable."""
    (root / "all").symlink_to(".")
    assert "symbolic link" in why(root, "all")
    assert "symbolic link" in why(root, "all/src")


def test_links_in_a_directory_do_no_harm(root: Path) -> None:
    """What they lead to is not writable for it."""
    (root / "plans" / "out").symlink_to(root / "src")
    (root / "plans" / "nowhere").symlink_to("nowhere")
    found = of(root, "plans")
    assert found.writable == (root / "plans",)
    assert not found.covers(root / "src" / "main.py")


@pytest.mark.parametrize("at", ["plans/copy", "plans/deep/copy"])
def test_a_hard_link_to_the_outside(root: Path, at: str) -> None:
    """Writing it would write what is outside; the message names it."""
    os.link(root / "src" / "main.py", root / at)
    name = at.removeprefix("plans/")
    assert why(root, "plans") == f"{name} has a hard link elsewhere"


def test_hard_links_within_the_directory(root: Path) -> None:
    """A file all of whose names are in the directory can be written by any of them."""
    os.link(root / "plans" / "plan.md", root / "plans" / "deep" / "plan.md")
    assert of(root, "plans").writable == (root / "plans",)
    assert "plan.md has a hard link" in why(root, "plans/deep")


def test_more_files_than_anybody_can_look_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is too large to be searched for hard links is left out."""
    monkeypatch.setattr(resolving, "MOST_FILES", 5)
    assert of(root, "plans").writable == (root / "plans",)
    for number in range(5):
        (root / "plans" / f"{number}").touch()
    assert why(root, "plans") == "it has more than 5 files"


def test_folders_in_folders(root: Path) -> None:
    """A directory with more of them than can be followed is left out."""
    at = os.open(root / "plans", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    try:
        assert of(root, "plans").writable == ()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    subprocess.run(["rm", "-r", root / "plans" / "d"], check=True)  # Python cannot


def test_a_directory_that_cannot_be_searched(root: Path) -> None:
    """Nobody knows what is in it."""
    if os.geteuid() == 0:
        pytest.skip("root can search every directory")
    (root / "plans" / "deep").chmod(0)
    try:
        assert "cannot be read" in why(root, "plans")
    finally:
        (root / "plans" / "deep").chmod(0o700)


def test_the_home_and_shared_folders(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never writable, and nothing that holds one of them, wherever the work happens."""
    home = tmp_path / "home"
    assert why(home, ".") == "it is your home"
    assert why(tmp_path, "home") == "it is your home"
    assert "is above your home" in why(tmp_path, ".")
    monkeypatch.setenv("TMPDIR", str(root / "plans" / "deep"))
    assert why(root, "plans/deep") == "it is a shared temporary folder"
    assert why(root, "plans") == "it is above a shared temporary folder"
    (root / "src").chmod(0o1777)
    assert why(root, "src") == "it is a shared temporary folder"
    for place in ("tmp", "/tmp", "dev", "."):
        assert of(Path("/"), place).writable == ()


def test_a_directory_in_the_home_may_be_writable(root: Path) -> None:
    """Where there is no project, the session's directory may be the home."""
    assert of(root.parent, "project/plans").writable == (root / "plans",)


def test_a_path_that_is_exchanged_meanwhile(root: Path) -> None:
    """Whatever somebody puts in its place: a link is never followed."""
    folder, outside = root / "plans", root / "src"
    kept, stop = root / "kept", threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            folder.rename(kept)
            folder.symlink_to(outside)
            folder.unlink()
            kept.rename(folder)

    worker = threading.Thread(target=exchange)
    worker.start()
    try:
        for _ in range(300):
            found = of(root, "plans")
            assert found.writable in ((), (folder,))
            assert {told for _, told in found.left_out} <= {
                "it does not exist",
                "it is a symbolic link",
            }
    finally:
        stop.set()
        worker.join()


def test_a_file_that_goes_away_meanwhile(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that a program cleans up stays writable."""
    real: Callable[..., os.stat_result] = os.stat

    def stat(path: object, **options: object) -> os.stat_result:
        if path == "plan.md":
            raise FileNotFoundError(path)
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert of(root, "plans").writable == (root / "plans",)


class TestIntersection:
    """What several handlers allow."""

    def test_only_what_all_allow(self, root: Path) -> None:
        """The deeper of two directories, nothing of two that lie apart; the narrower network."""
        everything, plans, src = of(root, "."), of(root, "plans"), of(root, "src")
        assert (everything & plans).writable == (root / "plans",)
        assert (plans & everything).writable == (root / "plans",)
        assert (plans & src).writable == ()
        both = plans & Confinement.of(["."], root=root, network="none", reason=Reason("b", "x"))
        assert both.network == "none"
        assert [reason.extension for reason in both.reasons] == ["plans", "b"]

    def test_what_is_left_out_is_writable_for_nobody(self, root: Path) -> None:
        """A path that one handler could not have does not widen what another allows."""
        assert (of(root, "absent") & of(root, ".")).writable == ()
        assert (of(root, "absent") & of(root, ".")).left_out == (("absent", "it does not exist"),)
