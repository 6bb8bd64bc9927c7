"""How a program is started so that it is confined."""

from __future__ import annotations

import marshal
import os
import re
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from hermes_ext.confine._environment import confined_environment
from hermes_ext.confine._model import Confinement, listed, of_kind
from hermes_ext.confine._private import PrivateFolder
from hermes_ext.confine._rung import Rung, Support
from hermes_ext.confine._sockets import below, daemons_folders, listening
from hermes_ext.exceptions import ConfinementError

NOT_CONFINED: Final = "the process could not be confined"
_READY: Final = b"+"  # the helper's own word for: everything held
# What starts a program, looked up once: a later start must not run what a confined one put there.
PYTHON: Final = os.path.realpath(sys.executable)
_LIBRARY: Final = os.path.dirname(os.path.realpath(os.__file__))
_LONGEST_START: Final = 60.0  # seconds; a machine that is busy takes a tenth of one
# Then the program starts. A child that another thread forks meanwhile keeps the pipe open.
_LONGEST_END: Final = 2.0


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

    argv: list[str]
    environment: dict[str, str]
    pass_fds: tuple[int, ...]
    _inherited: set[int]
    _reading: int

    def confirm(self) -> None:
        """Wait until the program runs confined.

        Raises:
            ConfinementError: it could not be confined, so it does not run.
            OSError: it could not be started, as without us: no such file, no permission.
        """
        self._close_inherited()  # the end is read when nobody else has the other one open
        _raise_for(_read_to_end(self._reading))

    def __enter__(self) -> Start:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_inherited()
        os.close(self._reading)

    def _close_inherited(self) -> None:
        while self._inherited:
            os.close(self._inherited.pop())


_HOW_TO_MAKE: Final = "Write Sandbox(confinement, support())"


def _a_confinement(value: Confinement) -> Confinement:
    return of_kind(value, Confinement, "Sandbox needs a Confinement first", _HOW_TO_MAKE)


def _a_support(value: Support) -> Support:
    return of_kind(value, Support, "Sandbox needs a Support second", _HOW_TO_MAKE)


@frozen
class Sandbox:
    """A confinement as this machine keeps it.

    Args:
        confinement: what may be written, and whether there is a network.
        support: what this machine offers, as `support()` found it.
        private: the folder for temporary files and caches; by default the one of this process
            for the working directory.
        sockets: sockets of the caller's own that stay reachable.

    Raises:
        ConfinementError: this machine cannot keep this confinement, a writable path has
            something in it that starts confined programs, or an argument is of another kind.
    """

    confinement: Confinement = field(converter=_a_confinement)
    support: Support = field(converter=_a_support)
    private: PrivateFolder = field()
    sockets: tuple[Path, ...] = field(default=(), converter=tuple)

    @private.default
    def _of_this_process(self) -> PrivateFolder:
        return PrivateFolder.of(Path.cwd(), self.confinement)

    def __attrs_post_init__(self) -> None:
        if reason := self.support.reason_not(self.confinement):
            raise ConfinementError(reason)
        for path in map(Path, self._starters()):
            for each in self.confinement.writable:
                if path.is_relative_to(each) or each.is_relative_to(path):
                    raise ConfinementError(f"cannot be writable: {path} starts programs", path=each)

    def _starters(self) -> tuple[str, ...]:
        """What runs before a program is confined."""
        ours = (PYTHON, _LIBRARY, str(self.private.helper), self.support.bubblewrap)
        return (*filter(None, ours), *map(os.path.realpath, _libraries()))

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """A program's variables, with temporary files and caches in the private folder."""
        return confined_environment(environment, self.private.path, self._writable())

    def start(
        self,
        argv: Sequence[str | bytes],
        environment: Mapping[Any, Any] | None = None,
        *,
        executable: str | bytes | None = None,
        cwd: str | bytes | os.PathLike[Any] | None = None,
        pass_fds: Iterable[int] = (),
        restore_signals: bool = True,
    ) -> Start:
        """Prepare one start of a program.

        Args:
            argv: the program and its arguments.
            environment: its variables; default this process's. Temporary files and caches are
                pointed into the private folder.
            executable: the program's file, if it is not `argv[0]`.
            cwd: the directory in which the caller will start it; default this process's.
            pass_fds: descriptors beside 0 to 2 that the program keeps.
            restore_signals: as in `subprocess.Popen`.

        Raises:
            ConfinementError: `argv` is no list, or a writable path is not what it was.
            ValueError: a text has a null byte, or the name of a variable is none.
        """
        argv = listed(argv, "argv=")
        passed = tuple(pass_fds)
        reading, status = map(_beside_standard, os.pipe())
        memory = _beside_standard(os.memfd_create("confinement"))
        start = Start([], _own_variables(), (memory, status, *passed), {memory, status}, reading)
        try:
            spec = self._specification(
                cwd,
                status=status,
                keep=passed,
                argv=_as_exec_takes(argv),
                environment=self._as_bytes(os.environ if environment is None else environment),
                program=_as_exec_takes([argv[0] if executable is None else executable])[0],
                restore_signals=restore_signals,
            )
        except BaseException:
            start.__exit__()
            raise
        with open(memory, "wb", closefd=False) as file:
            file.write(marshal.dumps(spec))
        os.lseek(memory, 0, os.SEEK_SET)
        start.argv = self._prefix(spec, f"/proc/self/fd/{memory}")
        return start

    def _as_bytes(self, environment: Mapping[Any, Any]) -> dict[bytes, bytes]:
        text = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        confined = self.environment(text)
        if any("=" in name for name in confined):
            raise ValueError("illegal environment variable name")
        return dict(zip(_as_exec_takes(confined), _as_exec_takes(confined.values()), strict=True))

    def _prefix(self, spec: dict[str, Any], path: str) -> list[str]:
        argv = [PYTHON, "-I", "-S", str(self.private.helper), path]
        program = self.support.bubblewrap
        return [program, *_bubblewrap(spec), *argv] if program else argv

    def _specification(self, cwd: Any, **more: Any) -> dict[str, Any]:
        rung = self.support.rung
        assert rung is not None
        try:
            self.private.renew()
        except OSError as error:
            raise ConfinementError(f"{NOT_CONFINED}: {error}") from error
        return {
            "mode": _MODES[rung],
            "abi": self.support.abi,
            "network": self.confinement.network,
            "writable": [_identified(path) for path in self._writable()],
            **({} if rung is Rung.LANDLOCK else self._daemons(_real(cwd))),
            "private": os.fsencode(self.private.path),
            "sentinel": os.fsencode(self.private.sentinel),
            "ignored_by_python": [int(signal.SIGPIPE), int(signal.SIGXFSZ)],
            **more,
        }

    def _daemons(self, cwd: str) -> dict[str, list[bytes]]:
        """What is covered: whole folders where nothing in them is needed, else single sockets."""
        needed = [os.path.realpath(path) for path in (*self._writable(), *self.sockets)]
        folders = [
            folder
            for folder in daemons_folders()
            if not any(below(path, (folder,)) for path in needed)
            and not cwd.startswith(f"{folder}/")
        ]
        sockets = [path for path in listening() if not below(path, (*needed, *folders))]
        return {
            "hidden": [os.fsencode(path) for path in folders],
            "masked": [os.fsencode(path) for path in sockets],
        }

    def _writable(self) -> tuple[Path, ...]:
        paths = (*self.confinement.writable, self.private.path)
        return tuple(
            path
            for path in dict.fromkeys(paths)
            if not any(path != each and path.is_relative_to(each) for each in paths)
        )


