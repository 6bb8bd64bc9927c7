"""Ctrl-C: it comes through as itself, wherever it falls, and tests can send it everywhere."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hermes_ext
from hermes_ext._files import locked, replace_file
from hermes_ext.trust import tree
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import TrustStore
from hermes_ext.trust.tree import read_tree
from hermes_ext.turns.decisions.log import DecisionLog

_OURS = str(Path(hermes_ext.__file__).parent)


def interrupted(at: int, work: Callable[[], object]) -> bool:
    """Do work, with a KeyboardInterrupt before the n-th step that our code takes.

    Returns whether there were so many steps.
    """
    left = at

    def step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return left < 0


def replace(folder: Path) -> object:
    with locked(folder / "file"):
        return replace_file(folder / "file", b"new", durable=True)


def append_to_a_full_log(folder: Path) -> object:
    (folder / "log").write_bytes(b"{}\n")
    return DecisionLog(folder / "log", max_bytes=1)._append(b"{}\n")


def read_a_project(folder: Path) -> object:
    return read_tree(Project(folder / "repo"))


def read_what_is_trusted(folder: Path) -> object:
    return TrustStore(folder / "home").entries()


WORK = {
    one.__name__: one
    for one in (replace, append_to_a_full_log, read_a_project, read_what_is_trusted)
}


def everywhere(folder: Path, work: Callable[[Path], object]) -> None:
    """Do the work as often as it has steps, each time interrupted one step later."""
    # Waiting for the disk and for its clock is not what is tested.
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda descriptor: None)
    patch.setattr(tree, "_TICK_NS", 0)
    (folder / "home").mkdir()
    extension = folder / "repo" / ".hermes" / "extensions" / "one"
    extension.mkdir(parents=True)
    (extension / "__init__.py").write_text("x = 1\n")
    TrustStore(folder / "home").trust(read_tree(Project(folder / "repo")))
    work(folder)
    for at in itertools.count():
        try:
            came = interrupted(at, lambda: work(folder))
        except KeyboardInterrupt:
            continue
        assert not came, f"swallowed at step {at}"
        assert at > 50
        return


@pytest.mark.parametrize("work", WORK)
def test_an_interrupt_comes_through(tmp_path: Path, work: str) -> None:
    """Wherever it falls between two steps, no clean-up fails and takes its place.

    A descriptor that is closed twice would do so, or close what another thread has opened. In its
    own process: an exception between two arbitrary instructions, where a real interrupt never
    falls, leaves CPython with a call's keyword names or with an exception as the current one.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_interrupts", str(tmp_path.resolve()), work],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_tests_can_be_interrupted() -> None:
    """Where a shell has interrupts ignored, in its background, tests and their children do not."""
    code = "import signal, tests.conftest; print(signal.getsignal(signal.SIGINT).__name__)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[1],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert told.stdout == "default_int_handler\n"


if __name__ == "__main__":
    everywhere(Path(sys.argv[1]), WORK[sys.argv[2]])
