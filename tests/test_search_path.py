"""Files of the working directory are not imported: an agent writes there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.home import HermesHome

from hermes_ext import _search_path

SCRIPT = Path(sysconfig.get_path("scripts"), "hermes-ext")
# Of the standard library and of what the package uses, at start and later.
NAMES = ("json", "yaml", "attr", "attrs", "argparse", "pluggy", "rich", "detect_secrets", "sqlite3",
         "jsonschema", "tree_sitter", "pathspec", "filelock", "difflib", "logging",
         "__future__")  # fmt: skip
TELLS = "import os\nopen(os.environ['RAN'], 'a').write(__name__ + '\\n')\nraise SystemExit(99)\n"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A working directory with a file for each name, which tells that it was imported."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(TELLS, encoding="utf-8")
    home = tmp_path / "home" / "extensions"
    home.mkdir(parents=True)
    (home / "rules.py").write_text(
        "from hermes_ext import register_hook\n@register_hook('before_llm_call')\ndef f(): ...\n"
    )
    return folder


def run(trap: Path, *command: str, **env: str) -> tuple[int, str]:
    """Exit code, and what of the working directory was imported."""
    ran = trap.parent / "ran"
    ran.unlink(missing_ok=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    place = {"HERMES_HOME": str(trap.parent / "home"), "RAN": str(ran), **env}
    done = subprocess.run(command, cwd=trap, env=clean | place, capture_output=True, check=False)
    return done.returncode, ran.read_text() if ran.exists() else done.stderr.decode()


@pytest.mark.parametrize("module", ["hermes_ext", "hermes_ext.cli"])
@pytest.mark.parametrize("words", [("list",), ("list", "--load"), ("test", "rules")])
def test_run_by_name(trap: Path, module: str, words: tuple[str, ...]) -> None:
    """`python -m` puts the working directory first; the child that loads extensions has neither."""
    assert run(trap, sys.executable, "-m", module, *words) == (0, "")


@pytest.mark.parametrize("path", [":", "", ".", "./", "./.:", f"{os.sep}nowhere:", "::"])
@pytest.mark.parametrize("start", ["script", "module"])
def test_an_empty_entry(trap: Path, path: str, start: str) -> None:
    """An empty entry of `PYTHONPATH` is the working directory."""
    command = [str(SCRIPT)] if start == "script" else [sys.executable, "-P", "-m", "hermes_ext"]
    assert run(trap, *command, "list", "--load", PYTHONPATH=path) == (0, "")


def test_a_file_with_the_name_of_the_package(trap: Path) -> None:
    """Python itself runs it for `python -m`; not for the script, nor with -P as documented."""
    (trap / "hermes_ext.py").write_text(TELLS, encoding="utf-8")
    assert run(trap, str(SCRIPT), "list", "--load") == (0, "")
    assert run(trap, sys.executable, "-P", "-m", "hermes_ext.cli", "list", "--load") == (0, "")


def test_what_somebody_has_named_stays(trap: Path) -> None:
    """A directory that `PYTHONPATH` writes out is searched, the working directory too."""
    for name in NAMES:
        (trap / f"{name}.py").unlink()
    (trap / "mine.py").write_text("", encoding="utf-8")
    rules = trap.parent / "home" / "extensions" / "rules.py"
    rules.write_text(f"import mine\n{rules.read_text()}", encoding="utf-8")
    code, _ = run(trap, sys.executable, "-m", "hermes_ext", "list", "--load", PYTHONPATH=f"{trap}:")
    assert code == 0
    code, _ = run(trap, sys.executable, "-m", "hermes_ext", "list", "--load", PYTHONPATH=":")
    assert code == 1


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["-m", "hermes_ext"], "hermes_ext"),
        (["-W", "error", "-Bm", "hermes_ext.cli", "list"], "hermes_ext.cli"),
        (["-X", "dev", "script.py", "-m", "x"], ""),
        (["script.py"], ""),
        (["-c", "pass", "-m", "x"], ""),
        (["-m"], ""),
    ],
)
def test_which_module_is_run(
    monkeypatch: pytest.MonkeyPatch, words: list[str], module: str
) -> None:
    """As the command line of Python says."""
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    assert _search_path._run_by_name() == module


LATE = ("detect_secrets", "tree_sitter", "pathspec", "pluggy", "tree_sitter_bash")
IN_HERMES = """
import os, sys
import hermes_cli.main
assert os.getcwd() in sys.path
import run_agent
assert 'hermes_ext' in sys.modules, 'the plugin is loaded'
from hermes_ext import Runtime, ToolCall
from hermes_ext.effects import effects_of
from hermes_ext._redaction import redacted
assert not effects_of(ToolCall('terminal', {'command': 'ls'})).may_write
redacted({'text': 'password: hunter2'})
assert os.getcwd() not in sys.path and '' not in sys.path, sys.path
print('fine')
"""


@pytest.mark.hermes
def test_in_hermes(hermes: Callable[[], HermesHome], trap: Path) -> None:
    """What the package imports late, to read shell text say, is the installed one."""
    home = hermes()
    for name in NAMES:
        (trap / f"{name}.py").unlink()
    for name in LATE:
        (trap / f"{name}.py").write_text(TELLS, encoding="utf-8")
    ran = trap.parent / "ran"
    told = home.python(IN_HERMES, cwd=trap, env={"PYTHONPATH": ":", "RAN": str(ran)})
    assert told.check().stdout.splitlines()[-1] == "fine"
    assert not ran.exists()
