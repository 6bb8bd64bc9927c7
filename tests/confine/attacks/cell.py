"""Runs every attack as one user on one rung: `python -m tests.confine.attacks.cell CELL`.

CELL is a JSON text: `user` (root or user), `rung` (`bare` for none), `base`, an empty folder. As
root it first enters mount and host name namespaces of its own, where it may do as it likes.
Prints a JSON object: for each attack `out`, `held`, or why it was not tried; or `unavailable`. A
second argument `--verbose` has what every attack said and changed on standard error.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import sysconfig
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.confine.attacks.attacking import ATTACKS
from tests.confine.attacks.world import LIBC, World

from hermes_ext.confine import (
    Confinement,
    ConfinementError,
    Minimum,
    Reason,
    Rung,
    Sandbox,
    Support,
    inside,
    support,
)

HERE = Path(__file__).parent
USER, OTHER_GROUP = 12421, 12422
LADDER: dict[Rung, tuple[Minimum, set[str]]] = {
    Rung.NAMESPACES_AND_LANDLOCK: ("namespaces", {"bubblewrap"}),
    Rung.NAMESPACES: ("namespaces", {"bubblewrap", "landlock"}),
    Rung.BUBBLEWRAP: ("namespaces", {"namespaces", "landlock"}),
    Rung.LANDLOCK: ("landlock", {"namespaces", "bubblewrap"}),
}


def main() -> None:
    """Become the user, attack, print."""
    cell = json.loads(sys.argv[1])
    if "prepared" not in cell:
        prepare(cell)
    if reason := _unavailable(cell["rung"]):
        print(json.dumps({"unavailable": reason}))
        return
    print(json.dumps(dict(run(cell))))


def _unavailable(rung: str) -> str | None:
    if rung == "bare" or (found := _support(rung)).rung == rung:
        return None
    return found.why


def _support(rung: str) -> Support:
    minimum, without = LADDER[Rung(rung)]
    return support(minimum, without=frozenset(without))


# What only root can make ready -----------------------------------------------------------------


def prepare(cell: dict[str, Any]) -> None:
    """Enter namespaces, make folders and devices, and start again as the user."""
    base = Path(cell["base"])
    cell["prepared"] = ready = {}
    if os.geteuid():
        return
    base.chmod(0o755)
    LIBC.unshare(0x20000 | 0x04000000)
    LIBC.mount(None, b"/", None, 16384 | 1 << 18, None)
    (base / "of-root").write_text("untouched\n")
    (base / "of-root").chmod(0o600)
    number = 0 if cell["user"] == "root" else USER
    Path("/run/user").mkdir(exist_ok=True)
    LIBC.mount(b"tmpfs", b"/run/user", b"tmpfs", 0, None)
    runtime = Path(f"/run/user/{number}")
    tmux = Path(f"/tmp/tmux-{number}")
    tmux.mkdir(exist_ok=True)
    LIBC.mount(b"tmpfs", os.fsencode(tmux), b"tmpfs", 0, b"mode=0700")  # another cell has its own
    runtime.mkdir(0o700)
    for each in (runtime, tmux):
        os.chown(each, number, number)
    ready["runtime"] = str(runtime)
    if number == 0:
        _prepare_root(base, ready)
        return
    work = base / "work"
    work.mkdir()
    os.chown(work, USER, USER)
    shutil.copy("/bin/cp", base / "cp")
    (base / "cp").chmod(0o4755)
    ready["setuid_copy"] = str(base / "cp")
    _become_user(cell, base)


def _prepare_root(base: Path, ready: dict[str, str]) -> None:
    if Path("/etc/cron.d").is_dir():
        LIBC.mount(b"tmpfs", b"/etc/cron.d", b"tmpfs", 0, None)
        ready["scheduled"] = "/etc/cron.d"
    image = base / "disk.img"
    image.write_bytes(bytes(4096))
    done = subprocess.run(
        ["losetup", "-f", "--show", image], check=False, capture_output=True, text=True
    )
    if done.returncode == 0:
        ready |= {"image": str(image), "disk": done.stdout.strip()}


def _become_user(cell: dict[str, Any], base: Path) -> None:
    """Start again as an ordinary user, with this Python and these files where he can read them."""
    root = HERE.parents[2]
    places = {"python": sys.base_prefix, "site": sysconfig.get_path("purelib"), "clone": str(root)}
    for name, path in places.items():
        (base / name).mkdir()
        LIBC.mount(path.encode(), os.fsencode(base / name), None, 4096 | 16384, None)
    program = Path(sys.executable).resolve().relative_to(Path(sys.base_prefix).resolve())
    os.setgroups([OTHER_GROUP])
    os.setgid(USER)
    os.setuid(USER)
    os.chdir(base / "clone")
    environment = {
        "HOME": str(base / "work"),
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(base / "python/lib"),
        "PYTHONPATH": ":".join(str(base / name) for name in ("clone", "clone/src", "site")),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    cell["base"] = str(base / "work")
    argv = [str(base / "python" / program), "-m", "tests.confine.attacks.cell", json.dumps(cell)]
    os.execve(argv[0], argv, environment)


# The attacks ----------------------------------------------------------------------------------


def run(cell: dict[str, Any]) -> Any:
    """Each attack with what came of it, in a world that nothing got out into before."""
    world = World(Path(cell["base"]), cell["prepared"])
    prepared = cell["prepared"]
    names = cell.get("only") or list(ATTACKS)
    try:
        while names:
            with world:
                while names:
                    name = names.pop(0)
                    result = _attack(world, ATTACKS[name], cell)
                    yield name, result
                    if result == "out":
                        break
    finally:
        if "disk" in prepared:
            subprocess.run(["losetup", "-d", prepared["disk"]], check=False)


def _attack(world: World, attack: Any, cell: dict[str, Any]) -> str:
    who = "user" if os.geteuid() else "root"
    bare = cell["rung"] == "bare"
    if reason := attack.impossible[who]:
        return f"not tried: {reason}"
    if reason := _lacks(attack, cell["prepared"]):
        return f"not here: {reason}"
    shutil.rmtree(world.plans, ignore_errors=True)
    world.plans.mkdir()
    for each in world.signals.iterdir():
        each.unlink()
    _BEFORE.get(attack.name, lambda _: None)(world)
    before = world.state()
    started = _confined if not bare else _controlled
    said = started(world, attack, cell)
    _AFTER.get(attack.name, lambda _: None)(world)
    after = world.state()
    _UNDO.get(attack.name, lambda _: None)(world)
    if "--verbose" in sys.argv:
        print(attack.name, said, *sorted(before.items() ^ after.items()), sep="\n", file=sys.stderr)
    if before != after or "OUT" in said.split():
        return "out"
    return "held" if _shows_refusal(attack, said) else f"nothing was refused: {said}"


def _shows_refusal(attack: Any, said: str) -> bool:
    """Whether an attack was refused, and not merely without effect."""
    return attack.name == "background" or any(word in said for word in ("Error", "refused"))


def _lacks(attack: Any, prepared: dict[str, str]) -> str | None:
    """Why this machine cannot show an attack."""
    disk = ("disk" in prepared, "no loop device can be made")
    needed = {
        "type_into_terminal": (
            _setting("dev/tty/legacy_tiocsti") != "0",
            "the kernel lets nobody type into a terminal",
        ),
        "raw_device": disk,
        "mknod": disk,
        "io_uring": (_setting("kernel/io_uring_disabled") in (None, "0"), "io_uring is off"),
        "vsock_none": (_has_vsock(), "the kernel has no such sockets"),
        "late_socket": ("runtime" in prepared, "only root can make the folder"),
        "setuid_program": ("setuid_copy" in prepared, "only root can make one"),
    }
    there, reason = needed.get(attack.name, (True, ""))
    return None if there else reason


def _has_vsock() -> bool:
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def _argv(world: World, attack: Any) -> list[str]:
    return [
        *(sys.executable, "-I", "-S", str(HERE / "attacking.py"), attack.name),
        json.dumps(world.what(attack)),
    ]


def _confined(world: World, attack: Any, cell: dict[str, Any]) -> str:
    asked = [world.writable(attack)]
    confinement = Confinement.of(
        asked, root=world.project, network=attack.network, reason=Reason("attack", "an attack")
    )
    sandbox = Sandbox(confinement, _support(cell["rung"]))
    _BETWEEN.get(attack.name, lambda _: None)(world)
    with inside(sandbox):
        try:
            return _start(world, attack, _argv(world, attack))
        except ConfinementError as error:
            return f"refused: {error}"


def _controlled(world: World, attack: Any, _: dict[str, Any]) -> str:
    """The same without confinement; where only a namespace makes it an attack, in one."""
    _BETWEEN.get(attack.name, lambda _: None)(world)
    argv = _argv(world, attack)
    if attack.control == "namespace":
        script = 'for each in "$1" "$2"; do mount --bind "$each" "$each" &&'
        script += ' mount -o remount,bind,ro "$each" || exit; done; shift 2; exec "$@"'
        own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        argv = [*own, "sh", "-c", script, "sh", str(world.home), str(world.source), *argv]
    return _start(world, attack, argv)


def _start(world: World, attack: Any, argv: list[str]) -> str:
    options: dict[str, Any] = {"cwd": world.project, "stdin": subprocess.DEVNULL}
    options |= _OPTIONS.get(attack.name, lambda _: {})(world)
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    ) as process:
        if attack.name in _MEANWHILE and _appears(world.plans / "ready", process):
            _MEANWHILE[attack.name](world)
            (world.signals / "go").touch()
        return process.communicate(timeout=120)[0]


def _appears(path: Path, process: Any = None) -> bool:
    for _ in range(30_000):  # a minute: the machine may be busy
        if path.exists():
            return True
        if process is not None and process.poll() is not None:
            return False
        time.sleep(0.002)
    return False


# What the outside does around single attacks -----------------------------------------------------


def _link_before(world: World) -> None:
    os.link(world.victim, world.plans / "same")


def _link_path(world: World) -> None:
    link = world.project / "plans-link"
    link.unlink(missing_ok=True)
    link.symlink_to("src")


def _replace(world: World) -> None:
    old = world.project / "plans-old"
    shutil.rmtree(old, ignore_errors=True)
    world.plans.rename(old)
    world.plans.symlink_to("src")


def _put_back(world: World) -> None:
    world.plans.unlink()


def _mount(world: World) -> None:
    LIBC.mount(b"tmpfs", os.fsencode(world.home / "mounted"), b"tmpfs", 0, b"mode=0755")


def _unmount(world: World) -> None:
    LIBC.umount2(os.fsencode(world.home / "mounted"), 2)


def _let_go(world: World) -> None:
    (world.signals / "go").touch()
    _appears(world.plans / "done")


def _of_terminal(world: World) -> dict[str, Any]:
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] |= termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    os.set_blocking(master, False)
    world.daemons.serve("typed", master)

    def own_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    return {"stdin": slave, "start_new_session": True, "preexec_fn": own_terminal}


_Hook = Callable[[World], Any]
_BEFORE: dict[str, _Hook] = {"hard_link_before": _link_before, "path_is_link": _link_path}
_BETWEEN: dict[str, _Hook] = {"path_replaced_before": _replace}
_MEANWHILE: dict[str, _Hook] = {
    "path_replaced_meanwhile": _replace,
    "mounted_meanwhile": _mount,
    "late_socket": lambda world: world.daemons.listen("late", str(world.runtime / "late")),
    "late_socket_elsewhere": lambda world: world.daemons.listen(
        "late", str(world.home / "late.sock")
    ),
}
_AFTER: dict[str, _Hook] = {"background": _let_go}
_UNDO: dict[str, _Hook] = {
    "path_replaced_before": _put_back,
    "path_replaced_meanwhile": _put_back,
    "mounted_meanwhile": _unmount,
}
_OPTIONS: dict[str, _Hook] = {
    "inherited_directory": lambda _: {"close_fds": False},
    "passed_directory": lambda world: {"pass_fds": (world.inherited,)},
    "input_again": lambda world: {"stdin": world.victim.open()},
    "input_mode": lambda world: {"stdin": world.victim.open()},
    "working_directory": lambda world: {"cwd": world.home},
    "type_into_terminal": _of_terminal,
}

if __name__ == "__main__":
    main()
