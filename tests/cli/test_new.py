"""`new`: an extension that is complete at once, and never in another's place."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unloading import unload

from hermes_ext.exceptions import HermesExtError
from hermes_ext.loading.loader import load
from hermes_ext.scaffold import write_extension
from hermes_ext.settings.names import HOOKS

ALL = [word for hook in HOOKS for word in ("--hook", hook)]
ROOT = Path(__file__).resolve().parents[2]


def texts(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("guard", [False, True])
def test_what_it_writes_loads_passes_its_tests_and_is_typed(home, tmp_path, guard):
    """For every hook, as guards or not; pytest, mypy --strict and ruff are content."""
    output = home.run("new", "all-four", *ALL, *(["--guard"] if guard else []), "--json")
    folder = home.path / "extensions" / "all-four"
    assert output.code == 0
    assert output.json["folder"] == str(folder)
    assert set(output.json["files"]) == set(texts(folder))
    loaded = load(home.path)
    (record,) = [each for each in loaded.records if each.name == "all-four"]
    unload(loaded)
    assert (record.status, record.warnings, loaded.problems) == ("enabled", (), ())
    assert {hook.hook for hook in record.hooks} == set(HOOKS)
    assert {hook.guard for hook in record.hooks} == {guard}
    run = (sys.executable, "-m", "pytest", "-q", "-p", "hermes_ext.testing.plugin")
    tests = process([*run, "-p", "no:asyncio", "-p", "no:cacheprovider"], folder)
    assert f"{6 if guard else 5} passed" in tests
    link = tmp_path / "all_four"  # mypy wants a package's name without a hyphen
    link.symlink_to(folder)
    files = [str(link / "__init__.py"), *map(str, (link / "tests").glob("*.py"))]
    cache = ROOT / ".mypy_cache"
    process([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *files], tmp_path)
    ruff = Path(sys.executable).parent / "ruff"
    process([str(ruff), "check", "--isolated", "--no-cache", "--select", "E,F,I,UP", "."], folder)
    process([str(ruff), "format", "--isolated", "--no-cache", "--check", "."], folder)


def process(command, cwd):
    env = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_by_default_it_is_a_guard_of_tool_calls_and_says_what_next(home):
    """For all work; the page names the folder, its files, and what to type."""
    output = home.run("new", "my-rules")
    folder = home.path / "extensions" / "my-rules"
    assert output.code == 0
    assert "guard=True" in (folder / "__init__.py").read_text()
    for told in (
        str(folder),
        "tests/test_my_rules.py",
        f"cd {folder} && pytest",
        "hermes-ext doctor",
    ):
        assert told in output.out


def test_into_a_project_that_then_has_to_be_trusted(home, repo):
    """Into the repository's `.hermes`, from any of its folders; nothing of it is on."""
    below = repo.root / "src"
    below.mkdir()
    os.chdir(below)
    output = home.run("new", "ours", "--project", "--json")
    assert output.json["scope"] == "project"
    assert output.json["folder"] == str(repo.root / ".hermes" / "extensions" / "ours")
    assert "hermes-ext trust" in [step["command"] for step in output.json["next"]]
    listed = home.run("list", "--json").json["extensions"]
    assert [each["status"] for each in listed if each["name"] == "ours"] == ["untrusted"]


def test_no_project_where_there_is_none(home, monkeypatch):
    """Not in the home folder; the hint names the other way."""
    monkeypatch.chdir(os.environ["HOME"])
    output = home.run("new", "ours", "--project")
    assert output.code == 2
    assert "is not a project" in output.err
    assert "leave --project out" in output.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("été", 'Call it "ete"'),
        ("../x", 'it is a path. Call it "x"'),
        ("/tmp/x", 'it is a path. Call it "x"'),
        ("..", "it is a path"),
        ("", 'the name is empty. Call it "my-rules"'),
        (" ", "the name is empty"),
        ("class", 'a word of Python itself. Call it "my-class"'),
        ("None", "a word of Python itself"),
        ("budget", 'would take its place. Call it "my-budget"'),
        ("Loop_Breaker", "would take its place"),
        ("on", "one of the keys"),
        ("hermes-ext", "the package's own name"),
        ("9lives", 'Call it "my-9lives"'),
        ("a b", 'Call it "a-b"'),
        ("a" * 65, "longer than 64"),
        ("x\x1b[31m", "no extension can be called"),
    ],
)
def test_names_that_cannot_be(home, name, told):
    """Exit code 2, why, and a name that can be; nothing is written."""
    output = home.run("new", name)
    assert output.code == 2
    assert told in output.err
    assert not (home.path / "extensions").exists()


@pytest.mark.parametrize(
    "there", ["my-rules/__init__.py", "My_Rules/x", "my-rules.py", "my-rules/"]
)
def test_nothing_is_overwritten(home, there):
    """Not a folder, not a file, not another spelling, not even an empty folder."""
    path = home.path / "extensions" / there
    path.parent.mkdir(parents=True)
    path.mkdir() if there.endswith("/") else path.write_text("mine\n")
    before = texts(home.path / "extensions")
    output = home.run("new", "my-rules", "--json")
    assert output.code == 1
    assert "is there already, and nothing is overwritten" in output.json["error"]
    assert output.json["file"].startswith(str(home.path / "extensions"))
    assert texts(home.path / "extensions") == before


def test_of_two_at_once_one_fails_and_neither_is_half(tmp_path):
    """Whoever is first has all files of its own; nothing else is left in the folder."""
    gate = threading.Barrier(8)
    ended: list[str] = []

    def one(number: int) -> None:
        gate.wait()
        try:
            write_extension(tmp_path, "x", {f"{n}.txt": str(number) for n in range(20)})
            ended.append("made")
        except HermesExtError:
            ended.append("refused")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["made"] + ["refused"] * 7
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    written = texts(tmp_path / "x")
    assert len(written) == 20
    assert len(set(written.values())) == 1


def test_what_cannot_be_written_is_told(home):
    """A file stands where the folder of extensions would be."""
    (home.path / "extensions").write_text("no folder")
    output = home.run("new", "my-rules")
    assert output.code == 1
    assert "cannot be written" in output.err


def test_a_configuration_that_cannot_be_read_names_no_folder(home):
    """Where extensions go is not known then."""
    home.write_config("extensions: [")
    output = home.run("new", "my-rules")
    assert output.code == 1
    assert str(home.config) in output.err
    assert not (home.path / "extensions").exists()
