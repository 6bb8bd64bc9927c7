"""What a machine offers, and what a sandbox says and leaves behind."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.confine.conftest import on

from hermes_ext.confine import (
    Confinement,
    ConfinementError,
    PrivateFolder,
    Rung,
    Sandbox,
    Support,
    inside,
    support,
)
from hermes_ext.confine import _support as finding

NOTHING = frozenset({"namespaces", "landlock", "bubblewrap"})


def test_nothing_is_left() -> None:
    """Without any level there are a reason and advice, each way on a line, and no sandbox."""
    found = support("landlock", without=NOTHING)
    assert found.rung is None
    assert "no level of confinement works" in found.why
    assert found.advice
    assert all("\n" not in line for line in found.advice)
    with pytest.raises(ConfinementError, match="no level of confinement works"):
        Sandbox(Confinement(), found)


@pytest.mark.parametrize(
    ("setting", "value", "ways"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            ["AppArmor profile", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 "],
        ),
        ("kernel/unprivileged_userns_clone", "0", ["-w kernel.unprivileged_userns_clone=1 "]),
        ("user/max_user_namespaces", "0", ["sysctl -w user.max_user_namespaces=10000 "]),
    ],
)
def test_advice(monkeypatch: pytest.MonkeyPatch, setting: str, value: str, ways: list[str]) -> None:
    """Each way out is a line of its own, for what is seen to be in the way of a user."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for seen in (value, None):
        monkeypatch.setattr(finding, "_setting", {setting: seen}.get)
        advice = finding._advice("namespaces", NOTHING)
        for way in ways:
            assert sum(way in line for line in advice) == (seen is not None)


def test_what_was_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the strongest level is found for good; less is looked for again after a while."""
    best = on(Rung.NAMESPACES_AND_LANDLOCK)
    looked: list[object] = []
    found = iter([Support(None, "too many open files"), Support(Rung.LANDLOCK, "alone"), best])
    now = itertools.count(0.0, finding._KEPT / 2)
    monkeypatch.setattr(finding, "_known", {})
    monkeypatch.setattr(finding, "_found", lambda *key: looked.append(key) or next(found))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    rungs = [support("landlock").rung for _ in range(12)]
    assert len(looked) == 3
    assert rungs[0] is None
    assert rungs[-1] is best.rung


def test_looking_while_confined(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is around the caller changes nothing of what the machine has."""
    monkeypatch.setattr(finding, "_known", {})
    around = Confinement(writable=sandbox.confinement.writable, network="none")
    with inside(Sandbox(around, sandbox.support)) as run:
        assert support() == sandbox.support
    assert run.started == 0


def test_landlock_alone_only_where_it_is_accepted() -> None:
    """The weakest level is found only by those who accept it; its gaps are named."""
    on(Rung.LANDLOCK)
    others = frozenset({"namespaces", "bubblewrap"})
    assert support(without=others).rung is None
    assert any("confine_minimum: landlock" in line for line in support(without=others).advice)
    assert any(
        "change modes, owners, times" in line for line in support("landlock", without=others).gaps
    )


def test_no_network_by_an_old_landlock() -> None:
    """Landlock alone closes the network from ABI 4 on; before that there is no such confinement."""
    old = Support(Rung.LANDLOCK, "Landlock alone", abi=3)
    assert old.reason_not(Confinement()) is None
    assert "network" in (old.reason_not(Confinement(network="none")) or "")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Sandbox(support(), Confinement()), "needs a Confinement first, got Support"),
        (lambda: Sandbox(Confinement(), support), r"second, got function.*support\(\)"),
        (lambda: support("landlok"), "minimum= is 'landlok'. Write 'namespaces', or 'landlock'"),
    ],
    ids=["exchanged", "not called", "misspelled"],
)
def test_what_cannot_be_right(make: Callable[[], object], told: str) -> None:
    """A wrong argument is an error that says what to write."""
    with pytest.raises(ConfinementError, match=told):
        make()


