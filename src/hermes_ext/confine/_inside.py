"""Every process that a context starts is confined."""

from __future__ import annotations

import functools
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from attrs import define

from hermes_ext.confine._model import of_kind
from hermes_ext.confine._rung import Rung
from hermes_ext.confine._sandbox import Sandbox
from hermes_ext.exceptions import ConfinementError

# What starts a process past subprocess.Popen, by the interpreter's audit events.
_OTHER_STARTS: Final = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"}
)
_READ_ONLY: Final = re.compile(
    r"read-only file ?system|\bEROFS\b|errno 30\b|os error 30\b|readonly database"
    r"|unable to open database file",  # SQLite, of one that keeps a log beside it
    re.IGNORECASE,
)
_DENIED: Final = re.compile(r"permission denied|\bEACCES\b|errno 13\b|os error 13\b", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"network is unreachable|name resolution|name or service not known|\bENETUNREACH\b|errno 101\b"
    r"|could(?: not|n't) (?:resolve|connect)|failed to connect|\bEAI_AGAIN\b|\bENOTFOUND\b",
    re.IGNORECASE,
)


@define
class Run:
    """What became of the processes that were started inside.

    Attributes:
        sandbox: what they are confined by.
        started: how many run or ran confined.
        failure: why one could not be confined, or None.
    """

    sandbox: Sandbox
    started: int = 0
    failure: str | None = None

    def refused(self, text: str | bytes | None) -> bool:
        """Whether an output shows that the kernel refused a write, or the network.

        Programs say it in their own words, so that this is a guess from the usual ones. None is
        an output that was not captured: False.
        """
        text = text.decode(errors="replace") if isinstance(text, bytes) else text or ""
        alone = self.sandbox.support.rung is Rung.LANDLOCK
        offline = self.sandbox.confinement.network == "none"
        return bool(
            _READ_ONLY.search(text)
            or (alone and _DENIED.search(text))
            or (offline and _NO_NETWORK.search(text))
        )


_run: Final[ContextVar[Run | None]] = ContextVar("hermes_ext_confined", default=None)
_in_popen: Final[ContextVar[bool]] = ContextVar("hermes_ext_in_popen", default=False)


@contextmanager
def inside(sandbox: Sandbox) -> Iterator[Run]:
    """Confine every process that this context starts with `subprocess` or `asyncio`.

    What starts one in another way is refused. The context is that of `contextvars`: tasks and
    `asyncio.to_thread` have it, a plain thread has not.

    Inside another one that is stricter, that one's sandbox goes on.

    Raises:
        ConfinementError: `sandbox` is none, or may do what the one around it may not, and lacks
            what that one may. Later raised by `subprocess.Popen` where a process
            cannot be confined, and by `os.fork`, `os.system` and the like.
    """
    hint = "Write inside(Sandbox(confinement, support()))"
    of_kind(sandbox, Sandbox, "inside() needs a Sandbox", hint)
    _install()
    run = Run(_strictest(sandbox, _run.get()))
    token = _run.set(run)
    try:
        yield run
    finally:
        _run.reset(token)


def _strictest(sandbox: Sandbox, around: Run | None) -> Sandbox:
    if around is None or sandbox.confinement.holds(around.sandbox.confinement):
        return sandbox
    if around.sandbox.confinement.holds(sandbox.confinement):
        return around.sandbox
    raise ConfinementError("a sandbox inside another one may do nothing that the other may not")


@contextmanager
def outside() -> Iterator[None]:
    """A context in which processes start as without confinement: the host's own work."""
    token = _run.set(None)
    try:
        yield
    finally:
        _run.reset(token)


def current() -> Run | None:
    """What confines this context, or None."""
    return _run.get()


@functools.cache  # two threads may both do it: the second wrapper does nothing
def _install() -> None:
    import _posixsubprocess

    subprocess.Popen.__init__ = _confining(subprocess.Popen.__init__)  # type: ignore[method-assign]
    # multiprocessing calls it; subprocess has its own name for it.
    _posixsubprocess.fork_exec = _refusing(_posixsubprocess.fork_exec)
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _OTHER_STARTS:
        _refuse(event)
    elif event == "socket.connect" and _run.get() is not None and _is_fork_server(arguments[1]):
        _refuse("a fork server")


def _is_fork_server(address: object) -> bool:
    """Whether it is that of `multiprocessing`, which starts processes outside of this context."""
    server = sys.modules.get("multiprocessing.forkserver")
    return server is not None and address == server._forkserver._forkserver_address


def _refuse(what: str) -> None:
    run = _run.get()
    if run is not None and not _in_popen.get():
        run.failure = f"{what} starts a process that cannot be confined"
        raise ConfinementError(
            run.failure,
            hint="Start it with subprocess, or within outside(): there nothing is confined",
        )


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def fork_exec(*arguments: Any) -> Any:
        _refuse("fork_exec")
        return original(*arguments)

    return fork_exec


def _confining(original: Callable[..., None]) -> Callable[..., None]:
    takes = inspect.signature(original)

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **options: Any) -> None:
        run = _run.get()
        if run is None or _in_popen.get():
            return original(self, *arguments, **options)
        asked = takes.bind(self, *arguments, **options).arguments
        del asked["self"]
        token = _in_popen.set(True)
        try:
            _start_again(original, self, run, asked)
        except ConfinementError as error:
            run.failure = error.message
            raise
        finally:
            _in_popen.reset(token)
        run.started += 1
        return None

    return init


def _start_again(
    original: Callable[..., None], popen: Any, run: Run, options: dict[str, Any]
) -> None:
    """Bubblewrap fails where a socket that it is to cover has gone since: once more, then."""
    try:
        _start(original, popen, run, {**options})
    except ConfinementError:
        if run.sandbox.support.rung is not Rung.BUBBLEWRAP:
            raise
        vars(popen).pop("_devnull", None)  # closed by the first
        _start(original, popen, run, options)


def _start(original: Callable[..., None], popen: Any, run: Run, options: dict[str, Any]) -> None:
    """`subprocess.Popen.__init__` with the helper before the program."""
    args, program = options.pop("args"), options.pop("executable", None)
    argv, program = _as_argv(args, program, shell=options.pop("shell", False))
    with run.sandbox.start(
        argv,
        options.pop("env", None),
        executable=program,
        cwd=options.get("cwd"),
        pass_fds=options.pop("pass_fds", ()),
        restore_signals=options.get("restore_signals", True),
    ) as start:
        ours = {"env": start.environment, "pass_fds": start.pass_fds, "close_fds": True}
        original(popen, start.argv, **{**options, **ours})
        popen.args = args
        try:
            start.confirm()
        except BaseException as error:
            _end(popen)
            if isinstance(error, OSError):
                error.filename = os.fsdecode(program or argv[0])
            raise


def _as_argv(args: Any, executable: Any, *, shell: bool) -> tuple[list[Any], Any]:
    """As `subprocess` reads its arguments."""
    argv = [args] if isinstance(args, str | bytes | os.PathLike) else list(args)
    argv = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in argv]
    if shell:
        return [executable or "/bin/sh", "-c", *argv], executable
    return argv, executable


def _end(popen: Any) -> None:
    popen.kill()
    popen.wait()
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            stream.close()
