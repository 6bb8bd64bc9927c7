"""Confines itself, then becomes the program: `python -I -S helper.py SPEC`.

SPEC is a file with one marshalled dict. Whoever reads what a confined process can reach reads this
file from top to bottom: it is the order in which things happen. It imports only what starts fast.
Every step raises; nothing is skipped, and the program never runs when a step failed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import marshal
import os
import stat
import sys

TYPE_CHECKING = False  # importing typing takes as long as all the rest
if TYPE_CHECKING:
    from typing import Any, Final

NOT_CONFINED: Final = 126
READY: Final = b"+"  # what the status pipe gets when everything held, just before exec

_libc = ctypes.CDLL(None, use_errno=True)

# System calls since 2019 have one number on every architecture that `support` lets through.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

_NEWNS, _NEWIPC, _NEWUSER, _NEWNET = 0x20000, 0x08000000, 0x10000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_EMPTY_PATH, _RECURSIVE, _CLONE = 0x1000, 0x8000, 1
_NO_SYMLINKS = 4
_O_PATH = 0o10000000

# Rights of root that daily work needs and that lead nowhere when every mount is read-only:
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service. Left out with a
# reason each: dac_read_search opens any file by its handle through a writable mount; sys_admin
# mounts; sys_ptrace and perfmon reach into processes outside; mknod and sys_rawio reach disks;
# setfcap and setpcap give rights back; sys_chroot, sys_module, sys_boot, sys_time, net_admin,
# net_raw, bpf, syslog, mac_*, audit_* and the rest change the machine and not a project.
_ROOT_KEEPS: Final = sum(1 << each for each in (0, 1, 3, 4, 5, 6, 7, 10))

_SETPCAP = 8

_FS_WRITES = 0b0111_1111_1111_0010  # write_file, and remove_dir to truncate
_LAST_RIGHT = {1: 12, 2: 13}  # by ABI: make_sym, refer; from 3 on truncate
_FILE_WRITES = 1 << 1 | 1 << 14  # write_file, truncate: what a rule for a file may name
_IOCTL_DEV = 1 << 15  # ABI 5

# By architecture as seccomp tells it: its numbers of ioctl, socket and mount, and of an older call
# that sockets are made by, where there is one. A 64-bit kernel runs 32-bit calls too.
_X86, _X86_64, _ARM, _ARM64 = 0x40000003, 0xC000003E, 0x40000028, 0xC00000B7
_CALLS = {
    _X86_64: (16, 41, 165, 0),
    _X86: (54, 359, 21, 102),
    _ARM64: (29, 198, 40, 0),
    _ARM: (54, 281, 21, 0),
    0xC00000F3: (29, 198, 40, 0),  # riscv64
    0xC0000102: (29, 198, 40, 0),  # loongarch64
    0xC0000015: (54, 326, 21, 102),  # ppc64le
    0x80000016: (54, 359, 21, 102),  # s390x
}
_NEWER_MOUNT_CALLS = (428, 429, 430, 431, 432, 433, 442)  # open_tree to fspick, mount_setattr
_IO_URING_SETUP = 425
_TIOCSTI, _TIOCLINUX, _AF_VSOCK = 0x5412, 0x541C, 40

_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_GRAPHICS = ("dri", "kfd", "dxg", "nvidia")


def main() -> None:
    """Read SPEC, confine this process, replace it by the program."""
    spec: dict[str, Any] = {}
    _keep_closed()
    try:
        with open(sys.argv[1], "rb", closefd=True) as file:
            spec = marshal.load(file)
        _confine(spec)
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
        text = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        _report(spec, b"!" + text.encode(errors="replace"))
        os._exit(NOT_CONFINED)
    _report(spec, READY)
    try:
        _become(spec)
    except (OSError, ValueError, TypeError, LookupError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        _report(spec, b"x%d" % number)
        os._exit(127 if number == errno.ENOENT else NOT_CONFINED)


def _keep_closed() -> None:
    """Nothing that is opened here takes the place of a closed standard stream; exec frees it."""
    while (fd := os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)) <= 2:
        pass
    os.close(fd)


def _confine(spec: dict[str, Any]) -> None:
    if spec["mode"] == "namespaces":
        cwd = _working_directory()
        terminal = _terminal()
        _enter_namespaces(own_network=spec["network"] == "none", landlock=spec["abi"] > 0)
        _check_call("private mounts", _libc.mount(None, b"/", None, _REC | _PRIVATE, None))
        nodes = _device_nodes(terminal, _needs_shared_memory(spec, cwd))
        writable = [(_own_mount(*each), each) for each in spec["writable"]]
        _set_mount("every mount read-only", -100, b"/", _RDONLY | _NODEV, 0, _RECURSIVE)
        _hide(spec["hidden"], spec["masked"])
        _make_dev(nodes)
        for clone, place in writable:
            _system("writable mount", _MOVE_MOUNT, clone, b"", _open_same(*place), b"", 4 | 0x40)
        _enter(cwd, spec["private"])  # what was the directory lies below the new mounts
    for path, device, inode in spec["writable"]:
        os.close(_open_same(path, device, inode))
    _settle_descriptors(spec)
    if spec["mode"] != "landlock":
        _check_refused(spec, (errno.EROFS,))
    _drop_rights()
    if spec["abi"]:
        _restrict(spec)
    no_network, no_mounts = spec["network"] == "none", not spec["abi"]
    if _reaches_terminal(spec) or no_network or no_mounts:
        _filter_calls(no_network=no_network, no_mounts=no_mounts)
    _check_refused(spec, (errno.EROFS, errno.EACCES))


# Namespaces and mounts ----------------------------------------------------------------------


def _enter_namespaces(*, own_network: bool, landlock: bool) -> None:
    """Own mounts and System V IPC; as an ordinary user by the rights of an own user namespace."""
    user, group = os.geteuid(), os.getegid()
    flags = _NEWNS | _NEWIPC | (_NEWNET if own_network else 0) | (_NEWUSER if user else 0)
    _check_call("unshare", _libc.unshare(flags))
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        _no_more_namespaces(landlock=landlock)
    if own_network:
        _loopback_up()


def _no_more_namespaces(*, landlock: bool) -> None:
    """In a user namespace below this one somebody would have all rights again, to mount too."""
    try:
        _write("/proc/sys/user/max_user_namespaces", "0")
    except OSError:  # containers have it read-only
        if not landlock:  # which refuses mounts there as well
            raise


def _loopback_up() -> None:
    sock = _libc.socket(2, 2, 0)
    _check_call("socket", sock)
    fcntl.ioctl(
        sock, 0x8914, b"lo".ljust(16, b"\0") + (0x41).to_bytes(2, sys.byteorder) + bytes(22)
    )
    os.close(sock)


def _open_same(path: bytes, device: int, inode: int) -> int:
    """Open what the parent saw, and nothing that a link leads to."""
    how = (ctypes.c_uint64 * 3)(_O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    fd = _system(f"open {os.fsdecode(path)}", _OPENAT2, -100, path, how, 24)
    seen = os.fstat(fd)
    if (seen.st_dev, seen.st_ino) != (device, inode):
        raise OSError(errno.ESTALE, f"{os.fsdecode(path)} was replaced")
    return fd


def _own_mount(path: bytes, device: int, inode: int) -> int:
    """A mount of its own for a writable path; what is mounted below it stays read-only."""
    fd = _open_same(path, device, inode)
    was_writable = not os.fstatvfs(fd).f_flag & os.ST_RDONLY
    flags = _CLONE | os.O_CLOEXEC | _EMPTY_PATH | _RECURSIVE
    clone = _system("open_tree", _OPEN_TREE, fd, b"", flags)
    _set_mount("writable mount", clone, b"", _RDONLY | _NODEV, 0, _EMPTY_PATH | _RECURSIVE)
    if was_writable:
        _set_mount("writable mount", clone, b"", 0, _RDONLY, _EMPTY_PATH)
    os.close(fd)
    return clone


def _hide(folders: list[bytes], sockets: list[bytes]) -> None:
    """Cover daemons' folders by empty ones, and each socket by a device that nobody listens at."""
    for path in folders:
        options = _RDONLY | _NOSUID | _NODEV | _NOEXEC
        if os.path.isdir(path):
            _check_call("hide", _libc.mount(b"tmpfs", path, b"tmpfs", options, b"mode=0755"))
    for path in sockets:
        try:
            _check_call("hide", _libc.mount(b"/dev/null", path, None, _BIND, None))
        except OSError as error:
            if error.errno != errno.ENOENT:  # one that is gone by now
                raise