@pytest.mark.parametrize("system", ["darwin", "win32", "freebsd14"])
def test_other_systems(system: str) -> None:
    """On other systems the package is imported, and says that there is no confinement."""
    script = (
        "import sys\n"
        "from hermes_ext.confine import support\n"  # imports modules that look at the system
        f"sys.platform = {system!r}\n"
        "found = support('landlock')\n"
        f"assert found.rung is None and {system!r} in found.why, found"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# What a refusal looks like ------------------------------------------------------------------

REFUSED = [
    "touch: cannot touch 'a': Read-only file system",
    "OSError: [Errno 30] Read-only file system: 'a'",
    "Error: EROFS: read-only file system, open 'a'",
    "sqlite3.OperationalError: attempt to write a readonly database",
    "sqlite3.OperationalError: unable to open database file",
    "failed to write `a`: Read-only file system (os error 30)",
]
NOT_REFUSED = ["", "ls: cannot access 'a': No such file or directory", "3 passed", "read-only"]
NO_NETWORK = [
    "curl: (6) Could not resolve host: example.com",
    "curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server",
    "OSError: [Errno 101] Network is unreachable",
    "<urlopen error [Errno -3] Temporary failure in name resolution>",
    "npm error code EAI_AGAIN",
]
DENIED = ["sh: 1: cannot create a: Permission denied", "PermissionError: [Errno 13] a"]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str, each_sandbox: Sandbox) -> None:
    """A refusal by the kernel is known by what programs usually say."""
    with inside(each_sandbox) as run:
        assert run.refused(f"before\n{text}\nafter")
        assert run.refused(text.encode())
        assert not run.refused(None)


@pytest.mark.parametrize("text", NO_NETWORK)
def test_no_network(text: str) -> None:
    """What programs say without a network is a refusal where there is to be none."""
    for network in ("none", "host"):
        with inside(Sandbox(Confinement(network=network), on(Rung.NAMESPACES_AND_LANDLOCK))) as run:
            assert run.refused(text) is (network == "none")


@pytest.mark.parametrize("text", [*NOT_REFUSED, *DENIED])
def test_not_refused(text: str, each_sandbox: Sandbox) -> None:
    """Other failures are none; a missing permission is one on Landlock alone."""
    alone = each_sandbox.support.rung is Rung.LANDLOCK
    with inside(each_sandbox) as run:
        assert run.refused(text) is (alone and text in DENIED)


# Sockets ------------------------------------------------------------------------------------


def _answers(path: Path) -> bool:
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    argv = [sys.executable, "-I", "-S", "-c", program, str(path)]
    return subprocess.run(argv, check=False, stderr=subprocess.DEVNULL).returncode == 0


def test_sockets_of_the_callers_own(sandbox: Sandbox, tmp_path: Path) -> None:
    """A socket that the caller names is reached, one below a writable path too, and no other."""
    paths = [tmp_path / "own", tmp_path / "plans/a", tmp_path / "other"]
    listeners = [socket.socket(socket.AF_UNIX) for _ in paths]
    for path, listener in zip(paths, listeners, strict=True):
        listener.bind(str(path))
        listener.listen()
    own = Sandbox(sandbox.confinement, sandbox.support, sockets=(tmp_path / "own",))
    with inside(own):
        assert list(map(_answers, paths)) == [True, True, False]
    for listener in listeners:
        listener.close()


# The private folder ---------------------------------------------------------------------------

_MAKES = """
import os, sys
from pathlib import Path
from hermes_ext.confine import Confinement, PrivateFolder
folder = PrivateFolder.of(Path("/"), Confinement())
print(folder.path, flush=True)
if sys.argv[1] == "fork" and not os.fork():
    os._exit(0) if os.fork() else sys.exit()
if sys.argv[1] == "fork":
    os.wait()
    assert folder.path.exists()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "leaves":
    os._exit(0)
"""


