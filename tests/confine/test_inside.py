"""Every process that a context starts is confined, however it is started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_ext.confine import Confinement, ConfinementError, Sandbox, inside, outside


def test_only_what_is_writable_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command writes below a writable path and into TMPDIR, and nowhere else."""
    script = "echo a > plans/a && echo b > $TMPDIR/b && echo c > c"
    with inside(sandbox) as run:
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True
        )
    assert done.returncode != 0
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["plans", "a"]
    assert run.started == 1
    assert run.refused(done.stderr)


def test_lifted(sandbox: Sandbox, tmp_path: Path) -> None:
    """The host's own work in between is not confined, nor is what comes after."""
    with inside(sandbox), outside():
        subprocess.run(["touch", tmp_path / "a"], check=True)
        assert os.system(f"touch {tmp_path / 'b'}") == 0
    subprocess.run(["touch", tmp_path / "c"], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c", "plans"}


async def test_asyncio(sandbox: Sandbox, tmp_path: Path) -> None:
    """What asyncio starts is confined too."""
    with inside(sandbox):
        process = await asyncio.create_subprocess_exec(
            "touch", tmp_path / "a", stderr=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 1


@pytest.mark.parametrize(
    "start",
    [
        lambda: os.system("true"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.spawnvp(os.P_WAIT, "true", ["true"]),
        lambda: os.execv("/bin/true", ["true"]),
    ],
    ids=["system", "posix_spawn", "spawnvp", "exec"],
)
def test_other_ways_are_refused(start: object, sandbox: Sandbox) -> None:
    """What starts a process past subprocess is refused, unless it is the host's own work."""
    assert callable(start)
    hint = r"Start it with subprocess, or within outside\(\)"
    with inside(sandbox) as run, pytest.raises(ConfinementError, match=hint):
        start()
    assert run.failure


_AT_A_FORK_SERVER = """
import multiprocessing, pathlib, sys
from hermes_ext.confine import Confinement, ConfinementError, Sandbox, inside, support

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    first = context.Process(target=print)
    first.start()
    first.join()
    with inside(Sandbox(Confinement(), support())) as run:
        try:
            context.Process(target=pathlib.Path(sys.argv[1]).touch).start()
        except ConfinementError:
            print(run.failure)
"""


def test_a_fork_server_that_runs(sandbox: Sandbox, tmp_path: Path) -> None:
    """It is outside, so that what it starts would be, too."""
    (tmp_path / "main.py").write_text(_AT_A_FORK_SERVER)
    argv = [sys.executable, tmp_path / "main.py", tmp_path / "outside"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert "fork server starts a process" in done.stdout
    assert not (tmp_path / "outside").exists()


def test_one_inside_another(sandbox: Sandbox, tmp_path: Path) -> None:
    """The stricter one holds; where neither is, there is an error."""
    wider = Sandbox(Confinement(writable=(tmp_path,)), sandbox.support)
    other = Sandbox(Confinement(network="none", writable=(tmp_path,)), sandbox.support)
    with inside(sandbox):
        with inside(wider) as run:
            assert run.sandbox is sandbox
        with pytest.raises(ConfinementError), inside(other):
            pass
    with inside(wider), inside(sandbox) as run:
        assert run.sandbox is sandbox


def test_a_program_that_is_not_there(sandbox: Sandbox) -> None:
    """The error is the one that `subprocess` raises without confinement."""
    with inside(sandbox), pytest.raises(FileNotFoundError, match="no-such-program"):
        subprocess.run(["no-such-program"], check=False)


def test_what_a_caller_sees(sandbox: Sandbox) -> None:
    """`args` and exceptions name the program and not the helper."""
    with inside(sandbox), pytest.raises(subprocess.CalledProcessError) as raised:
        subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=True)
    assert raised.value.cmd[0] == sys.executable
    assert raised.value.returncode == 3


def test_replaced_meanwhile(sandbox: Sandbox, tmp_path: Path) -> None:
    """A writable path that is a link by now is not writable: the process does not start."""
    (tmp_path / "plans").rmdir()
    (tmp_path / "plans").symlink_to(tmp_path)
    with inside(sandbox) as run, pytest.raises(ConfinementError):
        subprocess.run(["touch", tmp_path / "plans/a"], check=False)
    assert run.failure
    assert run.started == 0
