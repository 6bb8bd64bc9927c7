"""Type checkers see what a guard may return: mypy --strict and pyright on a good and a bad file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _mypy(file: Path, cache: Path) -> dict[int, str]:
    output = _run("mypy", "--strict", "--no-error-summary", f"--cache-dir={cache}", str(file))
    pattern = re.compile(rf"{re.escape(file.name)}:(\d+): error: (.*)")
    return {int(found[1]): found[2] for found in pattern.finditer(output)}


def _pyright(file: Path, _cache: Path) -> dict[int, str]:
    # By itself it asks the `python` on PATH, which need not be the one that has the package.
    output = _run("pyright", "--outputjson", "--pythonpath", sys.executable, str(file))
    report = json.loads(output[output.index("{") :])
    return {
        found["range"]["start"]["line"] + 1: found["message"]
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    }


CHECKERS = pytest.mark.parametrize("check", [_mypy, _pyright], ids=["mypy", "pyright"])


@CHECKERS
def test_right_handlers_are_accepted(check, tmp_path):
    """Every kind of handler that works at run time passes the type checkers."""
    assert check(HERE / "good.py", tmp_path) == {}


@CHECKERS
def test_wrong_handlers_are_refused(check, tmp_path):
    """Each mistake is an error on the very line where it is made, and nothing else is one."""
    lines = (HERE / "bad.py").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# E:" in line}

    errors = check(HERE / "bad.py", tmp_path)

    assert set(errors) == marked, errors
