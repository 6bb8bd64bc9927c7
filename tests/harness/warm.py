"""Starts of Hermes out of a process that has imported the libraries of others already.

Half the time that a start of Hermes takes goes into importing openai, aiohttp and the like, which
are not what is tested here. A parent process imports them once, and forks a child for each start;
Hermes itself and this package are imported by the child, in its own environment, as in any other
process. What they have Python work out of the same texts each time, regular expressions and syntax
trees, the parent has ready. `test_harness.py` compares such a start with a cold one.

Where forking is not safe everywhere (anything but Linux), and where `COLD_STARTS` is set, every
start is a cold one.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # the parent process must not import this package
    from hermes_ext.hosts.hermes.process.processes import Started

_LIBRARIES = (
    "openai.resources.chat.completions",
    "anthropic",
    "edge_tts",
    "aiohttp.web",
    "httpcore",
    "socksio",
    "requests",
    "websockets.asyncio.client",
    "prompt_toolkit.shortcuts",
    "rich.console",
    "rich.markdown",
    "rich.panel",
    "rich.table",
    "click",
    "croniter",
    "dotenv",
    "filelock",
    "http.server",
    "jsonschema",
    "packaging.version",
    "pathspec",
    "pluggy",
    "ruamel.yaml",
    "sqlite3",
    "tarfile",
    "tree_sitter_bash",
    "unittest.mock",
    "webbrowser",
    "yaml",
)
# What a start of Hermes imports, and of this package.
_STARTED = (
    "run_agent",
    "hermes_cli.main",
    "hermes_ext.hosts.hermes.plugin",
    "hermes_ext.effects._tools",
    "hermes_ext.runtime",
)
# What Python reads before a program begins, and what libraries might read when imported.
_ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "TERM": "dumb"}


def warm_start(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], out: IO[bytes], err: IO[bytes]
) -> Started:
    """As `cold_start`, out of the parent where that is the same: a script for this Python."""
    from hermes_ext.hosts.hermes.process.processes import cold_start

    program = _script_of(command)
    if program is None or not _same_python(env):
        return cold_start(command, cwd, env, out, err)
    return _parent().start(program, cwd, env, out, err)


def _script_of(command: Sequence[str]) -> list[str] | None:
    first = Path(command[0])
    if first == Path(sys.executable) and command[1:] and command[1].endswith(".py"):
        return list(command[1:])
    if first.parent == Path(sys.executable).parent and first.name == "hermes":
        return list(command)
    return None


def _same_python(env: Mapping[str, str]) -> bool:
    read = {name: value for name, value in env.items() if name.startswith("PYTHON")}
    read.pop("PYTHONPATH", None)  # the child sees to it
    return (
        sys.platform == "linux"
        and "COLD_STARTS" not in os.environ
        and all(_ENVIRONMENT.get(name) == value for name, value in read.items())
        and env.get("LANG") == _ENVIRONMENT["LANG"]
    )


# -- the side of the tests ------------------------------------------------------------------------


class _Parent:
    """The process that forks. It ends when this one does: the socket is closed then."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        env = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=theirs.fileno(), env=env
            )
        atexit.register(self._end)

    def start(
        self,
        program: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
    ) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            files = [theirs.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._orders, [b"!"], files)
        order = {"program": [str(part) for part in program], "cwd": str(cwd), "env": dict(env)}
        ours.sendall(json.dumps(order).encode() + b"\n")
        return _Child(ours)

    def _end(self) -> None:
        self._orders.close()
        self._process.wait()


_parent = functools.cache(_Parent)


