"""A confined program starts as a bare one does, whatever `subprocess` is asked for."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from tests.confine.conftest import LADDER

from hermes_ext.confine import (
    Confinement,
    ConfinementError,
    PrivateFolder,
    Rung,
    Sandbox,
    _sandbox,
    inside,
)

# What a program finds; numbers that differ from start to start are left out.
_PROBE = """
import json, os, signal, sys
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
print(json.dumps({
    "argv": sys.argv,
    "called": open("/proc/self/cmdline").read().split("\\0")[0],
    "cwd": os.getcwd(),
    "environment": {name: os.environ[name] for name in os.environ if name in sys.argv[1:]},
    "umask": os.umask(0),
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "descriptors": [
        each for each in sorted(map(int, os.listdir("/proc/self/fd")))
        if os.path.lexists(f"/proc/self/fd/{each}")
    ],
    "signals": [int(status[name], 16) & 0x7FFFFFFF for name in ("SigBlk", "SigIgn")],
    "input": sys.stdin.read(),
    "user": [os.getuid(), os.geteuid(), os.getgid()],
}))
"""
_PROGRAM = (sys.executable, "-I", "-S", "-c", _PROBE)


def _found(*arguments: str, **options: Any) -> dict[str, Any]:
    options = {"input": "said", "capture_output": True, "text": True, **options}
    done = subprocess.run([*_PROGRAM, *arguments], check=True, **options)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "cwd": {"cwd": "/usr"},
    "env": {"env": {"PATH": os.environ["PATH"], "A": "b", "LC_ALL": "C"}},
    "new session": {"start_new_session": True},
    "process group": {"process_group": 0},
    "preexec_fn": {"preexec_fn": lambda: os.umask(0o077)},
    "umask": {"umask": 0o027},
    "restore_signals": {"restore_signals": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_as_bare(options: dict[str, Any], each_sandbox: Sandbox) -> None:
    """A program finds the arguments, directory, variables, signals, descriptors that it would."""
    bare = _found("A", "LC_ALL", "HOME", **options)
    with inside(each_sandbox):
        confined = _found("A", "LC_ALL", "HOME", **options)
    if each_sandbox.support.rung is Rung.BUBBLEWRAP:  # it leads, and starts the program
        confined["leads"] = bare["leads"]
    assert confined == bare


def test_executable(each_sandbox: Sandbox) -> None:
    """`executable` is what runs, under the name that the arguments say; PATH is searched."""
    with inside(each_sandbox):
        for program in ("/bin/sh", "sh"):
            done = subprocess.run(
                ["named", "-c", "echo $0"], executable=program, check=True, capture_output=True
            )
            assert done.stdout == b"named\n"


def test_shell(each_sandbox: Sandbox) -> None:
    """`shell=True` with a text, and a shell of the caller's choice."""
    with inside(each_sandbox):
        plain = subprocess.run("echo $0 $1", shell=True, check=True, capture_output=True)
        other = subprocess.run(
            "echo $BASH", shell=True, check=True, capture_output=True, executable="/bin/bash"
        )
    assert plain.stdout == b"/bin/sh\n"
    assert b"bash" in other.stdout


def test_passed_descriptors(each_sandbox: Sandbox) -> None:
    """A pipe that the caller passes on is there, under its number."""
    reading, writing = os.pipe()
    with inside(each_sandbox):
        found = _found(pass_fds=[writing])
        subprocess.run(["sh", "-c", f"echo x > /dev/fd/{writing}"], check=True, pass_fds=[writing])
    os.close(writing)
    assert found["descriptors"] == [0, 1, 2, writing]
    with open(reading, "rb") as file:
        assert file.read() == b"x\n"


