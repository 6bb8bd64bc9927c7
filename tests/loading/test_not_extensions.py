"""What lies in an extensions folder and is not an extension ends as a record with a reason."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.projects import GUARD, Place

from hermes_ext.loading import switches
from hermes_ext.loading.finding import discovery as _discovery
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.records import ExtensionRecord, Status


@pytest.fixture(autouse=True)
def _nothing_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extensions that come with the package are not the subject here."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(_discovery, "bundled_dir", lambda: tmp_path / "bundled")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/extensions").mkdir(parents=True)
    return tmp_path / "home"


def records(home: Path, cwd: Path | None = None) -> dict[str, ExtensionRecord]:
    return {each.name: each for each in inventory(home, cwd).records}


def file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def bind(path: Path) -> None:
    """Make a socket with a short address, wherever the folder is."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


# What lies in the folder, the name of its row, and what the row says.
ENTRIES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "nested": (
        lambda root: file(root / "nested/nested/__init__.py"),
        "nested",
        "/nested/nested. Move it to",
    ),
    "src layout": (
        lambda root: (
            file(root / "pkg/pyproject.toml"),
            file(root / "pkg/src/guard/__init__.py"),
            file(root / "pkg/tests/__init__.py"),
        ),
        "pkg",
        "/pkg/src/guard. Install it with pip",
    ),
    "code further down": (
        lambda root: file(root / "deep/lib/guard.py"),
        "deep",
        "its code is in lib/guard.py",
    ),
    "bytecode only": (
        lambda root: file(root / "old/__pycache__/__init__.cpython-311.pyc"),
        "old",
        "only bytecode",
    ),
    "bytecode of a package": (
        lambda root: file(root / "gone/__init__.pyc"),
        "gone",
        "only bytecode (__init__.pyc); put the source there",
    ),
    "bytecode": (
        lambda root: file(root / "guard.pyc"),
        "guard.pyc",
        "bytecode without its source. Put guard.py there",
    ),
    "compiled": (
        lambda root: file(root / "fast.cpython-311-x86_64-linux-gnu.so"),
        "fast.cpython-311-x86_64-linux-gnu.so",
        "compiled module",
    ),
    "compiled package": (
        lambda root: file(root / "fast/__init__.cpython-311-x86_64-linux-gnu.so"),
        "fast",
        "only a compiled module (__init__.cpython-311-x86_64-linux-gnu.so); add one",
    ),
    "archive in a folder": (
        lambda root: file(root / "packed/guard-1.0-py3-none-any.whl"),
        "packed",
        "only an archive (guard-1.0-py3-none-any.whl). Unpack it",
    ),
    "capitals in a folder": (
        lambda root: file(root / "loud/__init__.PY"),
        "loud",
        "rename __init__.PY to __init__.py",
    ),
    "other suffix in a folder": (
        lambda root: file(root / "saved/__init__.py.txt"),
        "saved",
        "rename __init__.py.txt to __init__.py",
    ),
    "archive": (lambda root: file(root / "guard.zip"), "guard.zip", "Unpack it"),
    "capitals": (lambda root: file(root / "Guard.PY"), "Guard.PY", "Rename it to Guard.py"),
    "other suffix": (
        lambda root: file(root / "guard.py.txt"),
        "guard.py.txt",
        "only .py files and folders are extensions. Rename it to guard.py",
    ),
    "no suffix": (lambda root: file(root / "guard"), "guard", "only .py files and folders"),
    "data": (lambda root: file(root / "notes/todo.txt"), "notes", "no Python code"),
    "empty": (lambda root: (root / "empty").mkdir(), "empty", "it is empty"),
    "backup": (lambda root: file(root / "guard.py~"), "guard.py~", "a backup's. Rename it"),
    "private": (lambda root: file(root / "_guard.py"), "_guard", "underscore is private"),
    "package": (lambda root: file(root / "__init__.py"), "__init__", "is not a package"),
    "pipe": (lambda root: os.mkfifo(root / "pipe.py"), "pipe", "it is a named pipe"),
    "pipe without suffix": (lambda root: os.mkfifo(root / "guard"), "guard", "a named pipe"),
    "socket": (lambda root: bind(root / "sock.py"), "sock", "it is a socket"),
    "device": (lambda root: (root / "null.py").symlink_to("/dev/null"), "null", "it is a device"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_is_a_row_with_a_reason(home: Path, entry: str) -> None:
    """Whatever lies there is one record that says what it is and what to do, and hides no other."""
    make, name, told = ENTRIES[entry]
    root = home / "extensions"
    file(root / "good.py", GUARD)
    make(root)

    found = records(home)

    assert found["good"].status is Status.ENABLED
    row = found.pop(name)
    assert row.status is Status.NOT_AN_EXTENSION
    assert str(root) in row.reason
    assert "is not an extension: " in row.reason
    assert told in row.reason
    assert set(found) == {"good"}
    loaded = {each.name: each for each in load(home).records}
    assert (loaded[name].status, loaded[name].reason) == (row.status, row.reason)
    assert loaded["good"].loaded


@pytest.mark.parametrize("name", [".git", ".guard.py", "__pycache__", "README", "readme.md"])
def test_what_is_expected_there_is_not_a_row(home: Path, name: str) -> None:
    """Hidden entries, Python's cache and documents are shown only when asked for."""
    (home / "extensions" / name).mkdir() if "." not in name[1:] and name != "README" else file(
        home / "extensions" / name
    )

    assert records(home) == {}


@pytest.mark.parametrize("name", ["README.py", "license.py", "readme_guard.py"])
def test_a_document_by_name_that_is_code_is_an_extension(home: Path, name: str) -> None:
    """A `.py` file is an extension whatever it is called."""
    file(home / "extensions" / name, GUARD)

    [record] = records(home).values()
    assert record.status is Status.ENABLED


@pytest.mark.parametrize("inside", ["__init__.py", "extension.yaml"])
def test_a_pipe_inside_an_extension_stops_only_that_one(home: Path, inside: str) -> None:
    """A pipe where an extension's file should be is its load error, and nothing waits for it."""
    folder = home / "extensions/guard"
    file(folder / "__init__.py", GUARD)
    (folder / inside).unlink(missing_ok=True)
    os.mkfifo(folder / inside)

    for seen in (records(home), {each.name: each for each in load(home).records}):
        assert seen["guard"].status is Status.LOAD_ERROR
        assert inside in seen["guard"].reason
        assert "it is a named pipe, not a file" in seen["guard"].reason


def test_a_link_to_nowhere_inside_an_extension_is_named(home: Path) -> None:
    """The load error names the file that cannot be read and where its link leads."""
    code = home / "extensions/guard/__init__.py"
    code.parent.mkdir()
    code.symlink_to("moved.py")

    assert records(home)["guard"].reason == f"{code} is a link to moved.py, which is not there"


def test_a_file_that_became_a_pipe_is_not_waited_for(home: Path) -> None:
    """Code that is replaced by a pipe between finding and importing it is a load error."""
    guard = file(
        home / "extensions/a.py",
        "import os, pathlib\n"
        "other = pathlib.Path(__file__).with_name('b.py')\n"
        "other.unlink()\n"
        "os.mkfifo(other)\n",
    )
    file(home / "extensions/b.py", GUARD)

    loaded = {each.name: each for each in load(home).records}

    assert guard.exists()
    assert loaded["b"].status is Status.LOAD_ERROR
    assert "it is a named pipe" in loaded["b"].reason


ROOTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "it is a named pipe, not a folder"),
    "file": (lambda root: root.write_text(""), "it is a file, not a folder"),
    "dangling link": (lambda root: root.symlink_to("/no/such/place"), "it is a link to"),
    "device": (lambda root: root.symlink_to("/dev/null"), "it is a device, not a folder"),
    "socket": (bind, "it is a socket, not a folder"),
    "loop": (lambda root: root.symlink_to(root), "cannot be read"),
}


