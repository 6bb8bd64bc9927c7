"""What one tool call costs on its way through the package, and which files it enters."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.hermes

ROOT = Path(__file__).parents[2]
COUNTER = ROOT / "benchmarks" / "count_call.py"


def test_one_call_stays_within_its_bars_and_on_the_path_that_is_documented() -> None:
    """The counting tool finds no more than its bars allow; architecture.md has its list."""
    told = subprocess.run(
        [sys.executable, str(COUNTER), "--check"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    entered = re.findall(r"^ +\d+ +(\S+\.py)$", told.stdout, re.MULTILINE)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    path = page.partition("python benchmarks/count_call.py")[2].split("```")[1]
    assert re.findall(r"^ *(\S+\.py)", path, re.MULTILINE) == entered