_MODES: Final = {
    Rung.NAMESPACES_AND_LANDLOCK: "namespaces",
    Rung.NAMESPACES: "namespaces",
    Rung.BUBBLEWRAP: "inner",
    Rung.LANDLOCK: "landlock",
}


def _real(cwd: Any) -> str:
    try:
        return os.fsdecode(os.path.realpath(os.curdir if cwd is None else cwd))
    except OSError:  # it has been removed
        return ""


def _own_variables() -> dict[str, str]:
    """The helper's; the program's come later, so that LD_PRELOAD acts when it is confined."""
    libraries = ":".join(_libraries())
    return {"LD_LIBRARY_PATH": libraries} if libraries else {}


def _libraries() -> list[str]:
    """Folders with libraries; relative ones depend on the working directory."""
    return list(filter(os.path.isabs, re.split("[:;]", os.environ.get("LD_LIBRARY_PATH", ""))))


# Rights of root that the helper takes some of; it drops the others.
_ROOT: Final = ("--unshare-pid", "--cap-add", "ALL", "--proc", "/proc", "--remount-ro", "/proc")


def _bubblewrap(spec: Mapping[str, Any]) -> list[str]:
    """Options for the same by bubblewrap; the helper then drops rights, tries a write and confirms.

    As root without a user namespace, processes outside that have few rights could be reached
    through /proc: root gets a process namespace. No `--die-with-parent`, which would end servers
    in the background with it, and no `--new-session`, which costs job control.
    """
    writable = [path for path, _, _ in spec["writable"]]
    shared_memory = [b"/dev/shm"] if any(p.startswith(b"/dev/shm/") for p in writable) else []
    return [
        *("--ro-bind", "/", "/", "--dev", "/dev", "--unshare-ipc"),
        *_each("--ro-bind {0} {0}", shared_memory),
        *(("--unshare-net",) if spec["network"] == "none" else ()),
        *(() if os.geteuid() else _ROOT),
        *_each("--tmpfs {}", spec["hidden"]),
        *_each("--remount-ro {}", spec["hidden"]),
        *_each("--ro-bind /dev/null {}", spec["masked"]),
        *_each("--bind {0} {0}", writable),
        "--",
    ]


def _each(option: str, paths: Iterable[bytes]) -> Iterator[str]:
    for path in paths:
        yield from (part.format(os.fsdecode(path)) for part in option.split())


def _beside_standard(fd: int) -> int:
    """Where a caller has closed some of 0 to 2, those are the program's."""
    if fd > 2:
        return fd
    import fcntl  # other systems have none

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _as_exec_takes(texts: Iterable[str | bytes]) -> list[bytes]:
    """As bytes; `subprocess` would raise here, too."""
    found = [os.fsencode(each) for each in texts]
    if any(b"\0" in each for each in found):
        raise ValueError("embedded null byte")
    return found


def _identified(path: Path) -> tuple[bytes, int, int]:
    try:
        seen = path.lstat()
    except OSError as error:
        raise ConfinementError(f"cannot be writable: {error.strerror}", path=path) from error
    return os.fsencode(path), seen.st_dev, seen.st_ino


def _read_to_end(fd: int) -> bytes:
    said, poll = b"", select.poll()
    poll.register(fd, select.POLLIN)
    while poll.poll((_LONGEST_END if said else _LONGEST_START) * 1000):
        part = os.read(fd, 4096)
        if not part:
            return said
        said += part
    return said or b"!the set-up took too long"


def _raise_for(said: bytes) -> None:
    """Nothing but the helper's own word says that a program runs confined."""
    if said == _READY:
        return
    if said.startswith(_READY + b"x"):
        number = int(said[2:])
        raise OSError(number, os.strerror(number))
    reason = (
        said[1:].decode(errors="replace")
        if said.startswith(b"!")
        else "the process that sets it up ended early"
    )
    raise ConfinementError(f"{NOT_CONFINED}: {reason}")