def test_other_descriptors(each_sandbox: Sandbox) -> None:
    """No descriptor is inherited that the caller does not pass on, `close_fds=False` or not."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with inside(each_sandbox):
        assert _found(close_fds=False)["descriptors"] == [0, 1, 2]
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("status", [0, 3, 126, 127])
def test_status(status: int, each_sandbox: Sandbox) -> None:
    """The program's own status is the process's, 126 included."""
    with inside(each_sandbox):
        done = subprocess.run(["sh", "-c", f"exit {status}"], check=False)
    assert done.returncode == status


def test_signal(each_sandbox: Sandbox) -> None:
    """A program that a signal ends shows it; bubblewrap, which is its parent, as a shell would."""
    with inside(each_sandbox):
        done = subprocess.run(["sh", "-c", "kill -TERM $$"], check=False)
    bubblewrap = each_sandbox.support.rung is Rung.BUBBLEWRAP
    assert done.returncode == (128 + signal.SIGTERM if bubblewrap else -signal.SIGTERM)


def test_standard_output_again(each_sandbox: Sandbox, tmp_path: Path) -> None:
    """A file that the caller gave to write to can be opened again, by `/dev/stdout`."""
    with inside(each_sandbox), (tmp_path / "out").open("wb") as file:
        subprocess.run(["sh", "-c", "echo a; echo b >> /dev/stdout"], check=True, stdout=file)
    assert (tmp_path / "out").read_text() == "a\nb\n"


def test_input_from_a_file(each_sandbox: Sandbox, tmp_path: Path) -> None:
    """A file as standard input is read from where the caller left it."""
    (tmp_path / "in").write_text("first\nsecond\n")
    with inside(each_sandbox), (tmp_path / "in").open("rb", buffering=0) as file:
        file.seek(6)
        done = subprocess.run(["cat"], check=True, stdin=file, capture_output=True)
    assert done.stdout == b"second\n"


@pytest.mark.parametrize("folder", [None, "/dev/shm"], ids=["gone", "shared memory"])
def test_input_from_a_file_without_a_path(
    folder: str | None, each_sandbox: Sandbox, tmp_path: Path
) -> None:
    """The file need not be there under the name that it had when the caller opened it."""
    with tempfile.TemporaryDirectory(dir=folder or tmp_path) as place:
        file = Path(place, "in")
        file.write_text("first\nsecond\n")
        with inside(each_sandbox), file.open("rb", buffering=0) as reading:
            reading.seek(6)
            if folder is None:
                os.link(file, tmp_path / "other")
                file.unlink()
            done = subprocess.run(["cat"], check=True, stdin=reading, capture_output=True)
    assert done.stdout == b"second\n"


def test_a_directory_beside_daemons(
    each_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may start below a folder of daemons' sockets, and reaches none of them."""
    folder = tmp_path / "run"
    (folder / "project").mkdir(parents=True)
    monkeypatch.setattr(_sandbox, "daemons_folders", lambda: [str(folder)])
    program = "import socket; socket.socket(socket.AF_UNIX).connect('../daemon')"
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(folder / "daemon"))
        daemon.listen()
        with inside(each_sandbox):
            pwd = subprocess.run(
                ["pwd"], check=True, cwd=folder / "project", capture_output=True, text=True
            )
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", program],
                check=False,
                cwd=folder / "project",
                stderr=subprocess.DEVNULL,
            )
    assert pwd.stdout == f"{folder / 'project'}\n"
    assert done.returncode == (0 if each_sandbox.support.rung is Rung.LANDLOCK else 1)


def test_a_directory_that_was_removed(each_sandbox: Sandbox, tmp_path: Path) -> None:
    """A program finds itself in one; by bubblewrap in the home, or `/`."""
    place = tmp_path / "gone"
    place.mkdir()

    def go() -> None:
        os.chdir(place)
        place.rmdir()

    with inside(each_sandbox):
        argv = ["sh", "-c", "ls -a"]
        done = subprocess.run(argv, check=False, preexec_fn=go, capture_output=True)
    if each_sandbox.support.rung is not Rung.BUBBLEWRAP:
        assert done.stdout == b""


def test_large_environment(each_sandbox: Sandbox) -> None:
    """Variables may be as large as the kernel lets them be, and hold any bytes."""
    environment = {**os.environb, b"BIG": b"\xff" * 120_000}
    with inside(each_sandbox):
        done = subprocess.run(
            ["sh", "-c", 'printf %s "$BIG" | wc -c'],
            check=True,
            capture_output=True,
            env=environment,
        )
    assert int(done.stdout) == 120_000


