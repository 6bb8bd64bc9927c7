"""The plugin in other people's runs of pytest, and the real Hermes by `hermes_session`."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from hermes_ext.hosts.hermes.process import home
from hermes_ext.testing import LoadExtension, Reply, StartSession, ToolUse
from hermes_ext.testing._extension import LoadedExtension
from hermes_ext.testing._session import open_session

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

PLUGIN = ("-p", "hermes_ext.testing.plugin", "-p", "no:asyncio", "-p", "no:cacheprovider")
BLOCKS = """
    @register_hook("intercept_tool_call", guard=True, tools=["terminal"])
    def no_rm(tool_args, config):
        if "rm" in tool_args["command"].split():
            return HookResult.block(f"Nothing is deleted {config['where']}.")
"""
MANIFEST = "config: {type: object, properties: {where: {type: string, default: here}}}"


def test_a_run_without_the_fixtures_imports_nothing_heavy() -> None:
    """The plugin alone brings in no model server, no runtime, no YAML, no pluggy of ours."""
    program = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport hermes_ext.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    brought = done.stdout.split()
    assert "hermes_ext.testing.plugin" in brought
    heavy = ("http", "yaml", "ruamel", "jsonschema", "sqlite3", "rich", "asyncio", "tree_sitter")
    assert [name for name in brought if name.partition(".")[0] in heavy] == []
    ours = {name for name in brought if name.startswith("hermes_ext")}
    assert not {"hermes_ext.runtime", "hermes_ext.loading.loader"} & ours
    assert not [name for name in ours if "model_server" in name or "_real_hermes" in name]


def test_foreign_fixtures_of_these_names_win(pytester: pytest.Pytester) -> None:
    """A project that has a `load_extension` of its own keeps it."""
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef load_extension():\n    return 'theirs'\n"
    )
    pytester.makepyfile("def test_it(load_extension):\n    assert load_extension == 'theirs'\n")
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


def test_findings_fail_the_test_that_made_them(
    pytester: pytest.Pytester, write: Callable[..., Path]
) -> None:
    """At the turn's end if there is one, else when the test is over."""
    folder = write('@register_hook("intercept_tool_call")\ndef f(tool_args): tool_args["x"] = 1\n')
    pytester.makepyfile(
        f"FOLDER = {str(folder)!r}\n"
        "def test_closed(load_extension):\n    load_extension(FOLDER).call('x')\n"
        "def test_open(load_extension):\n    load_extension(FOLDER).turn().call('x')\n"
        "def test_lenient(load_extension):\n    load_extension(FOLDER, strict=False).call('x')\n"
    )
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*mutated: f (*changed what it was given in place*"])


@pytest.mark.parametrize("chosen", [(), PLUGIN[:2]])
def test_the_package_of_an_extension_is_not_imported_by_pytest(
    write: Callable[..., Path], chosen: tuple[str, ...]
) -> None:
    """Its tests run in its folder, though it has relative imports and a name with a hyphen.

    The plugin is found by its entry point, and taken once where it is also named.
    """
    folder = write(
        f"from .words import WORD\n{dedent(BLOCKS)}",
        name="no-rm",
        extension_yaml=MANIFEST,
        words_py="WORD=1",
    )
    (folder / "tests" / "test_no_rm.py").write_text(
        "from pathlib import Path\n"
        "def test_it(load_extension):\n"
        "    extension = load_extension(Path(__file__).parents[1])\n"
        "    assert extension.call('terminal', {'command': 'rm x'}).blocked\n"
    )
    site = folder.parent / "site" / "an_installation-1.0.dist-info"
    site.mkdir(parents=True)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {module}\n" for name, module in points["pytest11"].items()]
    (site / "entry_points.txt").write_text("".join(["[pytest11]\n", *lines]))
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: an-installation\nVersion: 1.0\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", *chosen],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
    assert done.returncode == 0


def test_an_extension_that_skips_itself_can_be_tested(pytester: pytest.Pytester) -> None:
    """pytest imports no extension on its own, also in the mode that imports what is above tests."""
    folder = pytester.path / "rules" / "skipped_one"
    (folder / "tests").mkdir(parents=True)
    (folder / "extension.yaml").write_text("name: skipped_one\n")
    (folder / "__init__.py").write_text(
        "from hermes_ext import SkipExtension\nraise SkipExtension('no rtk')\n"
    )
    (folder / "tests" / "test_skipped_one.py").write_text(
        "import pytest\n"
        "from pathlib import Path\n"
        "def test_it(load_extension):\n"
        "    with pytest.raises(AssertionError, match='no rtk'):\n"
        "        load_extension(Path(__file__).parents[1])\n"
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "--import-mode=importlib")
    result.assert_outcomes(passed=1)


def test_what_is_documented_is_what_there_is() -> None:
    """The fixtures' protocols have the arguments, with the defaults, of the functions behind."""
    for documented, real, first in (
        (LoadExtension, LoadedExtension, 2),
        (StartSession, open_session, 2),
    ):
        told = inspect.signature(documented.__call__).parameters.values()
        there = [*inspect.signature(real).parameters.values()][first:]
        options = [each for each in told if each.kind is each.KEYWORD_ONLY]
        assert [(e.name, e.default) for e in options] == [(e.name, e.default) for e in there]


def test_without_hermes_the_test_is_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, and what to install."""
    monkeypatch.setattr(home, "host_package", lambda: None)
    pytester.makepyfile("def test_it(hermes_session):\n    hermes_session('x')\n")
    result = pytester.runpytest_inprocess(*PLUGIN, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*hermes-agent is not installed*pip install hermes-agent*"])


@pytest.mark.hermes
def test_the_real_hermes_with_an_extension(
    hermes_session: StartSession, write: Callable[..., Path]
) -> None:
    """One-shot: answer, tool results, requests, files, and the decision log; chat goes on."""
    folder = write(BLOCKS, name="no-rm", extension_yaml=MANIFEST)
    session = hermes_session(
        Reply(tool_calls=(ToolUse("terminal", {"command": "rm notes.txt"}),)),
        Reply(tool_calls=(ToolUse("terminal", {"command": "cat notes.txt"}),)),
        "It was refused.",
        "Again.",
        extensions=[folder],
        config={"no-rm": {"where": "at all"}},
    )
    session.write("notes.txt", "still here\n")
    run = session.chat("clean up")
    assert "It was refused." in run.answer
    blocked, shown = run.tool_results
    assert "[no-rm] Nothing is deleted at all." in blocked
    assert "still here" in shown
    assert run.requests[0].last_user == "clean up"
    assert len(run.requests) == 3
    (decision,) = [each for each in run.decisions if each.get("action") == "block"]
    assert decision["blocked_by"] == "no-rm"
    assert session.read("notes.txt") == "still here\n"
    again = session.chat("again", "--continue")
    assert again.tool_results == ()
    assert [message["role"] for message in again.requests[0].messages].count("user") == 2


@pytest.mark.hermes
def test_a_script_that_is_too_short_fails_the_run(hermes_session: StartSession) -> None:
    """The message has the tool results, which say what went otherwise; a bundled one is on."""
    pytest.importorskip("aiohttp")
    read = Reply(tool_calls=(ToolUse("read_file", {"path": "a.txt"}),))
    session = hermes_session(
        "Fine.",
        read,
        read,
        extensions=["budget"],
        config={"budget": {"per_turn": {"tool_calls": 1}}},
    )
    session.write("a.txt")
    with session.api() as api:
        answer = api.ask("hello", session_id="s1")
        assert (answer.answer, answer.returncode) == ("Fine.", 0)
        with pytest.raises(AssertionError, match=r"1 more than it has replies(?s:.)*budget"):
            api.ask("read twice", session_id="s2")


def test_replies_and_a_script_exclude_each_other(hermes_session: StartSession) -> None:
    """Which would win is not guessed."""
    with pytest.raises(TypeError, match="not both"):
        hermes_session("a", script=lambda request: Reply("b"))
