"""The attacks: each a function that tries to change what it may not.

Run inside as `python -I -S attacking.py NAME WHAT`, where WHAT is a JSON text of what there is to
attack. An attack that cannot be seen from outside prints OUT. An error is a failed attack.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import mmap
import os
import socket
import stat
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

LIBC = ctypes.CDLL(None, use_errno=True)
ATTACKS: dict[str, SimpleNamespace] = {}
ORDER = b"order\n"


def attack(title, *, network="host", root=None, user=None, control="bare"):
    """Register an attack.

    `root` and `user` say why root, or an ordinary user, cannot do it unconfined either. `control`
    is "namespace" where only somebody whom a namespace of his own confines has a use for it.
    """

    def register(function):
        ATTACKS[function.__name__] = SimpleNamespace(
            name=function.__name__,
            title=title,
            run=function,
            network=network,
            impossible={"root": root, "user": user},
            control=control,
        )
        return function

    return register


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def write(path, text="attacked"):
    with open(path, "w") as file:
        file.write(text)


def meanwhile(what):
    """Have the outside do its part now."""
    Path(what.plans, "ready").touch()
    wait_for(Path(what.signals, "go"))


def wait_for(path, longest=60.0):
    until = time.monotonic() + longest
    while not os.path.lexists(path):
        if time.monotonic() > until:
            raise TimeoutError(path)
        time.sleep(0.002)


# Files ---------------------------------------------------------------------------------------


@attack("write a file")
def write_a_file(what):
    write(what.victim)


@attack("append to a file that a later shell reads (`/tmp/…snap.sh`, `~/.bashrc`)")
def append(what):
    with open(what.snapshot, "a") as file:
        file.write("touch attacked\n")


@attack("put a program into a folder of PATH")
def program_in_path(what):
    write(f"{what.home}/bin/git")


@attack("truncate a file by its path")
def truncate(what):
    os.truncate(what.victim, 0)


@attack("delete a file")
def delete(what):
    os.unlink(what.victim)


@attack("rename a file into a writable folder")
def rename_in(what):
    os.rename(what.victim, f"{what.plans}/taken")


@attack("rename a file of a writable folder over another")
def rename_over(what):
    write(f"{what.plans}/new")
    os.rename(f"{what.plans}/new", what.victim)


@attack("exchange two files (`renameat2`)")
def exchange(what):
    write(f"{what.plans}/new")
    new, old = os.fsencode(f"{what.plans}/new"), os.fsencode(what.victim)
    checked(LIBC.renameat2(-100, new, -100, old, 2))


@attack("rename a parent folder")
def rename_parent(what):
    os.rename(what.source, f"{what.source}.old")


@attack("make a folder")
def make_folder(what):
    os.mkdir(f"{what.home}/attacked")


@attack("symbolic link in a writable folder to a file")
def symlink_to_file(what):
    os.symlink(what.victim, f"{what.plans}/link")
    write(f"{what.plans}/link")


@attack("symbolic link in a writable folder to a parent")
def symlink_to_parent(what):
    os.symlink("..", f"{what.plans}/up")
    write(f"{what.plans}/up/src/app.py")


@attack("hard link made during the call")
def hard_link(what):
    os.link(what.victim, f"{what.plans}/same")
    write(f"{what.plans}/same")


@attack("hard link in a writable folder, made before the call")
def hard_link_before(what):
    write(f"{what.plans}/same")


@attack("writable path that is a symbolic link itself")
def path_is_link(what):
    write(f"{what.plans}/app.py")


@attack("writable path replaced by a link after the verdict, before the start")
def path_replaced_before(what):
    write(f"{what.plans}/app.py")


@attack("writable path replaced by a link while the call runs")
def path_replaced_meanwhile(what):
    meanwhile(what)
    write(f"{what.project}/plans/app.py")


@attack("unnamed file, linked into a folder (`O_TMPFILE`, `linkat`)")
def unnamed_file(what):
    fd = os.open(what.plans, os.O_TMPFILE | os.O_RDWR)
    os.write(fd, b"attacked")
    target = os.fsencode(f"{what.home}/attacked")
    checked(LIBC.linkat(-100, b"/proc/self/fd/%d" % fd, -100, target, 0x400))


@attack("delete a file through io_uring")
def io_uring(what):
    parameters = bytearray(120)
    buffer = (ctypes.c_char * 120).from_buffer(parameters)
    ring = checked(LIBC.syscall(425, ctypes.c_long(4), buffer))
    numbers = struct.unpack_from("30I", parameters)
    entries, sq = numbers[0], numbers[10:20]
    flags = mmap.MAP_SHARED
    answers = numbers[25]
    queue = mmap.mmap(ring, max(sq[6] + entries * 4, answers + numbers[1] * 16), flags=flags)
    requests = mmap.mmap(ring, entries * 64, flags=flags, offset=0x10000000)
    path = ctypes.create_string_buffer(os.fsencode(what.victim))
    struct.pack_into("<BBHiQQIIQ", requests, 0, 36, 0, 0, -100, 0, ctypes.addressof(path), 0, 0, 7)
    struct.pack_into("<I", queue, sq[6], 0)
    struct.pack_into("<I", queue, sq[1], 1)
    checked(LIBC.syscall(426, *map(ctypes.c_long, (ring, 1, 1, 1, 0, 0))))
    (result,) = struct.unpack_from("<i", queue, answers + 8)
    if result < 0:
        raise OSError(-result, os.strerror(-result))


# Modes, owners, times ------------------------------------------------------------------------


@attack("mode of a file (`chmod`)")
def chmod(what):
    os.chmod(what.victim, 0o777)


@attack("group of a file (`chown`)")
def chown(what):
    os.chown(what.victim, -1, what.other_group)


@attack("times of a file (`utime`)")
def utime(what):
    os.utime(what.victim, (1, 1))


@attack("extended attribute (`setxattr`)")
def setxattr(what):
    os.setxattr(what.victim, "user.attacked", b"1")


@attack("attribute of a file (`chattr`)")
def chattr(what):
    fd = os.open(what.victim, os.O_RDONLY)
    flags = array.array("l", [0])
    fcntl.ioctl(fd, 0x80086601, flags)
    flags[0] |= 0x40
    fcntl.ioctl(fd, 0x40086602, flags)


# Descriptors ---------------------------------------------------------------------------------


@attack("directory that the caller has open, inherited")
def inherited_directory(what):
    fd = os.open("victim", os.O_WRONLY | os.O_TRUNC, dir_fd=what.inherited)
    os.write(fd, b"attacked")


@attack("directory that the caller passes on")
def passed_directory(what):
    os.open("victim", os.O_WRONLY | os.O_TRUNC, dir_fd=what.passed)


@attack("standard input from a file, opened again to write")
def input_again(what):
    write("/proc/self/fd/0")


@attack("mode of the file that standard input comes from (`fchmod`)")
def input_mode(what):
    os.fchmod(0, 0o777)


@attack("relative path from a working directory of before")
def working_directory(what):
    write("victim")


@attack("descriptor passed over a socket by a process outside")
def descriptor_over_socket(what):
    with connected(f"{what.home}/descriptors.sock") as sock:
        _, fds, _, _ = socket.recv_fds(sock, 10, 1)
    os.write(fds[0], b"attacked")


# Processes -----------------------------------------------------------------------------------


@attack("`/proc/PID/root` of a process outside")
def proc_root(what):
    write(f"/proc/{what.pid}/root{what.victim}")


@attack("`/proc/PID/cwd` of a process outside")
def proc_cwd(what):
    write(f"/proc/{what.pid}/cwd/victim")


@attack("`/proc/PID/fd` of a process outside")
def proc_fd(what):
    write(f"/proc/{what.pid}/fd/{what.their_fd}/victim")


@attack("memory of a process outside (`/proc/PID/mem`)")
def proc_mem(what):
    with open(f"/proc/{what.pid}/mem", "r+b", buffering=0) as file:
        file.seek(what.address)
        file.write(b"attacked")


@attack("memory of a process outside (`process_vm_writev`)")
def process_vm(what):
    text = ctypes.create_string_buffer(b"attacked")
    ours = (ctypes.c_size_t * 2)(ctypes.addressof(text), 8)
    theirs = (ctypes.c_size_t * 2)(what.address, 8)
    checked(LIBC.process_vm_writev(what.pid, ours, 1, theirs, 1, 0))


@attack("`ptrace` of a process outside")
def ptrace(what):
    call = LIBC.ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    checked(call(16, what.pid, None, None))
    os.waitpid(what.pid, 0x40000000)
    checked(call(4, what.pid, what.address, int.from_bytes(b"attacked", "little")))
    checked(call(17, what.pid, None, None))


@attack("descriptor of a process outside (`pidfd_getfd`)")
def pidfd_getfd(what):
    pidfd = checked(LIBC.syscall(434, ctypes.c_long(what.pid), ctypes.c_long(0)))
    numbers = map(ctypes.c_long, (pidfd, what.their_fd, 0))
    fd = checked(LIBC.syscall(438, *numbers))
    os.open("victim", os.O_WRONLY | os.O_TRUNC, dir_fd=fd)


@attack("mounts of a process outside (`setns`, `nsenter`)", user="needs rights over its namespace")
def setns(what):
    fd = os.open(f"/proc/{what.pid}/ns/mnt", os.O_RDONLY)
    checked(LIBC.setns(fd, 0))
    write(what.victim)


@attack("process that goes on after the call has ended")
def background(what):
    if os.fork():
        return
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    try:
        wait_for(f"{what.signals}/go", longest=5.0)  # bubblewrap, as root, waits for this process
        write(what.victim)
    finally:
        Path(what.plans, "done").touch()


@attack("setuid program", root="has all rights without it")
def setuid_program(what):
    subprocess.run([what.setuid_copy, __file__, what.of_root], check=True)


# Mounts --------------------------------------------------------------------------------------


@attack("`umount`", control="namespace")
def umount(what):
    for each in (what.home, "/"):
        LIBC.umount2(os.fsencode(each), 2)
    write(what.victim)


@attack("remount", control="namespace")
def remount(what):
    for each in (what.home, "/"):
        LIBC.mount(None, os.fsencode(each), None, 32 | 4096, None)
    write(what.victim)


@attack("`mount_setattr` on everything", control="namespace")
def make_writable(what):
    for each in (what.home, "/"):
        values = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
        numbers = (ctypes.c_long(-100), os.fsencode(each), ctypes.c_long(0x8000), values)
        LIBC.syscall(442, *numbers, ctypes.c_long(32))
    write(what.victim)


@attack("bind a folder into the private folder", control="namespace")
def bind_private(what):
    target = os.path.join(os.environ.get("TMPDIR", what.plans), "bound")
    os.makedirs(target, exist_ok=True)
    checked(LIBC.mount(os.fsencode(what.source), os.fsencode(target), None, 4096, None))
    LIBC.mount(None, os.fsencode(target), None, 32 | 4096, None)
    write(f"{target}/app.py")


def enter_user_namespace(flags):
    user, group = os.geteuid(), os.getegid()
    checked(LIBC.unshare(0x10000000 | 0x20000 | flags))
    maps = {"setgroups": "deny", "uid_map": f"0 {user} 1", "gid_map": f"0 {group} 1"}
    for name, text in maps.items():
        with suppress(OSError):
            write(f"/proc/self/{name}", text)


@attack("user namespace inside, with all rights there, then mounts")
def nested_namespace(what):
    enter_user_namespace(0)
    make_writable(what)


@attack("control groups, mounted in a user namespace inside")
def nested_cgroups(what):
    enter_user_namespace(0x02000000)
    checked(LIBC.mount(b"none", os.fsencode(what.plans), b"cgroup2", 0, None))
    print("OUT")  # those that the user was given can be written there


@attack("file by its handle, through a writable mount (`open_by_handle_at`)", user="only root may")
def by_handle(what):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    victim = os.fsencode(what.victim)
    checked(LIBC.name_to_handle_at(-100, victim, handle, ctypes.byref(mount_id), 0))
    mount = os.open(what.plans, os.O_RDONLY)
    fd = checked(LIBC.open_by_handle_at(mount, handle, os.O_WRONLY | os.O_TRUNC))
    os.write(fd, b"attacked")


@attack("what is mounted outside while the call runs", user="may mount nothing")
def mounted_meanwhile(what):
    meanwhile(what)
    write(f"{what.home}/mounted/attacked")


@attack("disk by its node in `/dev`", user="may not open it")
def raw_device(what):
    with open(what.disk, "r+b", buffering=0) as file:
        file.write(b"attacked")


@attack("disk by a node of one's own (`mknod`)", user="may not make one")
def mknod(what):
    node = f"{what.plans}/disk"
    os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(7, int(what.disk.removeprefix("/dev/loop"))))
    with open(node, "r+b", buffering=0) as file:
        file.write(b"attacked")


# The machine ---------------------------------------------------------------------------------


@attack("kernel setting (`/proc/sys`)", user="may not write it")
def kernel_setting(what):
    write("/proc/sys/kernel/domainname", "attacked")


@attack("`core_pattern`", user="may not write it")
def core_pattern(what):
    name = "/proc/sys/kernel/core_pattern"
    write(name, Path(name).read_text())
    print("OUT")


@attack("control group (`/sys/fs/cgroup`)", user="has none of his own")
def control_group(what):
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        try:
            os.mkdir(f"{folder}/{what.group_name}")
        except OSError:
            continue
        return
    raise PermissionError


@attack("name of the machine (`sethostname`)", user="may not change it")
def host_name(what):
    socket.sethostname("attacked")


@attack("task of cron, `at` or systemd")
def scheduled_task(what):
    write(f"{what.scheduled}/attacked", "# nothing\n")


# Orders to processes outside -----------------------------------------------------------------


def connected(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


def order(path):
    with connected(path) as sock:
        sock.sendall(ORDER)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


@attack("socket of a daemon, as docker has")
def docker_socket(what):
    order(f"{what.home}/docker.sock")


@attack('socket of a daemon, `network="none"`', network="none")
def docker_socket_none(what):
    order(f"{what.home}/docker.sock")


@attack("datagram socket of a daemon")
def datagram_socket(what):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(ORDER, f"{what.home}/datagrams.sock")


@attack("socket of tmux")
def tmux_socket(what):
    order(f"{what.tmux}/attack")


@attack("socket of screen")
def screen_socket(what):
    order(f"{what.home}/.screen/1.pts-0.host")


@attack("D-Bus of the session")
def session_bus(what):
    order(f"{what.runtime}/bus")


@attack("systemd of the user")
def systemd_user(what):
    order(f"{what.runtime}/systemd/private")


@attack("agent for keys (a socket that was renamed)")
def renamed_socket(what):
    order(f"{what.home}/.ssh/agent")


@attack("socket that was bound by a relative path")
def relative_socket(what):
    order(f"{what.home}/relative.sock")


@attack("socket that appears while the call runs, in a usual folder")
def late_socket(what):
    meanwhile(what)
    order(f"{what.runtime}/late")


@attack("socket that appears while the call runs, elsewhere")
def late_socket_elsewhere(what):
    meanwhile(what)
    order(f"{what.home}/late.sock")


@attack("abstract socket")
def abstract_socket(what):
    order(f"\0{what.abstract}")


@attack('abstract socket, `network="none"`', network="none")
def abstract_socket_none(what):
    order(f"\0{what.abstract}")


@attack("named pipe of a daemon")
def named_pipe(what):
    fd = os.open(f"{what.home}/pipe", os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, ORDER)


def tcp(what):
    with socket.create_connection(("127.0.0.1", what.tcp)) as sock:
        sock.sendall(ORDER)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


def udp(what):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", what.udp))
        sock.send(ORDER)
        sock.send(ORDER)  # tells whether anybody took the first


@attack('TCP, `network="host"`')
def tcp_host(what):
    tcp(what)


@attack('TCP, `network="none"`', network="none")
def tcp_none(what):
    tcp(what)


@attack('UDP, `network="host"`')
def udp_host(what):
    udp(what)


@attack('UDP, `network="none"`', network="none")
def udp_none(what):
    udp(what)


@attack('socket to the host of a virtual machine, `network="none"`', network="none")
def vsock_none(what):
    socket.socket(40, socket.SOCK_STREAM).close()
    print("OUT")


@attack("shared memory of System V")
def system_v_memory(what):
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(what.memory, None, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError("shmat")
    ctypes.memmove(address, b"attacked", 8)


@attack("message queue of System V")
def system_v_queue(what):
    message = struct.pack("l", 1) + b"attacked"
    checked(LIBC.msgsnd(what.queue, message, 8, 0o4000))


@attack("shared memory in `/dev/shm`")
def shared_memory(what):
    with open(what.shared, "r+") as file:
        file.write("attacked")


@attack("typing into the caller's terminal (`TIOCSTI`)")
def type_into_terminal(what):
    for each in b"order\n":
        fcntl.ioctl(0, 0x5412, bytes([each]))


@attack("another terminal of the user")
def other_terminal(what):
    fd = os.open(what.terminal, os.O_WRONLY | os.O_NOCTTY)
    os.write(fd, ORDER)


if __name__ == "__main__":
    ATTACKS[sys.argv[1]].run(SimpleNamespace(**json.loads(sys.argv[2])))
