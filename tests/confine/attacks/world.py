"""What is outside: files, daemons and a process of one user, and what became of them."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import pty
import selectors
import shutil
import socket
import subprocess
import sys
import tty
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

LIBC = ctypes.CDLL(None, use_errno=True)
_BYSTANDER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_long(-1), 0, 0, 0)
buffer = ctypes.create_string_buffer(b"innocent", 64)
os.chdir(sys.argv[1])
print(ctypes.addressof(buffer), os.open(".", os.O_RDONLY), flush=True)
for line in sys.stdin: print(buffer.value.hex(), flush=True)
"""


class Daemons:
    """A thread that listens and writes down the orders that it gets."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, ("wake", None))
        self._settled = Event()
        self._ends = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def listen(self, name: str, address: Any, family: int = socket.AF_UNIX) -> socket.socket:
        sock = socket.socket(family)
        sock.bind(address)
        sock.listen()
        return self.serve(name, sock)

    def receive(self, name: str, address: Any, family: int = socket.AF_UNIX) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.bind(address)
        return self.serve(name, sock)

    def serve(self, name: str, sock: Any, handler: Any = None) -> Any:
        if isinstance(sock, socket.socket):
            sock.setblocking(False)  # it may have been looked at by `settle` just before
        self._selector.register(sock, selectors.EVENT_READ, (name, handler))
        self.settle()
        return sock

    def settle(self) -> None:
        """Wait until everything that has arrived is written down."""
        self._settled.clear()
        self._wake.send(b"1")
        self._settled.wait()

    def close(self) -> None:
        self._ends = True
        self.settle()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            if hasattr(key.fileobj, "close"):
                key.fileobj.close()
        self._selector.close()
        self._wake.close()

    def _run(self) -> None:
        while not self._ends:
            for key, _ in self._selector.select():
                name, handler = key.data
                if name == "wake":
                    self._woken.recv(1)
                    for other, _ in self._selector.select(0):
                        if other.data[0] != "wake":
                            self._take(*other.data, other.fileobj)
                    self._settled.set()
                else:
                    self._take(name, handler, key.fileobj)

    def _take(self, name: str, handler: Any, sock: Any) -> None:
        with suppress(OSError):
            if isinstance(sock, int):
                if text := os.read(sock, 100):
                    self.orders.append(f"{name}: {text!r}")
            elif sock.type == socket.SOCK_DGRAM:
                self.orders.append(f"{name}: {sock.recv(100)!r}")
            else:
                with sock.accept()[0] as connection:
                    if handler:
                        handler(connection)
                    elif text := connection.recv(100):
                        self.orders.append(f"{name}: {text!r}")


class World:
    """Everything that a confined process is to leave alone, below a folder and elsewhere.

    `prepared` is what root made ready: folders and devices that only root can make.
    """

    def __init__(self, base: Path, prepared: dict[str, str]) -> None:
        self.base, self.prepared = base, prepared
        self.home, self.project = base / "home", base / "project"
        self.plans, self.source = self.project / "plans", self.project / "src"
        self.signals = base / "signals"
        self.runtime = Path(prepared.get("runtime", base / "runtime"))
        self.tmux = Path(f"/tmp/tmux-{os.geteuid()}")
        self._sockets: list[Any] = []

    def __enter__(self) -> Self:
        for each in (self.home, self.project, self.signals):
            shutil.rmtree(each, ignore_errors=True)
        for name in ("bin", ".ssh", ".screen", "mounted", ".config/autostart"):
            (self.home / name).mkdir(parents=True)
        for each in (self.plans, self.source, self.signals):
            each.mkdir(parents=True)
        self.victim = self.home / "victim"
        self.snapshot = self.base / "snap.sh"
        for file in (self.victim, self.source / "app.py", self.snapshot, self.home / "bin/git"):
            file.write_text("untouched\n")
        self._start_daemons()
        self._start_bystander()
        self._make_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self.bystander.kill()
        self.bystander.communicate()
        self.daemons.close()
        LIBC.shmctl(self.memory, 0, None)
        LIBC.msgctl(self.queue, 0, None)
        self.shared.unlink(missing_ok=True)
        for fd in (self.pipe, *self.pty, self.inherited):
            with suppress(OSError):
                os.close(fd)

    def _start_daemons(self) -> None:
        daemons = self.daemons = Daemons()
        self.tmux.mkdir(mode=0o700, exist_ok=True)
        (self.runtime / "systemd").mkdir(parents=True, exist_ok=True)
        paths = ("docker.sock", ".screen/1.pts-0.host")
        for path in (*(self.home / each for each in paths), self.tmux / "attack"):
            self._listen(path)
        for path in (self.runtime / "bus", self.runtime / "systemd/private"):
            self._listen(path)
        self._listen(self.home / ".ssh/agent.bound")
        (self.home / ".ssh/agent.bound").rename(self.home / ".ssh/agent")
        before = Path.cwd()
        os.chdir(self.home)
        daemons.listen("relative", "relative.sock")
        os.chdir(before)
        daemons.receive("datagrams", str(self.home / "datagrams.sock"))
        self.abstract = f"hermes-ext-attack-{os.getpid()}"
        daemons.listen("abstract", f"\0{self.abstract}")
        self.tcp = daemons.listen("tcp", ("127.0.0.1", 0), socket.AF_INET).getsockname()[1]
        self.udp = daemons.receive("udp", ("127.0.0.1", 0), socket.AF_INET).getsockname()[1]
        gives = socket.socket(socket.AF_UNIX)
        gives.bind(str(self.home / "descriptors.sock"))
        gives.listen()
        daemons.serve("descriptors", gives, self._give_descriptor)
        os.mkfifo(self.home / "pipe")
        self.pipe = os.open(self.home / "pipe", os.O_RDWR | os.O_NONBLOCK)
        daemons.serve("pipe", self.pipe)
        self.pty = pty.openpty()
        tty.setraw(self.pty[1])
        os.set_blocking(self.pty[0], False)
        daemons.serve("terminal", self.pty[0])

    def _listen(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.daemons.listen(path.name, str(path))

    def _give_descriptor(self, connection: socket.socket) -> None:
        fd = os.open(self.victim, os.O_RDWR)
        socket.send_fds(connection, [b"x"], [fd])
        os.close(fd)

    def _start_bystander(self) -> None:
        self.bystander = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BYSTANDER, str(self.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address, self.their_fd = map(int, self._says().split())

    def _says(self) -> str:
        assert self.bystander.stdout is not None
        return self.bystander.stdout.readline().strip()

    def _make_memory(self) -> None:
        self.memory = LIBC.shmget(0, 4096, 0o1600)
        self.queue = LIBC.msgget(0, 0o1600)
        self.shared = Path(f"/dev/shm/hermes-ext-attack-{os.getpid()}")
        self.shared.write_text("untouched")
        self.inherited = os.open(self.home, os.O_RDONLY)
        os.set_inheritable(self.inherited, True)

    def what(self, attack: Any) -> dict[str, Any]:
        """What an attack is told."""
        groups = [each for each in os.getgroups() if each != os.getegid()]
        return {
            "home": str(self.home),
            "project": str(self.project),
            "plans": str(self.project / self.writable(attack)),
            "signals": str(self.signals),
            "source": str(self.source),
            "victim": str(self.victim),
            "snapshot": str(self.snapshot),
            "runtime": str(self.runtime),
            "tmux": str(self.tmux),
            "scheduled": self.prepared.get("scheduled", str(self.home / ".config/autostart")),
            "other_group": groups[0] if groups else os.getegid() + 1,
            "inherited": self.inherited,
            "passed": self.inherited,
            "pid": self.bystander.pid,
            "address": self.address,
            "their_fd": self.their_fd,
            "abstract": self.abstract,
            "tcp": self.tcp,
            "udp": self.udp,
            "memory": self.memory,
            "queue": self.queue,
            "shared": str(self.shared),
            "terminal": os.ttyname(self.pty[1]),
            "group_name": self._group_name,
            "disk": self.prepared.get("disk", "/dev/none"),
            "setuid_copy": self.prepared.get("setuid_copy", "/none"),
            "of_root": str(self.base / "of-root"),
        }

    @property
    def _group_name(self) -> str:
        return f"hermes-ext-attack-{os.getpid()}"

    @staticmethod
    def writable(attack: Any) -> str:
        return "plans-link" if attack.name == "path_is_link" else "plans"

    def state(self) -> dict[str, Any]:
        """Everything that may not change."""
        self.daemons.settle()
        found: dict[str, Any] = {"orders": tuple(self.daemons.orders)}
        assert self.bystander.stdin is not None
        with suppress(OSError):
            self.bystander.stdin.write("\n")
            self.bystander.stdin.flush()
        found["memory of a process"] = self._says()
        LIBC.shmat.restype = ctypes.c_void_p
        address = LIBC.shmat(self.memory, None, 0o10000)
        found["shared memory"] = ctypes.string_at(address, 8)
        LIBC.shmdt(ctypes.c_void_p(address))
        found["queue"] = LIBC.msgrcv(self.queue, ctypes.create_string_buffer(128), 100, 0, 0o4000)
        found["host name"] = socket.gethostname()
        found["setting"] = Path("/proc/sys/kernel/domainname").read_text()
        found["groups"] = self._control_groups()
        places = [self.home, self.source, self.shared, self.snapshot]
        ready = self.prepared
        places += [Path(ready[name]) for name in ("scheduled", "image") if name in ready]
        places += [self.base / "of-root"]
        for place in places:
            for path in (place, *sorted(place.rglob("*"))):
                found[str(path)] = _look(path)
        return found

    def _control_groups(self) -> tuple[str, ...]:
        found = []
        for folder, names, _ in os.walk("/sys/fs/cgroup"):
            if self._group_name in names:
                found.append(folder)
                os.rmdir(f"{folder}/{self._group_name}")
        return tuple(found)


def _look(path: Path) -> Any:
    try:
        seen = path.lstat()
    except OSError as error:
        return error.errno
    facts: list[Any] = [seen.st_mode, seen.st_uid, seen.st_gid]
    if path.is_dir():
        return (*facts, *sorted(os.listdir(path)))
    facts.append(seen.st_ino)
    if path.is_file() and os.access(path, os.R_OK):
        text = path.read_bytes()
        facts += [seen.st_mtime_ns, sha256(text).hexdigest(), os.listxattr(path), _flags(path)]
    return tuple(map(str, facts))


def _flags(path: Path) -> int:
    flags = array.array("l", [0])
    with suppress(OSError), path.open("rb") as file:
        fcntl.ioctl(file, 0x80086601, flags)
    return flags[0]