@pytest.mark.parametrize("root", ROOTS)
def test_a_folder_of_extensions_that_is_none_is_one_line(home: Path, root: str) -> None:
    """What stands in the folder's place is one problem, and a required guard refuses every tool."""
    make, told = ROOTS[root]
    (home / "extensions").rmdir()
    make(home / "extensions")
    file(home / "config.yaml", "extensions:\n  required: [guard]\n")

    seen, loaded = inventory(home), load(home)

    for problems in (seen.problems, loaded.problems):
        [problem] = [each for each in problems if each.key == "extensions.global_dir"]
        assert told in str(problem)
        assert "Make it a folder that you can read" in str(problem)
    assert loaded.refusal is not None
    assert told in loaded.refusal


def test_a_required_name_that_is_only_bytecode_says_so(home: Path) -> None:
    """The refusal for a missing extension names what lies there under its name."""
    file(home / "extensions/guard.pyc")
    file(home / "config.yaml", "extensions:\n  required: [guard]\n")

    refusal = load(home).refusal

    assert refusal is not None
    assert "guard.pyc is not an extension: it is bytecode without its source" in refusal


def test_a_required_folder_that_is_not_one_says_why(home: Path) -> None:
    """A required name whose folder is nested refuses every tool with the place of the real one."""
    file(home / "extensions/guard/guard/__init__.py", GUARD)
    file(home / "config.yaml", "extensions:\n  required: [guard]\n")

    refusal = load(home).refusal

    assert refusal is not None
    assert "guard (not-an-extension: " in refusal
    assert f"the extension seems to be {home / 'extensions/guard/guard'}" in refusal


def test_one_that_is_turned_off_is_disabled(home: Path) -> None:
    """`disabled` silences a row, as it does an extension."""
    file(home / "extensions/notes/todo.txt")
    file(home / "config.yaml", "extensions:\n  disabled: [notes]\n")

    assert records(home)["notes"].status is Status.DISABLED


@pytest.fixture
def repo(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_projects_folder_is_told_as_well(repo: Place) -> None:
    """What lies in a trusted project's folder is a record too, also what its digest leaves out."""
    repo.add("good")
    root = repo.hermes / "extensions"
    file(root / "nested/nested/__init__.py")
    file(root / "old.pyc")
    (root / "empty").mkdir()
    file(root / "notes.txt")
    file(root / "README.md")
    repo.trust()

    found = records(repo.home, repo.root)

    assert found["good"].status is Status.ENABLED
    rows = {name for name, each in found.items() if each.status is Status.NOT_AN_EXTENSION}
    assert rows == {"nested", "old.pyc", "empty", "notes.txt"}
    assert f"the extension seems to be {root / 'nested/nested'}" in found["nested"].reason


def test_a_row_takes_nobodys_place(home: Path) -> None:
    """A file that happens to have an extension's name changes nothing about the extension."""
    file(home / "extensions/rules.py", GUARD)
    os.mkfifo(home / "extensions/rules")

    loaded = load(home)

    rows = {each.path: each for each in loaded.records if each.name == "rules"}
    assert rows[home / "extensions/rules.py"].loaded
    assert rows[home / "extensions/rules"].status is Status.NOT_AN_EXTENSION
    switches.disable(home, None, "rules")
    assert {each.status for each in inventory(home).records} == {Status.DISABLED}
    switches.enable(home, None, "rules")
    assert load(home).handlers
