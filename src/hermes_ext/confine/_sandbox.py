"""How a program is started so that it is confined."""

from __future__ import annotations

import marshal
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from hermes_ext.confine._environment import confined_environment
from hermes_ext.confine._model import Confinement
from hermes_ext.confine._private import PrivateFolder
from hermes_ext.confine._rung import Rung, Support
from hermes_ext.confine._sockets import daemons_folders, listening
from hermes_ext.exceptions import ConfinementError

_READY: Final = b"+"  # the helper's own word for: everything held
_LONGEST_START: Final = 20.0  # seconds; a machine that is busy takes a tenth of one


@define
class Start:
    """One start of a confined program, for callers that start it themselves.

    Start `argv` with `environment` and `pass_fds`, then call `confirm`. As a context manager it
    closes this process's ends.

    Attributes:
        argv: what to start.
        environment: the variables to start it with; the program's own are in its specification.
        pass_fds: the descriptors that the started process must inherit.
    """

    argv: list[str | bytes]
    environment: dict[str, str]
    pass_fds: tuple[int, ...]
    _reading: int
    _closed: list[int] = field(factory=list)

    def confirm(self) -> None:
        """Wait until the program runs confined.

        Raises:
            ConfinementError: it could not be confined, so it does not run.
            OSError: it could not be started, as without us: no such file, no permission.
        """
        self._close(*self.pass_fds_of_ours)
        said = _read_to_end(self._reading)
        _raise_for(said)

    @property
    def pass_fds_of_ours(self) -> tuple[int, ...]:
        """Those of `pass_fds` that this object made."""
        return self.pass_fds[:2]

    def __enter__(self) -> Start:
        return self

    def __exit__(self, *_: object) -> None:
        self._close(*self.pass_fds_of_ours, self._reading)

    def _close(self, *fds: int) -> None:
        for fd in fds:
            if fd not in self._closed:
                self._closed.append(fd)
                os.close(fd)


