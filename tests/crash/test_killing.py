"""`kill -9` in the middle of a write, and two processes that write at once: nothing is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Rounds = Callable[[str], None]

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this platform has neither fork nor kill -9"
)


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    """Runs a part of `killing.py`. `CRASH_SEED` repeats the moments of a failure."""
    folder = tmp_path.resolve()
    env = {**os.environ, "HERMES_HOME": str(folder / "home"), "HOME": str(folder / "user")}
    seed = os.environ.get("CRASH_SEED", str(random.randrange(10**6)))

    def run(what: str) -> None:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("killing.py")), what, str(folder), seed],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"CRASH_SEED={seed}\n{done.stdout}{done.stderr}"

    return run


def test_enable_and_disable(rounds: Rounds) -> None:
    """A killed one leaves the old text or the new, and nothing that stops or outlives the next."""
    rounds("config")


def test_two_that_enable(rounds: Rounds) -> None:
    """Two processes that each put 100 names into one list lose none."""
    rounds("two_enable")


def test_trust_and_untrust(rounds: Rounds) -> None:
    """A killed one leaves the old list or the new; every project in it has its whole copy."""
    rounds("trust")


def test_two_that_trust(rounds: Rounds) -> None:
    """Two processes that each trust 50 projects lose none."""
    rounds("two_trust")


def test_session_state(rounds: Rounds) -> None:
    """A killed process leaves a sound database with all that it reported as written."""
    rounds("state")


def test_one_report(rounds: Rounds) -> None:
    """A process that is killed after its first report has that report taken for its last."""
    rounds("one_report")