def test_many_arguments(each_sandbox: Sandbox) -> None:
    """As many as the kernel takes; of more the error is the one without confinement."""
    with inside(each_sandbox):
        done = subprocess.run(
            ["printf", "%s", *["x" * 50] * 20_000], check=True, capture_output=True
        )
        with pytest.raises(OSError, match="too long: 'printf'") as raised:
            subprocess.run(["printf", *["x" * 50] * 80_000], check=False)
    assert len(done.stdout) == 1_000_000
    assert raised.value.errno == errno.E2BIG


WRONG: dict[str, dict[str, Any]] = {
    "null byte": {"args": ["echo", "a\0b"]},
    "null byte in a variable": {"args": ["env"], "env": {"A": "a\0b"}},
    "no name of a variable": {"args": ["env"], "env": {"A=B": "c"}},
    "no text": {"args": ["echo", 1]},
    "nothing": {"args": []},
    "an empty name": {"args": ""},
    "an empty executable": {"args": ["true"], "executable": ""},
    "no arguments": {},
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_what_no_program_can_be_given(options: dict[str, Any], sandbox: Sandbox) -> None:
    """The error is of the kind that it is without confinement."""
    with pytest.raises((ValueError, TypeError, IndexError, OSError)) as bare:
        subprocess.Popen(**options)
    with inside(sandbox) as run, pytest.raises(bare.type):
        subprocess.Popen(**options)
    assert run.started == 0


def test_a_variable_without_a_name(sandbox: Sandbox) -> None:
    """It is handed on, as without confinement."""
    with inside(sandbox):
        done = subprocess.run(["env"], check=True, capture_output=True, env={"": "unnamed"})
    assert b"=unnamed\n" in done.stdout


_OPEN = """
import os
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
os.write(2, str(list(filter(is_open, range(3)))).encode())
"""


def test_closed_streams(each_sandbox: Sandbox) -> None:
    """Standard streams that are closed are closed for the program."""
    with inside(each_sandbox):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _OPEN],
            check=True,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: os.closerange(0, 2),
        )
    assert done.stderr == b"[2]"


_WITHOUT_STREAMS = """
import os, subprocess, sys
from hermes_ext.confine import Confinement, Sandbox, inside, support
sandbox = Sandbox(Confinement(), support(sys.argv[1], without=frozenset(sys.argv[2:])))
told = os.dup(1)
os.closerange(0, 3)
with inside(sandbox):
    done = subprocess.run(["sh", "-c", "echo said; exit 4"], stdout=subprocess.PIPE)
os.write(told, f"{done.returncode} {done.stdout}".encode())
"""


def test_a_caller_without_streams(each_sandbox: Sandbox) -> None:
    """What a start needs takes no place of a standard stream."""
    minimum, without = LADDER[each_sandbox.support.rung or Rung.LANDLOCK]
    argv = [sys.executable, "-c", _WITHOUT_STREAMS, minimum, *without]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=30)
    assert done.stdout == b"4 b'said\\n'"


def test_preloaded_library(each_sandbox: Sandbox) -> None:
    """LD_PRELOAD acts on the program, when it is confined, and not on what confines it."""
    environment = {**os.environ, "LD_PRELOAD": "/no/such/library.so"}
    bare = subprocess.run(["true"], check=True, capture_output=True, env=environment)
    with inside(each_sandbox):
        done = subprocess.run(["true"], check=True, capture_output=True, env=environment)
    assert done.stderr == bare.stderr
    assert done.stderr.count(b"no/such/library") == 1


