"""Forks in mid-turn, clocks that jump, disks that are full or read-only: the guard holds.

Each is a part of `outages.py`, in a process of its own.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


def outage(what: str, folder: Path, within: Sequence[str] = ()) -> None:
    done = subprocess.run(
        [*within, sys.executable, "-m", "tests.load.outages", what, str(folder)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HOME": str(folder / "user"), "HERMES_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@functools.cache
def own_mounts() -> tuple[str, ...]:
    """The command that gives a program mounts of its own; () where it cannot be had."""
    if shutil.which("unshare") is None:
        return ()
    for command in (("unshare", "--user", "--map-root-user", "--mount"), ("unshare", "--mount")):
        trying = (*command, "sh", "-c", "mount -t tmpfs none /mnt")
        if subprocess.run(trying, capture_output=True, check=False).returncode == 0:
            return command
    return ()


@needs_fork
def test_forks_in_the_middle_of_turns(tmp_path: Path) -> None:
    """A child judges as its parent does, whatever the parent's threads hold; nothing hangs, and
    every decision stands in the log once.
    """
    outage("fork", tmp_path)


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    """Verdicts, limits and state do not depend on the time of day; a start by a wrong clock
    forgets nothing.
    """
    outage("clock", tmp_path)


@pytest.mark.parametrize("what", ["full", "read-only"])
def test_a_disk_that_takes_nothing(tmp_path: Path, what: str) -> None:
    """Guards hold, also of a start in the middle of it; each outage is told once; files of the
    person stay as they are; with room again what waited is stored.
    """
    within = own_mounts()
    if not within:
        pytest.skip("no mounts of one's own: `unshare` is missing or not allowed")
    outage(what, tmp_path, within)
