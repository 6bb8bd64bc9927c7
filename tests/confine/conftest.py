"""The rungs of the ladder, each as this machine has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import debian
from tests.confine.attacks.cell import LADDER

from hermes_ext.confine import Confinement, Rung, Sandbox, Support, support


@pytest.fixture(scope="session", autouse=True)
def bubblewrap() -> None:
    """The rung of this name needs its program; it is not part of every Debian."""
    if shutil.which("bwrap") is None and debian.can_install():
        debian.install(["bubblewrap"])


def on(rung: Rung) -> Support:
    """What this machine offers on a rung; a test that needs it is skipped where there is none."""
    minimum, without = LADDER[rung]
    found = support(minimum, without=frozenset(without))
    if found.rung is not rung:
        pytest.skip(f"not the rung {rung}: {found.why}")
    return found


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """On the best rung; `plans` may be written."""
    found = support()
    if found.rung is None:
        pytest.skip(found.why)
    return _with_plans(tmp_path, found)


@pytest.fixture(params=LADDER, ids=lambda rung: rung.name.lower())
def each_sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    """On every rung; `plans` may be written."""
    return _with_plans(tmp_path, on(request.param))


def _with_plans(folder: Path, found: Support) -> Sandbox:
    plans = folder / "plans"
    plans.mkdir()
    return Sandbox(Confinement(writable=(plans,)), found)