def test_server_in_the_background(each_sandbox: Sandbox, tmp_path: Path) -> None:
    """A server that a command leaves behind goes on, answers, and stays confined."""
    server = (
        "import os, socket; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); os.close(1); c, _ = s.accept()\n"
        "try: open('outside', 'w')\n"
        "except OSError as error: c.sendall(b'refused')\n"
        "open('plans/inside', 'w').write('x'); c.close()"
    )
    argv = ["sh", "-c", '"$0" -I -S -c "$1" 2>/dev/null & :', sys.executable, server]
    with (
        inside(each_sandbox),
        subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert process.wait() == 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert connection.recv(100) == b"refused"
        assert connection.recv(100) == b""
    assert (tmp_path / "plans/inside").exists()


def test_a_project_in_shared_memory(each_sandbox: Sandbox) -> None:
    """It is there as anywhere else."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        plans = Path(folder, "plans")
        plans.mkdir()
        Path(folder, "kept").write_text("kept")
        sandbox = Sandbox(Confinement(writable=(plans,)), each_sandbox.support)
        script = "cat kept; echo plan > plans/x; echo x > kept; echo x > /dev/shm/x; mktemp"
        with inside(sandbox):
            argv = ["sh", "-c", script]
            done = subprocess.run(argv, check=True, cwd=folder, capture_output=True, text=True)
        assert done.stdout.startswith(f"kept{sandbox.private.path}/tmp/")
        assert done.stderr.count("cannot create") == 2
        assert (plans / "x").read_text() == "plan\n"
        assert Path(folder, "kept").read_text() == "kept"


_TYPES = """
import fcntl, os, sys
fcntl.ioctl(int(sys.argv[1]) if sys.argv[1:] else os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")
"""


@pytest.mark.parametrize("passed", [False, True], ids=["controlling", "passed on"])
def test_a_terminal_beside_pipes(each_sandbox: Sandbox, passed: bool) -> None:
    """Nothing types into the caller's terminal, however it is reached."""
    main, terminal = os.openpty()

    def control() -> None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with inside(each_sandbox):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TYPES, *([str(terminal)] if passed else [])],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            preexec_fn=control,
            pass_fds=(terminal,),
        )
    os.close(main)
    os.close(terminal)
    assert done.returncode == 1
    assert "Error: [Errno" in done.stderr


def test_terminal(each_sandbox: Sandbox) -> None:
    """A caller that starts programs itself, in a terminal of its own."""
    ptyprocess = pytest.importorskip("ptyprocess", reason="ptyprocess is not installed")
    argv = ["sh", "-c", "test -t 0 && tty < /dev/tty; touch /outside; stty size"]

    def spawn() -> Any:
        with each_sandbox.start(argv) as start:
            for fd in start.pass_fds:
                os.set_inheritable(fd, True)
            process = ptyprocess.PtyProcessUnicode.spawn(
                start.argv, env=start.environment, pass_fds=start.pass_fds, dimensions=(5, 77)
            )
            start.confirm()
        return process

    process = _again(spawn, each_sandbox)
    text = "".join(_read(process))
    process.wait()
    assert "not a tty" not in text
    assert "5 77" in text
    assert not Path("/outside").exists()


def _again(start: Callable[[], Any], sandbox: Sandbox) -> Any:
    """Bubblewrap fails where a socket of some other test that it is to cover has gone since."""
    for _ in range(5 if sandbox.support.rung is Rung.BUBBLEWRAP else 0):
        with suppress(ConfinementError):
            return start()
    return start()


def _read(process: Any) -> Iterator[str]:
    with suppress(EOFError):
        while True:
            yield process.read()


# What fails ---------------------------------------------------------------------------------


def _broken_helper(sandbox: Sandbox) -> None:
    sandbox.private.helper.write_bytes(b"")


def _sentinel_within_reach(sandbox: Sandbox) -> None:
    sandbox.private.sentinel.unlink()
    sandbox.private.sentinel.symlink_to(sandbox.private.path / "within")
    (sandbox.private.path / "within").touch()


def _private_folder_replaced(sandbox: Sandbox) -> None:
    sandbox.private.path.rename(sandbox.private.path.with_name("old"))
    sandbox.private.path.symlink_to("/")


FAILURES = [_broken_helper, _sentinel_within_reach, _private_folder_replaced]


