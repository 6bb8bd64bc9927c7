"""Which rung of the ladder this machine has, found by trying."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from attrs import evolve

from hermes_ext.confine import _inside
from hermes_ext.confine._model import Confinement
from hermes_ext.confine._private import PrivateFolder
from hermes_ext.confine._rung import Minimum, Rung, Support, gaps
from hermes_ext.confine._sandbox import NOT_CONFINED, Sandbox
from hermes_ext.exceptions import ConfinementError

# Writes where it may, and must fail where it may not; the second argument is a file outside.
_TRIAL: Final = """
import os, sys
with open(os.environ["TMPDIR"] + "/trial", "w") as file: file.write("x")
try: open(sys.argv[1], "w")
except OSError: sys.exit(0)
sys.exit(9)
"""
_LEAST_ABI: Final = 3  # older ones let files be truncated
_NUMBERED_OTHERWISE: Final = ("alpha", "mips")  # these have other numbers of system calls


def support(minimum: Minimum = "namespaces", *, without: frozenset[str] = frozenset()) -> Support:
    """What this machine offers; found once per process by a forbidden write.

    Args:
        minimum: `landlock` where Landlock alone is accepted.
        without: of `namespaces`, `landlock` and `bubblewrap` those that are not to be used.
    """
    return _found(minimum, frozenset(without))


@cache
def _found(minimum: Minimum, without: frozenset[str]) -> Support:
    if not sys.platform.startswith("linux") or os.uname().machine.startswith(_NUMBERED_OTHERWISE):
        return Support(None, f"confinement is not available on {sys.platform}")
    reasons: list[str] = []
    for rung, candidate in _ladder(minimum, without):
        failure = candidate if isinstance(candidate, str) else _try(candidate)
        if isinstance(candidate, Support) and failure is None:
            weak = candidate.rung is Rung.LANDLOCK
            return evolve(candidate, advice=_advice(minimum, without)) if weak else candidate
        reasons.append(f"{rung}: {failure}")
    why = f"confinement is not available here: {'; '.join(reasons)}"
    return Support(None, why, _advice(minimum, without))


def _ladder(minimum: Minimum, without: frozenset[str]) -> Iterator[tuple[str, Support | str]]:
    """Each rung, or why it is left out."""
    abi = 0 if "landlock" in without else _landlock_abi()
    top = Rung.NAMESPACES_AND_LANDLOCK if abi else Rung.NAMESPACES
    if "namespaces" in without:
        yield top, "switched off"
    elif not abi and not os.geteuid():
        # Root reaches processes outside that have as few rights, through /proc.
        yield top, "no Landlock, which root needs with them"
    else:
        yield top, _offer(top, abi)
    if "bubblewrap" in without:
        yield Rung.BUBBLEWRAP, "switched off"
    else:
        there = shutil.which("bwrap")
        yield Rung.BUBBLEWRAP, _offer(Rung.BUBBLEWRAP, abi) if there else "not installed"
    if minimum != "landlock":
        yield Rung.LANDLOCK, "not accepted by confine_minimum"
    elif abi < _LEAST_ABI:
        yield Rung.LANDLOCK, f"the kernel has ABI {abi} of {_LEAST_ABI}" if abi else "no Landlock"
    else:
        yield Rung.LANDLOCK, _offer(Rung.LANDLOCK, abi)


def _offer(rung: Rung, abi: int) -> Support:
    version = f"Landlock ABI {abi}" if abi else "no Landlock"
    return Support(rung, f"{rung} ({version})", gaps=gaps(rung, abi), abi=abi)


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
        return str(error).removeprefix(f"{NOT_CONFINED}: ")
    return None if code == 0 else f"a trial ended with status {code}"


def _advice(minimum: Minimum, without: frozenset[str]) -> tuple[str, ...]:
    """What a person can do, by what is seen to be in the way."""
    python = os.path.realpath(sys.executable)
    root, accepted = os.geteuid() == 0, minimum == "landlock"
    abi = 0 if "landlock" in without else _landlock_abi()
    in_container = any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv")))
    lines = (
        (
            not root and _setting("kernel/apparmor_restrict_unprivileged_userns") == "1",
            f"AppArmor: give {python} a profile that has `userns,`, or set"
            " kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            not root and _setting("kernel/unprivileged_userns_clone") == "0",
            "let users make namespaces: sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            not root and _setting("user/max_user_namespaces") == "0",
            "let users make namespaces: sysctl -w user.max_user_namespaces=10000",
        ),
        (
            in_container,
            "start the container so that it may make namespaces: docker run --cap-add SYS_ADMIN"
            " --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
        ),
        (not shutil.which("bwrap"), "install bubblewrap"),
        (not abi, "use a kernel with Landlock, and name landlock in its lsm= parameter"),
        (
            abi >= _LEAST_ABI and not accepted,
            "accept Landlock alone: extensions.confine_minimum: landlock; what it does not hold:"
            f" {'; '.join(gaps(Rung.LANDLOCK, abi))}",
        ),
    )
    return tuple(line for applies, line in lines if applies)


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
