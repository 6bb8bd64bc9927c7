"""Many turns leave nothing behind; `python -m tests.load.soak` does many more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_ext.chain.aio import LOOPS_KEPT

# Figures of quiet moments differ by some 400 blocks with what threads keep: a slope of one object
# in two turns is to be well above that.
TURNS = 3600
PROGRAM = """\
import json, sys
from pathlib import Path
from attrs import asdict
from tests.load import soak
figures = soak.run(Path(sys.argv[1]), int(sys.argv[2]), 4)
print(json.dumps({**asdict(figures), "bound": soak.most_threads(figures.threads_before)}))
"""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """In a process of its own, where nothing else is kept."""
    home = tmp_path_factory.mktemp("soak")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), str(TURNS)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HOME": str(home), "PYTHONPATH": os.curdir},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    found: dict = json.loads(done.stdout)
    return found


def test_all_verdicts_are_right(figures: dict) -> None:
    assert figures["wrong"] == []
    assert figures["turns"] == TURNS


def test_nothing_is_left(figures: dict) -> None:
    """No map that is for open turns or running handlers holds anything when all are over."""
    assert set(figures["left"].values()) == {0}, figures["left"]


def test_memory_does_not_grow_with_the_turns(figures: dict) -> None:
    """Not by an object a turn, nor by one in two: what grows there are caches that fill."""
    middle, last = figures["measured"][1], figures["measured"][-1]
    grown = (last["blocks"] - middle["blocks"]) / (last["turns"] - middle["turns"])
    assert grown < 0.5, figures["measured"]


def test_threads_and_descriptors_are_bounded(figures: dict) -> None:
    assert figures["most_threads"] <= figures["bound"]
    # Idle workers, loops of sessions that are over, the log's, the watchdog's, and asyncio's own.
    kept = 8 + LOOPS_KEPT + 1 + 1 + 8
    assert figures["threads_after"] <= figures["threads_before"] + kept
    measured = figures["measured"]
    # Each loop that is kept has three.
    assert measured[-1]["descriptors"] <= measured[0]["descriptors"] + 4 + 3 * LOOPS_KEPT
    assert figures["most_descriptors"] <= measured[-1]["descriptors"] + 32 + 3 * LOOPS_KEPT