@pytest.mark.parametrize("broken", FAILURES, ids=lambda each: each.__name__.strip("_"))
def test_nothing_runs_unconfined(broken: Any, each_sandbox: Sandbox, tmp_path: Path) -> None:
    """Whatever is wrong with the set-up, the program does not run."""
    own = PrivateFolder.of(tmp_path, Confinement())
    helper = Path(shutil.copy(own.helper, own.sentinel.parent))
    own = PrivateFolder(own.path, own.sentinel, helper)
    sandbox = Sandbox(each_sandbox.confinement, each_sandbox.support, own)
    broken(sandbox)
    with inside(sandbox) as run, pytest.raises(ConfinementError):
        subprocess.run(["touch", tmp_path / "plans/ran"], check=False, stderr=subprocess.DEVNULL)
    assert run.failure
    assert run.started == 0
    assert not (tmp_path / "plans/ran").exists()


def test_a_python_that_does_not_start(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper that ends before it says that everything holds has confined nothing."""
    monkeypatch.setattr(_sandbox, "PYTHON", "/bin/true")
    with inside(sandbox), pytest.raises(ConfinementError):
        subprocess.run(["touch", tmp_path / "plans/ran"], check=False)


def test_a_child_that_has_the_pipe(sandbox: Sandbox) -> None:
    """A child that another thread forks meanwhile does not keep a start waiting until it ends."""
    with sandbox.start(["true"]) as start:
        (status,) = set(start.pass_fds) & _pipes()
        other = subprocess.Popen(["sleep", "60"], pass_fds=(status,))
        argv, fds = start.argv, start.pass_fds
        with subprocess.Popen(argv, env=start.environment, pass_fds=fds) as process:
            start.confirm()
            assert process.wait() == 0
        assert other.poll() is None
        other.kill()
        other.wait()


def _pipes() -> set[int]:
    fds = map(int, os.listdir("/proc/self/fd"))
    return {fd for fd in fds if Path(f"/proc/self/fd/{fd}").is_fifo()}


# What starts a program ------------------------------------------------------------------------


def test_programs_in_a_writable_folder_of_path(
    each_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a confined program puts there starts no later one."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'plans'}:{os.environ['PATH']}")
    script = "echo '#!/bin/sh\necho > ran' > plans/bwrap; cp plans/bwrap plans/python3"
    with inside(each_sandbox):
        for each in (f"{script}; chmod +x plans/*", "echo > outside"):
            subprocess.run(["sh", "-c", each], cwd=tmp_path, check=False, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"plans"}


def test_python_without_links(sandbox: Sandbox) -> None:
    """A virtual environment may be in a writable folder; its links are not followed at a start."""
    with sandbox.start(["true"]) as start:
        assert os.path.realpath(sys.executable) in start.argv


def test_writable_is_nothing_that_starts_programs(
    each_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later start would run what a confined program put there."""
    (tmp_path / "lib").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'lib'};relative:")
    library = Path(os.__file__).resolve().parent
    places = [Path(sys.executable).resolve().parent, library, library / "ctypes", tmp_path]
    places += [each_sandbox.private.helper.parent]
    if each_sandbox.support.bubblewrap:
        places += [Path(each_sandbox.support.bubblewrap).parent]
    for place in places:
        with pytest.raises(ConfinementError, match="starts programs"):
            Sandbox(Confinement(writable=(place,)), each_sandbox.support)
    with each_sandbox.start(["true"]) as start:
        assert start.environment == {"LD_LIBRARY_PATH": str(tmp_path / "lib")}


# Contexts -----------------------------------------------------------------------------------


def test_threads(sandbox: Sandbox, tmp_path: Path) -> None:
    """A thread that runs in a copy of the context is confined; a plain one is not."""

    def touch(name: str) -> None:
        subprocess.run(["touch", tmp_path / name], check=False, stderr=subprocess.DEVNULL)

    with inside(sandbox):
        context = copy_context()
        for target in (lambda: touch("plain"), lambda: context.run(touch, "copied")):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert {path.name for path in tmp_path.iterdir()} == {"plans", "plain"}


def test_nothing_is_changed_before() -> None:
    """Importing the package changes nothing of `subprocess`, and neither does `outside`."""
    script = (
        "import subprocess; before = subprocess.Popen.__init__\n"
        "from hermes_ext.confine import Confinement, Sandbox, inside, outside\n"
        "with outside(): subprocess.run(['true'], check=True)\n"
        "assert subprocess.Popen.__init__ is before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