def _terminal() -> str | None:
    return next((os.ttyname(fd) for fd in range(3) if os.isatty(fd)), None)


def _reaches_terminal(spec: dict[str, Any]) -> bool:
    """Whether a program could type: one that has pipes may have a controlling terminal, too."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return any(map(os.isatty, (0, 1, 2, *spec["keep"])))
    return True


def _working_directory() -> str | None:
    """None where it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def _enter(cwd: str | None, private: bytes) -> None:
    """Where the caller was; for a directory that has been removed another such one."""
    if cwd is not None:
        os.chdir(cwd)
        return
    path = b"%b/removed-%d" % (private, os.getpid())
    os.mkdir(path)
    os.chdir(path)
    os.rmdir(path)


def _needs_shared_memory(spec: dict[str, Any], cwd: str | None) -> bool:
    """Whether the project, or the caller's temporary folder, lies there: then it stays, to read."""
    places = (os.fsencode(cwd or "/"), *(path for path, _, _ in spec["writable"]))
    return any(each.startswith(b"/dev/shm/") for each in places)


def _device_nodes(terminal: str | None, shared_memory: bool) -> dict[str, int]:
    """Clones of the device nodes that the own /dev is to have, by name."""
    graphics = [name for name in os.listdir("/dev") if name.startswith(_GRAPHICS)]
    nodes = {name: f"/dev/{name}" for name in (*_NODES, *graphics)}
    if terminal:
        nodes["console"] = terminal  # where ttyname() finds it
    if os.path.exists("/dev/log") and not os.path.islink("/dev/log"):
        nodes["log"] = "/dev/log"
    if shared_memory:
        nodes["shm"] = "/dev/shm"
    flags = _CLONE | os.O_CLOEXEC | _RECURSIVE
    clones = {
        name: _system(path, _OPEN_TREE, -100, path.encode(), flags) for name, path in nodes.items()
    }
    if shared_memory:
        read_only, what = _EMPTY_PATH | _RECURSIVE, "/dev/shm read-only"
        _set_mount(what, clones["shm"], b"", _RDONLY | _NODEV, 0, read_only)
    return clones