class _Child:
    """A process that the parent has forked, as `Started`."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self._ended: int | None = None
        self.pid = self._next()

    def wait(self, timeout: float | None = None) -> int:
        if self._ended is None:
            self._told.settimeout(timeout)
            try:
                self._ended = self._next()
            except TimeoutError:
                raise subprocess.TimeoutExpired("hermes", timeout or 0) from None
            self._told.close()
        return self._ended

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def _next(self) -> int:
        """The next number that is told: eight characters each, so that none is read in part."""
        return int(self._told.recv(8, socket.MSG_WAITALL))


# -- the side of the parent -----------------------------------------------------------------------


def _serve(orders: socket.socket) -> dict[str, Any] | None:
    """Fork for each order. Returns in the child that is to run a program, with its order."""
    while True:
        word, files, _, _ = socket.recv_fds(orders, 1, 3)
        if not word:
            return None
        if os.fork() == 0:
            orders.close()
            return _keep(*files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(told: int, out: int, err: int) -> dict[str, Any]:
    """Fork the program and tell its id and, when it has ended, its exit code."""
    with socket.socket(fileno=told) as line:
        with line.makefile("rb") as lines:
            order: dict[str, Any] = json.loads(lines.readline())
        child = os.fork()
        if child != 0:
            for file in (out, err):
                os.close(file)
            _tell(line, child)
            _, status = os.waitpid(child, 0)
            _tell(line, os.waitstatus_to_exitcode(status))
            os._exit(0)
    os.setsid()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for file, place in ((out, 1), (err, 2)):
        os.dup2(file, place)
        os.close(file)
    return order


def _tell(line: socket.socket, number: int) -> None:
    # Nobody listens any more if the tests were broken off.
    with contextlib.suppress(OSError):
        line.sendall(b"%8d" % number)


def _become(order: Mapping[str, Any]) -> None:
    """Be the interpreter that was started with this script."""
    os.chdir(order["cwd"])
    places = order["env"].get("PYTHONPATH", "").split(os.pathsep)
    places = [] if places == [""] else places
    if not all(map(_is_plain, places)):
        os.execve(sys.executable, [sys.executable, *order["program"]], order["env"])
    os.environ.clear()
    os.environ.update(order["env"])
    script = order["program"][0]
    sys.argv = order["program"]
    sys.path[:1] = [str(Path(script).parent), *places]
    importlib.invalidate_caches()
    main = ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    exec(compile(Path(script).read_bytes(), script, "exec"), main.__dict__)


def _is_plain(place: str) -> bool:
    """Whether nothing in a place of PYTHONPATH would already have been imported from there."""
    if not os.path.isabs(place) or not os.path.isdir(place):
        return False
    early = {name.partition(".")[0] for name in sys.modules} | {"sitecustomize", "usercustomize"}
    return early.isdisjoint(name.partition(".")[0] for name in os.listdir(place))


# -- what is worked out of the same texts each time -----------------------------------------------


def _prepare() -> None:
    """Compile the regular expressions, and parse the files, that a start has compiled and parsed.

    A child finds out which; so nothing of Hermes is imported here.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                _try_a_start(folder, told)
            os._exit(0)
        os.waitpid(child, 0)
        patterns, texts = pickle.loads(told.read_bytes()) if told.exists() else ((), ())
    for pattern, flags in patterns:
        with contextlib.suppress(re.error):
            re.compile(pattern, flags)
    trees = {text: ast.parse(text) for text in texts}

    @functools.wraps(_parse)
    def parse(source: Any, filename: Any = "<unknown>", mode: str = "exec", **options: Any) -> Any:
        if mode == "exec" and not options and isinstance(source, str):
            tree = trees.pop(source, None)  # a tree can be changed; the next one is parsed
            if tree is not None:
                return tree
        return _parse(source, filename, mode, **options)

    ast.parse = parse


_parse = ast.parse


def _try_a_start(folder: str, told: Path) -> None:
    os.environ.update(HOME=folder, HERMES_HOME=folder)
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(nothing, place)
    before, texts = set(_patterns()), []

    def parse(source: Any, *args: Any, **options: Any) -> Any:
        texts.append(source)
        return _parse(source, *args, **options)

    ast.parse = parse
    for name in _STARTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    patterns = [
        (pattern, flags) for pattern, flags in _patterns() if (pattern, flags) not in before
    ]
    told.write_bytes(pickle.dumps((patterns, [text for text in texts if isinstance(text, str)])))


def _patterns() -> list[tuple[Any, int]]:
    cache = getattr(re, "_cache", {})
    return [(pattern, flags) for kind, pattern, flags in cache if kind in (str, bytes)]


if __name__ == "__main__":
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if hasattr(re, "_MAXCACHE"):
        re._MAXCACHE = 10_000  # a start fills the 512 alone
    _prepare()
    gc.collect()
    gc.freeze()
    to_run = _serve(socket.socket(fileno=os.dup(0)))
    if to_run is not None:
        # What the parent has made stays frozen: no child has to look through it for garbage.
        _become(to_run)
