"""Sockets of processes outside: through one of them a confined process would give orders."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

# Name services and logs: they answer or note down, and do nothing that is asked of them.
_HARMLESS: Final = tuple(
    map(
        Path,
        (
            "/run/nscd/socket",
            "/run/nslcd/socket",
            "/run/systemd/resolve",
            "/run/systemd/userdb",
            "/run/systemd/journal",
            "/run/avahi-daemon/socket",
            "/run/samba/winbindd/pipe",
            "/var/lib/sss/pipes/nss",
            "/dev/log",
        ),
    )
)


def daemons_folders() -> list[Path]:
    """Folders that hold nothing but daemons' sockets, of now or later."""
    user, temporary = os.geteuid(), Path("/tmp")
    names: tuple[str | Path, ...] = (
        f"/run/user/{user}",
        temporary / f"tmux-{user}",
        temporary / ".X11-unix",
        temporary / ".ICE-unix",
        temporary / f"uscreens/S-{_name(user)}",
        temporary / f"screens/S-{_name(user)}",
        "/run/screen",
        "/run/dbus",
        "/run/docker",
        "/run/containerd",
        "/run/podman",
        "/run/crio",
        "/run/libvirt",
    )
    return [path for path in dict.fromkeys(map(_real, names)) if path.is_dir()]


def listening() -> list[Path]:
    """Every socket with a path that some process listens at and this user can reach."""
    found: dict[Path, None] = {}
    for name in _bound():
        path = _real(name)
        if _is_socket(path):
            found[path] = None
        else:  # made under another name and renamed, as ssh does
            found.update(dict.fromkeys(_sockets_in(path.parent)))
    return [path for path in found if not _is_below(path, _HARMLESS)]


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


def _sockets_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (Path(each.path) for each in entries if _is_socket(each.path))


def _is_socket(path: str | Path) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(each) for each in folders)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