def _make_dev(nodes: dict[str, int]) -> None:
    log = os.path.realpath("/dev/log")
    _check_call("/dev", _libc.mount(b"tmpfs", b"/dev", b"tmpfs", _NOSUID | _NOEXEC, b"mode=0755"))
    for name, clone in nodes.items():
        path = f"/dev/{name}"
        if stat.S_ISDIR(os.fstat(clone).st_mode):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o666))
        _system(path, _MOVE_MOUNT, clone, b"", -100, path.encode(), 4)
        os.close(clone)
    os.mkdir("/dev/pts")
    options = b"newinstance,ptmxmode=0666,mode=620" + (b"" if os.geteuid() else b",gid=5")
    _check_call(
        "/dev/pts", _libc.mount(b"devpts", b"/dev/pts", b"devpts", _NOSUID | _NOEXEC, options)
    )
    if "shm" not in nodes:
        os.mkdir("/dev/shm")
        os.chmod("/dev/shm", 0o1777)
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0"}
    links |= {"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
    if "log" not in nodes and log != "/dev/log":
        links["log"] = log
    for name, target in links.items():
        os.symlink(target, f"/dev/{name}")


# Descriptors --------------------------------------------------------------------------------


def _settle_descriptors(spec: dict[str, Any]) -> None:
    """Leave 0 to 2 and what the caller passes on; no directory: it leads to the old mounts."""
    kept = sorted({0, 1, 2, *spec["keep"], spec["status"]})
    for low, high in zip(kept, (*kept[1:], 1 << 20), strict=True):
        os.closerange(low + 1, high)
    for fd in kept:
        _settle(fd)
    os.set_inheritable(spec["status"], False)


def _settle(fd: int) -> None:
    try:
        seen, flags = os.fstat(fd), fcntl.fcntl(fd, fcntl.F_GETFL)
    except OSError:
        return
    if stat.S_ISDIR(seen.st_mode) or flags & _O_PATH:
        new = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    elif stat.S_ISREG(seen.st_mode) and not flags & 3 and seen.st_nlink:
        # By the mount that it came from its mode could be changed, and it be opened to write.
        try:
            new = os.open(os.readlink(f"/proc/self/fd/{fd}"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            new = _copy(fd)
        if not os.path.samestat(os.fstat(new), seen):
            new = _copy(fd)
        os.lseek(new, os.lseek(fd, 0, 1), 0)
    else:
        return
    os.dup2(new, fd)
    os.close(new)


def _copy(fd: int) -> int:
    """What is in a file that has no path here: its name has gone, or it is in /dev/shm."""
    memory, done = os.memfd_create("copy"), 0
    while count := os.sendfile(memory, fd, done, 1 << 30):
        done += count
    new = os.open(f"/proc/self/fd/{memory}", os.O_RDONLY | os.O_CLOEXEC)
    os.close(memory)
    return new


# Rights, Landlock, seccomp ------------------------------------------------------------------


def _drop_rights() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits
    _check_call("capget", _libc.capget(header, rights))
    has = rights[1] | rights[4] << 32
    keep = 0 if os.geteuid() else has & _ROOT_KEEPS
    _libc.prctl(47, 4, 0, 0, 0)  # ambient ones; a kernel without them has none
    for each in range(64 if has >> _SETPCAP & 1 else 0):  # else none can be given back either
        if _libc.prctl(23, each, 0, 0, 0) == 1 and not keep >> each & 1:
            _check_call("drop rights", _libc.prctl(24, each, 0, 0, 0))
    low, high = keep & 0xFFFFFFFF, keep >> 32
    rights[:] = [low, low, 0, high, high, 0]
    _check_call("capset", _libc.capset(header, rights))
    _check_call("no new rights", _libc.prctl(38, 1, 0, 0, 0))


def _restrict(spec: dict[str, Any]) -> None:
    """Landlock: all rights to write, but below the writable paths and in /dev."""
    abi = spec["abi"]
    writes = _FS_WRITES & (2 << _LAST_RIGHT.get(abi, 14)) - 1 | (_IOCTL_DEV if abi >= 5 else 0)
    tcp = 3 if spec["network"] == "none" and abi >= 4 else 0
    scoped = 1 if abi >= 6 else 0  # abstract sockets; signals not: `kill` of an earlier server
    attributes = (ctypes.c_uint64 * 3)(writes, tcp, scoped)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _system("Landlock", _LANDLOCK_CREATE, attributes, size, 0)
    for path, device, inode in spec["writable"]:
        _allow(ruleset, _open_same(path, device, inode), writes)
    if spec["mode"] == "landlock":
        for name in (*_NODES, "ptmx", "pts"):
            if os.path.exists(f"/dev/{name}"):
                _allow(ruleset, os.open(f"/dev/{name}", _O_PATH), writes)
    else:
        _allow(ruleset, os.open("/dev", _O_PATH), writes)
    for fd in {0, 1, 2, *spec["keep"]}:
        _allow_descriptor(ruleset, fd, writes)
    _system("Landlock", _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow_descriptor(ruleset: int, fd: int, writes: int) -> None:
    """What the caller gave to write to may be opened again: `echo x > /dev/stdout`."""
    try:
        mode, flags = os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL)
    except OSError:
        return
    if stat.S_ISREG(mode) and flags & 3:
        _allow(ruleset, os.dup(fd), writes)


def _allow(ruleset: int, fd: int, writes: int) -> None:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        writes &= _FILE_WRITES | _IOCTL_DEV
    rule = writes.to_bytes(8, sys.byteorder) + fd.to_bytes(4, sys.byteorder)
    _system("Landlock", _LANDLOCK_ADD, ruleset, 1, rule, 0)
    os.close(fd)


def _filter_calls(*, no_network: bool, no_mounts: bool) -> None:
    """Seccomp: no typing into a terminal, and what else has no other layer.

    Without a network no sockets to the host of a virtual machine, which a network namespace does
    not hold. Without Landlock, which refuses them, no mounts: in a user namespace inside, control
    groups could be mounted. An architecture that is not in the table runs nothing: its calls
    could not be told apart.
    """
    program = [(0x20, 0, 0, 4)]  # the architecture
    for architecture, (ioctl, socket, mount, older) in _CALLS.items():
        rules = [*_refuse(ioctl, 24, _TIOCSTI), *_refuse(ioctl, 24, _TIOCLINUX)]
        if no_network:
            rules += [*_refuse(socket, 16, _AF_VSOCK), *_refuse(_IO_URING_SETUP)]
            rules += _refuse(older) if older else []
        for call in (mount, *_NEWER_MOUNT_CALLS) if no_mounts else ():
            rules += _refuse(call)
        if architecture == _X86_64:
            rules += [(0x20, 0, 0, 0), (0x35, 0, 1, 1 << 30), (0x06, 0, 0, 0x50000 | errno.ENOSYS)]
        rules.append((0x06, 0, 0, 0x7FFF0000))  # allow
        program += [(0x15, 0, len(rules), architecture), *rules]
    program.append((0x06, 0, 0, 0x80000000))  # kill
    code = b"".join(
        op.to_bytes(2, sys.byteorder) + bytes((yes, no)) + value.to_bytes(4, sys.byteorder)
        for op, yes, no, value in program
    )
    buffer = ctypes.create_string_buffer(code)
    head = (ctypes.c_void_p * 2)()
    ctypes.c_ushort.from_buffer(head).value = len(program)
    head[1] = ctypes.addressof(buffer)
    _check_call("seccomp", _libc.prctl(22, 2, head, 0, 0))


def _refuse(call: int, offset: int = 0, value: int = 0) -> list[tuple[int, int, int, int]]:
    """Refuse a call, or only where the low half of the argument at an offset is a value."""
    offset += 4 if offset and sys.byteorder == "big" else 0
    argument = [(0x20, 0, 0, offset), (0x15, 0, 1, value)] if offset else []
    refusal = [*argument, (0x06, 0, 0, 0x50000 | errno.EPERM)]
    return [(0x20, 0, 0, 0), (0x15, 0, len(refusal), call), *refusal]


# The last trial, then the program -----------------------------------------------------------


def _check_refused(spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    """A file outside of the writable paths, which the parent made, cannot be opened to write."""
    try:
        fd = os.open(spec["sentinel"], os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in expected:
            return
        raise
    os.close(fd)
    raise OSError(errno.EPERM, "a file outside of the writable paths could be written")


def _become(spec: dict[str, Any]) -> None:
    """As `subprocess` starts a program: by its name in each directory of PATH."""
    if spec["restore_signals"]:  # Python ignores SIGPIPE and SIGXFSZ from its start on
        for number in spec["ignored_by_python"]:
            _libc.signal(number, None)
    variables = [b"%b=%b" % each for each in spec["environment"].items()]
    argv, environment = _strings(spec["argv"]), _strings(variables)
    number = 0
    for program in _found(spec["program"], spec["environment"]):
        _libc.execve(program, argv, environment)  # os.execve refuses an empty name, unlike others
        if not number or ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):
            number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _strings(texts: list[bytes]) -> Any:
    return (ctypes.c_char_p * (len(texts) + 1))(*texts)


def _found(name: bytes, environment: Any) -> list[bytes]:
    if b"/" in name:
        return [name]
    folders = environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [os.path.join(each, name) for each in folders]


def _report(spec: dict[str, Any], what: bytes) -> None:
    if "status" in spec:  # else not even the specification could be read
        os.write(spec["status"], what)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, text.encode())
    os.close(fd)


def _set_mount(what: str, fd: int, path: bytes, on: int, off: int, flags: int) -> None:
    _system(what, _MOUNT_SETATTR, fd, path, flags, (ctypes.c_uint64 * 4)(on, off, 0, 0), 32)


def _system(what: str, number: int, *arguments: Any) -> int:
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _check_call(what, _libc.syscall(ctypes.c_long(number), *values))


def _check_call(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    main()
