"""Which rung of the ladder this machine has, found by trying."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from hermes_ext.confine import _inside
from hermes_ext.confine._model import Confinement
from hermes_ext.confine._private import PrivateFolder
from hermes_ext.confine._rung import Minimum, Rung, Support
from hermes_ext.confine._sandbox import Sandbox
from hermes_ext.exceptions import ConfinementError

# Writes where it may, and must fail where it may not; the second argument is a file outside.
_TRIAL: Final = """
import os, sys
with open(os.environ["TMPDIR"] + "/trial", "w") as file: file.write("x")
try: open(sys.argv[1], "w")
except OSError: sys.exit(0)
sys.exit(9)
"""
_NUMBERED_ALIKE: Final = ("alpha", "mips")  # these have other numbers of system calls


def support(minimum: Minimum = "namespaces", *, without: frozenset[str] = frozenset()) -> Support:
    """What this machine offers; found once per process by a forbidden write.

    Args:
        minimum: `landlock` where Landlock alone is accepted.
        without: of `namespaces`, `landlock` and `bubblewrap` those that are not to be used.
    """
    return _found(minimum, frozenset(without))


@cache
def _found(minimum: Minimum, without: frozenset[str]) -> Support:
    if not sys.platform.startswith("linux") or os.uname().machine.startswith(_NUMBERED_ALIKE):
        return Support(None, f"confinement is not available on {sys.platform}")
    reasons: list[str] = []
    for candidate in _ladder(minimum, without):
        failure = _try(candidate)
        if failure is None:
            return candidate
        reasons.append(f"{candidate.rung}: {failure}")
    why = "; ".join(reasons) or "nothing of the ladder may be used"
    return Support(None, f"confinement is not available: {why}", _advice())


def _ladder(minimum: Minimum, without: frozenset[str]) -> Iterator[Support]:
    abi = 0 if "landlock" in without else _landlock_abi()
    root = os.geteuid() == 0
    if "namespaces" not in without:
        if abi:
            yield Support(
                Rung.NAMESPACES_AND_LANDLOCK, f"namespaces and Landlock ABI {abi}", abi=abi
            )
        elif not root:
            yield Support(Rung.NAMESPACES, "namespaces, no Landlock")
    if minimum == "landlock" and abi >= 3:
        yield Support(Rung.LANDLOCK, f"Landlock ABI {abi} alone", abi=abi)


def _landlock_abi() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))))


def _try(candidate: Support) -> str | None:
    """Why a rung does not hold here, or None."""
    confinement = Confinement()
    try:
        sandbox = Sandbox(confinement, candidate, private=PrivateFolder.of(Path("/"), confinement))
        argv = [sys.executable, "-I", "-S", "-c", _TRIAL, str(sandbox.private.sentinel)]
        with _inside.inside(sandbox):
            code = subprocess.run(argv, check=False, capture_output=True).returncode
    except (OSError, ConfinementError) as error:
        return str(error)
    return None if code == 0 else f"a trial ended with status {code}"


def _advice() -> tuple[str, ...]:
    return ()
