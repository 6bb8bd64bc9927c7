"""Sockets of processes outside: a confined process could ask one of these to write for it.

Called at each start, and a desktop has hundreds of them: paths are strings here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

# Name services and logs: they answer or note down, and do nothing that is asked of them.
_HARMLESS: Final = (
    "/run/nscd/socket",
    "/run/nslcd/socket",
    "/run/systemd/resolve",
    "/run/systemd/userdb",
    "/run/systemd/journal",
    "/run/avahi-daemon/socket",
    "/run/samba/winbindd/pipe",
    "/var/lib/sss/pipes/nss",
    "/dev/log",
)


def daemons_folders() -> list[str]:
    """Folders that hold nothing but daemons' sockets, of now or later; root reaches everybody's."""
    user = os.geteuid()
    own = f"/S-{_name(user)}" if user else ""
    names = (
        f"/run/user/{user}" if user else "/run/user",
        f"/tmp/tmux-{user}",
        f"/tmp/uscreens{own}",
        f"/tmp/screens{own}",
        "/tmp/.X11-unix",
        "/tmp/.ICE-unix",
        "/run/screen",
        "/run/dbus",
        "/run/docker",
        "/run/containerd",
        "/run/podman",
        "/run/crio",
        "/run/libvirt",
    )
    return [path for path in dict.fromkeys(map(os.path.realpath, names)) if os.path.isdir(path)]


def listening() -> list[str]:
    """Every socket with a path that some process listens at and this user can reach."""
    real = cache(os.path.realpath)
    found: dict[str, None] = {}
    for path in _bound():
        folder, name = os.path.split(path)
        if _is_socket(path):
            found[os.path.join(real(folder), name)] = None
        else:  # made under another name and renamed, as ssh does
            found.update(dict.fromkeys(_sockets_in(real(folder))))
    return [path for path in found if os.access(path, os.W_OK) and not below(path, _HARMLESS)]


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of several or below one."""
    return any(path == each or path.startswith(f"{each}/") for each in folders)


def _bound() -> Iterator[str]:
    """What stands in the kernel's table; a relative path where a process's directory has it."""
    lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    names = {parts[7] for line in lines if len(parts := line.split(maxsplit=7)) == 8}
    relative = [name for name in names if not name.startswith(("/", "@"))]
    yield from (name for name in names if name.startswith("/"))
    if relative:
        for folder in _working_directories():
            yield from (path for name in relative if _is_socket(path := f"{folder}/{name}"))


def _working_directories() -> set[str]:
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/cwd"))
    return found


def _sockets_in(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (each.path for each in entries if _is_socket(each.path))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


@cache
def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