@frozen
class Sandbox:
    """A confinement as this machine keeps it.

    Args:
        confinement: what may be written, and whether there is a network.
        support: what this machine offers, as `support()` found it.
        private: the folder for temporary files and caches; by default the one of this process
            for the working directory.
        sockets: sockets of the caller's own that stay reachable.
        files: single files that exist and may be written, e.g. one that the caller reads later.

    Raises:
        ConfinementError: this machine cannot keep this confinement.
    """

    confinement: Confinement
    support: Support
    private: PrivateFolder = field()
    sockets: tuple[Path, ...] = field(default=(), converter=tuple)
    files: tuple[Path, ...] = field(default=(), converter=tuple)

    @private.default
    def _of_this_process(self) -> PrivateFolder:
        return PrivateFolder.of(Path.cwd(), self.confinement)

    def __attrs_post_init__(self) -> None:
        if reason := self.support.reason_not(self.confinement):
            raise ConfinementError(reason)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """A program's variables, with temporary files and caches in the private folder."""
        return confined_environment(environment, self.private.path)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """What to start instead of `argv`, for callers that can pass no descriptor.

        A set-up that fails ends with status 126 and a line on standard error. The environment
        should be one of `environment()`. The specification lies beside the private folder and
        is good for any number of starts.
        """
        spec = self._specification(status=None, keep=(), environment=None)
        name = self.private.sentinel.with_name("specification")
        fd, path = tempfile.mkstemp(dir=name.parent, prefix=name.name)
        with open(fd, "wb") as file:
            file.write(marshal.dumps(spec))
        return [os.fsdecode(each) for each in (*self._prefix(path), *argv)]

    def start(
        self,
        argv: Sequence[str | bytes],
        environment: Mapping[Any, Any] | None = None,
        *,
        executable: str | bytes | None = None,
        pass_fds: Iterable[int] = (),
        restore_signals: bool = True,
    ) -> Start:
        """Prepare one start of a program.

        Args:
            argv: the program and its arguments.
            environment: its variables; default this process's. Temporary files and caches are
                pointed into the private folder.
            executable: the program's file, if it is not `argv[0]`.
            pass_fds: descriptors beside 0 to 2 that the program keeps.
            restore_signals: as in `subprocess.Popen`.

        Raises:
            ConfinementError: a writable path is not what it was.
        """
        passed = tuple(pass_fds)
        reading, status = os.pipe()
        spec = self._specification(
            status=status,
            keep=passed,
            environment=self._as_bytes(os.environ if environment is None else environment),
            programs=[os.fsencode(executable)] if executable else None,
            restore_signals=restore_signals,
        )
        memory = os.memfd_create("confinement")
        with open(memory, "wb", closefd=False) as file:
            file.write(marshal.dumps(spec))
        os.lseek(memory, 0, os.SEEK_SET)
        return Start(
            [*self._prefix(f"/proc/self/fd/{memory}"), *argv],
            {name: os.environ[name] for name in _OF_PYTHON if name in os.environ},
            (memory, status, *passed),
            reading,
        )

    def _as_bytes(self, environment: Mapping[Any, Any]) -> dict[bytes, bytes]:
        text = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        confined = self.environment(text)
        return {os.fsencode(name): os.fsencode(value) for name, value in confined.items()}

    def _prefix(self, specification: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.private.helper), specification]

    def _specification(self, **more: Any) -> dict[str, Any]:
        writable = [_identified(path) for path in self._writable()]
        keep = (*self._writable(), *self.sockets, *self.files)
        hidden = [
            each for each in daemons_folders() if not any(p.is_relative_to(each) for p in keep)
        ]
        masked = [each for each in listening() if self._is_masked(each, hidden)]
        return {
            "mode": _MODES.get(self.support.rung) if self.support.rung else None,
            "abi": self.support.abi,
            "network": self.confinement.network,
            "writable": writable,
            "hidden": [os.fsencode(each) for each in hidden],
            "masked": [os.fsencode(each) for each in masked],
            "sentinel": os.fsencode(self.private.sentinel),
            "programs": None,
            "restore_signals": True,
            "ignored_by_python": [int(signal.SIGPIPE), int(signal.SIGXFSZ)],
            **more,
        }

    def _writable(self) -> tuple[Path, ...]:
        paths = (*self.confinement.writable, self.private.path, *self.files)
        return tuple(
            path
            for path in dict.fromkeys(paths)
            if not any(path != each and path.is_relative_to(each) for each in paths)
        )

    def _is_masked(self, socket: Path, hidden: Iterable[Path]) -> bool:
        return socket not in self.sockets and not any(
            socket.is_relative_to(each) for each in (*self._writable(), *hidden)
        )


# The helper's own variables; the program's come later, so that LD_PRELOAD acts when it is confined.
_OF_PYTHON: Final = ("LD_LIBRARY_PATH", "PATH")
_MODES: Final = {
    Rung.NAMESPACES_AND_LANDLOCK: "namespaces",
    Rung.NAMESPACES: "namespaces",
    Rung.BUBBLEWRAP: "inner",
    Rung.LANDLOCK: "landlock",
}


def _identified(path: Path) -> tuple[bytes, int, int]:
    try:
        seen = path.lstat()
    except OSError as error:
        raise ConfinementError(f"cannot be writable: {error.strerror}", path=path) from error
    return os.fsencode(path), seen.st_dev, seen.st_ino


def _read_to_end(fd: int) -> bytes:
    said, until = b"", time.monotonic() + _LONGEST_START
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while poll.poll(max(0, until - time.monotonic()) * 1000):
        part = os.read(fd, 4096)
        if not part:
            return said
        said += part
    return b"!the set-up took too long"


def _raise_for(said: bytes) -> None:
    """Nothing but the helper's own word says that a program runs confined."""
    if said == _READY:
        return
    if said.startswith(_READY + b"x"):
        number = int(said[2:])
        raise OSError(number, os.strerror(number))
    reason = said[1:].decode(errors="replace") if said.startswith(b"!") else "the helper ended"
    raise ConfinementError(f"the process could not be confined: {reason}")
