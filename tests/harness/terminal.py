"""A person at a terminal: a program in a pseudo-terminal, its screen, and the keys they press."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte

ENTER, CTRL_C = "\r", "\x03"

# Alone in its line it waits for input; while the agent works a sign stands in front of it.
_PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"

# Newer Hermes takes an Enter within 50 ms of other keys for a pasted line end, as it sees them: on
# a busy machine it sees keys late, but shows them once it has.
_HESITATION = 0.1

# Programs ask where the cursor is, and what terminal this is, and wait for an answer.
_CURSOR, _DEVICE = b"\x1b[6n", b"\x1b[c"


class Terminal:
    """A program in a pseudo-terminal of a size, and what its screen shows."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, rows: int, cols: int) -> None:
        self.process = process
        self._master = master
        self._screen = pyte.Screen(cols, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._tail = b""
        self._acted = 0.0

    @property
    def screen(self) -> str:
        """The lines of the screen as they are now, without what is blank at their ends."""
        return "\n".join(line.rstrip() for line in self._screen.display).strip("\n")

    def press(self, keys: str) -> None:
        """Type these characters, once the program reads keys and not lines.

        A program that prints between two prompts lets the terminal read lines meanwhile, and a
        Ctrl-C is a signal then, not a key. A person takes a moment between two presses, and between
        what they have waited for and the next press.
        """
        while (left := self._acted + _HESITATION - time.monotonic()) > 0 or not self._reads_keys():
            if left > 0:
                self._read(left)
            else:
                self.wait(self._reads_keys)
        self._write(keys)
        self._acted = time.monotonic()

    def wait(self, seen: str | Callable[[], bool], timeout: float = 120) -> str:
        """Read what the program writes until the screen shows a text, or something holds.

        Returns the screen. Raises AssertionError with it if the program ends or is late.
        """
        deadline = time.monotonic() + timeout
        while not (seen in self.screen if isinstance(seen, str) else seen()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{seen} has not come:\n{self.screen}")
            if not self._read(0.2) and self.process.poll() is not None:
                raise AssertionError(f"the program has ended before {seen}:\n{self.screen}")
        self._acted = time.monotonic()
        return self.screen

    def is_idle(self) -> bool:
        """Whether the empty prompt of `hermes chat` waits for input.

        What is typed while a turn still ends, or while Hermes prints, can be lost.
        """
        return _PROMPT in map(str.rstrip, self._screen.display)

    def _reads_keys(self) -> bool:
        return not termios.tcgetattr(self._master)[3] & termios.ISIG

    def _write(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self._stream.feed(data)
        asked = self._tail + data
        for _ in range(asked.count(_CURSOR) - self._tail.count(_CURSOR)):
            cursor = self._screen.cursor
            self._write(f"\x1b[{cursor.y + 1};{cursor.x + 1}R")
        for _ in range(asked.count(_DEVICE) - self._tail.count(_DEVICE)):
            self._write("\x1b[?6c")
        self._tail = asked[-3:]
        return bool(data)


@contextmanager
def terminal(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    rows: int = 50,
    cols: int = 120,
) -> Iterator[Terminal]:
    """Start a program as the leader of a session of its own; it is killed at the end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    settings = {**env, "TERM": "xterm-256color", "LINES": str(rows), "COLUMNS": str(cols)}
    # Popen has no way to give a session its terminal.
    start = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", start, *command],
        cwd=cwd,
        env=settings,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master, rows, cols)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)
