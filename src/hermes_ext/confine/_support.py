"""Which level of confinement this machine has, found by trying."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, get_args

from attrs import evolve

from hermes_ext.confine import _inside
from hermes_ext.confine._model import Confinement
from hermes_ext.confine._private import PrivateFolder
from hermes_ext.confine._rung import Minimum, Rung, Support, gaps
from hermes_ext.confine._sandbox import NOT_CONFINED, PYTHON, Sandbox
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
# Settings below /proc/sys that keep a user from making namespaces.
_BY_APP_ARMOR: Final = "kernel/apparmor_restrict_unprivileged_userns"
_BY_DEBIAN: Final = "kernel/unprivileged_userns_clone"
_MOST: Final = "user/max_user_namespaces"
_NUMBERED_OTHERWISE: Final = ("alpha", "mips")  # these have other numbers of system calls


def support(minimum: Minimum = "namespaces", *, without: frozenset[str] = frozenset()) -> Support:
    """What this machine offers, found by a forbidden write.

    The strongest level, once found, is kept for this process. Anything weaker is kept for half a
    minute: something may have been in the way that has gone, such as too many open files.

    Args:
        minimum: `landlock` where Landlock alone is accepted.
        without: of `namespaces`, `landlock` and `bubblewrap` those that are not to be used.

    Raises:
        ConfinementError: the minimum is unknown.
    """
    if minimum not in get_args(Minimum):
        raise ConfinementError(
            f"minimum= is {minimum!r}",
            hint="Write 'namespaces', or 'landlock' where Landlock alone is accepted",
        )
    key = (minimum, frozenset(without))
    found, until = _known.get(key, (None, 0.0))
    if found is None or until < time.monotonic():
        found = _found(*key)
        kept = math.inf if found.rung in _STRONGEST else time.monotonic() + _KEPT
        _known[key] = found, kept
    return found


_known: Final[dict[tuple[Minimum, frozenset[str]], tuple[Support, float]]] = {}
_STRONGEST: Final = (Rung.NAMESPACES_AND_LANDLOCK, Rung.NAMESPACES)
_KEPT: Final = 30.0  # seconds that anything weaker is kept


def _found(minimum: Minimum, without: frozenset[str]) -> Support:
    if not sys.platform.startswith("linux") or os.uname().machine.startswith(_NUMBERED_OTHERWISE):
        return Support(None, f"confinement needs Linux, and this is {sys.platform}")
    reasons: list[str] = []
    for rung, candidate in _ladder(minimum, without):
        failure = candidate if isinstance(candidate, str) else _try(candidate)
        if isinstance(candidate, Support) and failure is None:
            weak = candidate.rung is Rung.LANDLOCK
            return evolve(candidate, advice=_advice(minimum, without)) if weak else candidate
        reasons.append(f"{rung}: {failure}")
    why = f"no level of confinement works on this machine ({'; '.join(reasons)})"
    return Support(None, why, _advice(minimum, without))


def _ladder(minimum: Minimum, without: frozenset[str]) -> Iterator[tuple[str, Support | str]]:
    """Each level, the strongest first, or why it is left out."""
    abi = 0 if "landlock" in without else _landlock_abi()
    top = Rung.NAMESPACES_AND_LANDLOCK if abi else Rung.NAMESPACES
    if "namespaces" in without:
        yield top, "switched off"
    elif not abi and not os.geteuid():
        # Root reaches processes outside that have as few rights, through /proc.
        yield top, "root needs Landlock with them, and there is none"
    else:
        yield top, _offer(top, abi)
    if "bubblewrap" in without:
        yield Rung.BUBBLEWRAP, "switched off"
    else:
        program = _bubblewrap()
        offer = evolve(_offer(Rung.BUBBLEWRAP, abi), bubblewrap=program)
        yield Rung.BUBBLEWRAP, offer if program else "not installed"
    if minimum != "landlock":
        yield Rung.LANDLOCK, "weaker than extensions.confine_minimum"
    elif abi < _LEAST_ABI:
        yield Rung.LANDLOCK, f"ABI {abi}, needs {_LEAST_ABI}" if abi else "no Landlock"
    else:
        yield Rung.LANDLOCK, _offer(Rung.LANDLOCK, abi)


@cache  # a confined program may be able to put another one into a folder of PATH
def _bubblewrap() -> str:
    program = shutil.which("bwrap")
    return os.path.realpath(program) if program else ""


def _offer(rung: Rung, abi: int) -> Support:
    version = f"Landlock ABI {abi}" if abi else "no Landlock"
    return Support(rung, f"{rung} ({version})", gaps=gaps(rung, abi), abi=abi)


def _landlock_abi() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))))


def _try(candidate: Support) -> str | None:
    """Why a level does not hold here, or None."""
    confinement = Confinement()
    try:
        sandbox = Sandbox(confinement, candidate, private=PrivateFolder.of(Path("/"), confinement))
        argv = [sys.executable, "-I", "-S", "-c", _TRIAL, str(sandbox.private.sentinel)]
        with _inside.outside(), _inside.inside(sandbox):
            code = subprocess.run(argv, check=False, capture_output=True).returncode
    except (OSError, ConfinementError) as error:
        return str(error).removeprefix(f"{NOT_CONFINED}: ")
    return None if code == 0 else f"a trial ended with status {code}"


def _advice(minimum: Minimum, without: frozenset[str]) -> tuple[str, ...]:
    """What a person can do, by what is seen to be in the way."""
    user, accepted = os.geteuid() != 0, minimum == "landlock"
    abi = 0 if "landlock" in without else _landlock_abi()
    app_armor = user and _setting(_BY_APP_ARMOR) == "1"
    in_container = any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv")))
    lines = (
        (
            app_armor,
            f"give Python an AppArmor profile: put `abi <abi/4.0>, profile hermes-ext {PYTHON}"
            " flags=(unconfined) { userns, }` into /etc/apparmor.d/hermes-ext, then run: sudo"
            " apparmor_parser -r /etc/apparmor.d/hermes-ext",
        ),
        (app_armor, _sysctl(_BY_APP_ARMOR, 0)),
        (user and _setting(_BY_DEBIAN) == "0", _sysctl(_BY_DEBIAN, 1)),
        (user and _setting(_MOST) == "0", _sysctl(_MOST, 10_000)),
        (
            in_container,
            "start the container with: docker run --cap-add SYS_ADMIN"
            " --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
        ),
        (not _bubblewrap(), "install bubblewrap"),
        (not abi, "use a kernel with Landlock, and add landlock to its lsm= boot parameter"),
        (
            abi >= _LEAST_ABI and not accepted,
            "accept the weakest level, Landlock alone, with extensions.confine_minimum: landlock."
            " A confined program can then also change modes, owners and times of files, and ask"
            " daemons such as docker to write for it",
        ),
    )
    return tuple(line for applies, line in lines if applies)


def _sysctl(name: str, value: int) -> str:
    line = f"{name.replace('/', '.')}={value}"
    return f"allow user namespaces: sudo sysctl -w {line} (after a boot too: in /etc/sysctl.d/)"


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
