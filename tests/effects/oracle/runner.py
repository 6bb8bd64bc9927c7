"""Runs commands in a scratch tree and tells what they changed: a process of its own, fenced in.

It reads one JSON object a line, `{"command": …, "tree": …}`, and answers with one:
`{"changed": {path: "created" | "changed" | "deleted"}, "status": …}`. The tree is whole again
before it answers.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any, Final

from tests.effects.oracle import tree
from tests.effects.oracle.fence import fence

_SECONDS: Final = 5
_FIRST: Final = "ORACLE_PATH"
_SUBREAPER: Final = 36
_NOBODY: Final = 65_534
_MOST_PROCESSES: Final = 400
_LARGEST_FILE: Final = 10_000_000
# As Hermes's terminal runs a command, see `_wrap_command` of its environments.
_SCRIPT: Final = """\
shopt -s expand_aliases
builtin cd -- '{cwd}' || exit 126
eval '{command}'
__hermes_ec=$?
umask 077
printf '\\n%s\\n' "$(pwd -P)"
exit $__hermes_ec"""


class TooLong(Exception):
    """A command does not end."""


class Place:
    """A scratch tree."""

    def __init__(self, root: str, name: str) -> None:
        os.mkdir(root)
        self.root = root
        self.work = os.path.join(root, tree.WORK)
        self.entries = tree.start(root, name)
        self.environ = environ(root)
        self.nothing = os.open("/dev/null", os.O_RDWR)
        self._build()
        self.index = self._index()

    def _build(self) -> None:
        tree.build(self.root, self.entries)
        self.before = tree.look(self.root)

    def _index(self) -> str:
        """What the index of the repository holds; looking may refresh it, which changes nothing."""
        listed = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "ls-files", "-s"],
            cwd=self.work,
            env=self.environ,
            stdin=self.nothing,
            capture_output=True,
            check=False,
        )
        return listed.stdout.decode(errors="replace")

    def run(self, command: str) -> dict[str, Any]:
        """Run it, tell what it changed, and put the tree back."""
        quoted = command.replace("'", "'\\''")
        script = _SCRIPT.format(cwd=self.work, command=quoted)
        os.chdir(self.work)
        actions = [(os.POSIX_SPAWN_DUP2, self.nothing, where) for where in (0, 1, 2)]
        process = os.posix_spawn(
            "/bin/bash",
            ["bash", "-c", script],
            self.environ,
            file_actions=actions,
            setsid=True,
        )
        status = _ended(process)
        os.chdir("/")
        changed = tree.differences(self.before, tree.look(self.root))
        answer = {"changed": self._real(changed), "status": status}
        if changed:
            self._build()
        return answer

    def _real(self, changed: dict[str, str]) -> dict[str, str]:
        index = f"{tree.WORK}/.git/index"
        if changed.get(index) == "changed" and self._index() == self.index:
            del changed[index]
        return changed


def environ(root: str) -> dict[str, str]:
    """What commands find in their environment. `ORACLE_PATH` has a folder that comes first."""
    first = [os.environ[_FIRST]] if _FIRST in os.environ else []
    return {
        "PATH": ":".join([*first, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": os.path.join(root, tree.HOME),
        "TMPDIR": os.path.join(root, "tmp"),
        "USER": "dev",
        "LOGNAME": "dev",
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "EDITOR": "true",
    }


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong


def _ended(process: int) -> int | None:
    """The exit status, once everything has ended that the command started; None if it does not."""
    status = None
    signal.alarm(_SECONDS)
    try:
        while True:
            child, how = os.wait()
            if child == process:
                status = os.waitstatus_to_exitcode(how)
    except ChildProcessError:
        pass
    except TooLong:
        status = None
        _end_all()
    finally:
        signal.alarm(0)
    return status


def _end_all() -> None:
    """End the children, and those that become children by it."""
    signal.alarm(0)
    while True:
        with open("/proc/thread-self/children") as file:
            children = [int(each) for each in file.read().split()]
        if not children:
            return
        for child in children:
            os.kill(child, signal.SIGKILL)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                return
        time.sleep(0.002)


def _without_rights(root: str) -> None:
    """Be nobody rather than root: Landlock does not keep modes and times of files elsewhere."""
    if os.geteuid() == 0:
        os.chown(root, _NOBODY, _NOBODY)
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
        resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_PROCESSES, _MOST_PROCESSES))


def main() -> None:
    """Serve until the input ends."""
    root = sys.argv[1]
    _without_rights(root)
    fence(root)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGALRM, _too_long)
    os.umask(0o022)
    places = {name: Place(f"{root}/{name}", name) for name in tree.TREES}
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = places[asked["tree"]].run(asked["command"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
