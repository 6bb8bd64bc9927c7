"""Processes: how they are started, waited for and ended, and what they left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol


class Started(Protocol):
    """A process that was started; `subprocess.Popen` is one."""

    @property
    def pid(self) -> int: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...


Start = Callable[[Sequence[str], Path, Mapping[str, str], IO[bytes], IO[bytes]], Started]


def cold_start(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], out: IO[bytes], err: IO[bytes]
) -> Started:
    """A process of its own session, without input; `out` and `err` may be one file."""
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Run:
    """What one child process did. Its repr shows the output, for failing assertions."""

    args: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float

    def __repr__(self) -> str:
        head = f"{' '.join(self.args)!r} -> {self.returncode} in {self.seconds:.1f} s"
        return f"<Run {head}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}\n>"

    def check(self) -> Run:
        """Return self; raises AssertionError with the output unless the exit code is 0."""
        if self.returncode != 0:
            raise AssertionError(repr(self))
        return self


def run(
    start: Start,
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    output: Path,
    timeout: float,
) -> Run:
    """Start a process and wait for its end, at most `timeout` seconds.

    output: the path that its standard output is written to, with `.out` as its suffix, and its
    standard error with `.err`.

    Raises TimeoutError, with the output so far, after killing the process group.
    """
    # Files, not pipes: a grandchild that outlives the child would keep a pipe open.
    out, err = output.with_suffix(".out"), output.with_suffix(".err")
    begun = time.monotonic()
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = start(command, cwd, env, stdout, stderr)
        code = wait(process, timeout)
    seconds = time.monotonic() - begun
    told = Run(tuple(command), -1 if code is None else code, text_of(out), text_of(err), seconds)
    if code is None:
        raise TimeoutError(f"still running after {timeout} s: {told!r}")
    return told


def wait(process: Started, timeout: float) -> int | None:
    """The exit code, or None after killing a process that is late. No child is left behind."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(process)
        process.wait()


def ends_soon(process: Started) -> bool:
    """Whether the process has ended, now or within a moment; waits for that moment."""
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        return False
    return True


def stop(process: Started) -> None:
    """Ask a process to end, and kill it with its group when it takes long."""
    process.terminate()
    wait(process, 20)


def kill_group(process: Started) -> None:
    """Kill a process with all that it has started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.terminate()


def text_of(path: Path) -> str:
    """The text of a file, with replacement characters where it is not UTF-8."""
    return path.read_bytes().decode("utf-8", "replace")