def _made(how: str, **variables: str) -> tuple[Path, int]:
    done = subprocess.run(
        [sys.executable, "-c", _MAKES, how],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    return Path(done.stdout.splitlines()[0]), done.returncode


def test_the_private_folder_is_removed(tmp_path: Path) -> None:
    """It goes with the process that made it, not with a child of that; a killed one's is swept."""
    for how in ("ends", "leaves", "fork"):
        assert _made(how, TMPDIR=str(tmp_path))[1] == 0
        assert list(tmp_path.iterdir()) == []
    left, status = _made("killed", TMPDIR=str(tmp_path))
    assert status == -signal.SIGKILL
    assert left.exists()
    _made("ends", TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_private_folder_of_a_process_that_is_not_seen(tmp_path: Path) -> None:
    """In another container it may live, with the same temporary folder: its lock tells."""
    folder = tmp_path / "hermes-ext-confined-1-1-x"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    _made("ends", TMPDIR=str(tmp_path))
    assert folder.exists()
    os.close(fd)
    _made("ends", TMPDIR=str(tmp_path))
    assert not folder.exists()


def test_what_a_program_removes_of_the_private_folder(sandbox: Sandbox) -> None:
    """The next one has it again."""
    with inside(sandbox):
        subprocess.run(["sh", "-c", 'rm -r "$TMPDIR" "$XDG_RUNTIME_DIR"'], check=True)
        subprocess.run(["sh", "-c", 'mktemp && ls "$XDG_RUNTIME_DIR"'], check=True)


def test_a_private_folder_that_is_removed(each_sandbox: Sandbox, tmp_path: Path) -> None:
    """What cleans temporary folders ends nothing, wholly or in part; others cannot take its place.

    So goes on, too, a child that has its parent's and lives longer.
    """
    base = tmp_path / "base"
    private = PrivateFolder(base / "own/private", base / "own/sentinel", base / "helper.pyc")
    sandbox = Sandbox(each_sandbox.confinement, each_sandbox.support, private)
    with inside(sandbox) as run:
        for gone in (base, private.helper, private.sentinel.parent, private.path, base):
            if gone.is_file():
                gone.unlink()
            shutil.rmtree(gone, ignore_errors=True)
            subprocess.run(["mktemp"], check=True, stdout=subprocess.DEVNULL)
        base.rename(tmp_path / "of-another")
        base.symlink_to(tmp_path / "of-another")
        with pytest.raises(ConfinementError, match="somebody else"):
            subprocess.run(["mktemp"], check=True)
    assert run.started == 5


def test_a_private_folder_is_not_shared(tmp_path: Path) -> None:
    """Calls that may do more, or belong to another project, have another."""
    some = Confinement(writable=(tmp_path,))
    kinds = [Confinement(), some, Confinement(network="none")]
    folders = [PrivateFolder.of(tmp_path, each) for each in kinds]
    folders.append(PrivateFolder.of(tmp_path / "other", Confinement()))
    assert len({folder.path for folder in folders}) == 4
    assert PrivateFolder.of(tmp_path, some) is folders[1]
    assert {oct(folder.path.stat().st_mode)[-3:] for folder in folders} == {"700"}


def test_private_folders_cost_no_descriptors(tmp_path: Path) -> None:
    """A gateway has one for each folder that people work in."""
    PrivateFolder.of(tmp_path, Confinement())
    before = os.listdir("/proc/self/fd")
    for number in range(10):
        PrivateFolder.of(tmp_path / str(number), Confinement())
    assert len(os.listdir("/proc/self/fd")) == len(before)


# Variables ------------------------------------------------------------------------------------

VARIABLES: list[tuple[dict[str, str], Callable[[Path], dict[str, str]]]] = [
    ({}, lambda private: {"TMPDIR": f"{private}/tmp", "MYPY_CACHE_DIR": f"{private}/mypy"}),
    ({"TMPDIR": "/var/tmp", "A": "b"}, lambda private: {"TMPDIR": f"{private}/tmp", "A": "b"}),
    ({}, lambda private: {"PYTEST_ADDOPTS": f"-o cache_dir={private}/pytest"}),
    (
        {"PYTEST_ADDOPTS": "-q -x"},
        lambda private: {"PYTEST_ADDOPTS": f"-q -x -o cache_dir={private}/pytest"},
    ),
]


@pytest.mark.parametrize(("given", "expected"), VARIABLES)
def test_variables(
    given: dict[str, str], expected: Callable[[Path], dict[str, str]], sandbox: Sandbox
) -> None:
    """Temporary files and caches go into the private folder, whatever was set."""
    found = sandbox.environment(given)
    assert expected(sandbox.private.path).items() <= found.items()


def test_variables_of_a_users_own(sandbox: Sandbox, tmp_path: Path) -> None:
    """One that names a writable place stays; a tool's own folder that is writable stays in use."""
    writable = (tmp_path / ".pytest_cache", tmp_path / "plans")
    writable[0].mkdir()
    own = Sandbox(Confinement(writable=writable), sandbox.support)
    found = own.environment({"RUFF_CACHE_DIR": str(tmp_path / "plans/ruff")})
    assert found["RUFF_CACHE_DIR"] == str(tmp_path / "plans/ruff")
    assert "PYTEST_ADDOPTS" not in found
