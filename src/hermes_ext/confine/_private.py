"""A private folder for temporary files and caches, which lives as long as this process."""

from __future__ import annotations

import atexit
import errno
import os
import py_compile
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from attrs import frozen

from hermes_ext.confine._model import Confinement, Network

_HELPER: Final = Path(__file__).with_name("helper.py")
_PREFIX: Final = "hermes-ext-confined-"
_FOLDERS: Final = ("tmp", "run")


@frozen
class PrivateFolder:
    """Where confined processes put temporary files and caches.

    Attributes:
        path: the folder, mode 0700. Confined processes may write below it.
        sentinel: a file beside it that none of them may write; each start tries.
        helper: the helper, compiled: an installation may be unable to keep it so.
    """

    path: Path
    sentinel: Path
    helper: Path

    @classmethod
    def of(cls, root: Path, confinement: Confinement) -> PrivateFolder:
        """The folder of this process for a project and what may be written there.

        What one call leaves in a cache, a later call runs: calls that may write more, or reach
        the network, have a folder of their own.

        Raises:
            OSError: there is no temporary folder to make it in.
        """
        return _made(os.getpid(), root, confinement.writable, confinement.network)

    def renew(self) -> None:
        """Make again what a program has removed, or what cleans temporary folders.

        Raises:
            OSError: it cannot be made, or somebody else has made it.
        """
        _furnish(self.helper)
        self.path.mkdir(0o700, parents=True, exist_ok=True)
        self.sentinel.touch(0o600)
        for name in _FOLDERS:
            with suppress(OSError):
                os.mkdir(self.path / name, 0o700)


@cache
def _made(pid: int, root: Path, writable: tuple[Path, ...], network: Network) -> PrivateFolder:
    helper = _base(pid) / "helper.pyc"
    _furnish(helper)
    own = Path(tempfile.mkdtemp(dir=helper.parent))
    folder = PrivateFolder(own / "private", own / "sentinel", helper)
    folder.renew()
    return folder


@cache
def _base(pid: int) -> Path:
    """The folder of a process, around its private ones."""
    _sweep()
    base = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{pid}-{_started(pid)}-")).resolve()
    _remove_at_the_end(base)
    return base


def _furnish(helper: Path) -> None:
    """Put the helper into the folder of a process, which may have been removed."""
    import fcntl  # other systems have none

    base = helper.parent
    with suppress(FileExistsError):
        base.mkdir(0o700)
    seen = base.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "somebody else has made it", str(base))
    if helper.exists():
        return
    # Open as long as the process: systemd-tmpfiles takes nothing out of a folder that is locked.
    fcntl.flock(os.open(base, os.O_RDONLY), fcntl.LOCK_SH)
    py_compile.compile(str(_HELPER), cfile=str(helper), doraise=True)


def _remove_at_the_end(base: Path) -> None:
    """Remove it when this process ends, by `os._exit` too: so does `hermes -z`."""
    pid, leave = os.getpid(), os._exit

    def remove() -> None:
        if os.getpid() == pid:  # a forked child has its parent's handlers
            shutil.rmtree(base, ignore_errors=True)

    def remove_and_leave(status: int) -> NoReturn:
        with suppress(BaseException):
            remove()
        leave(status)

    atexit.register(remove)
    os._exit = remove_and_leave


def _sweep() -> None:
    """Remove what this user's processes left that ended without a farewell."""
    with suppress(OSError):
        for each in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            if _is_left(each):
                shutil.rmtree(each, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        pid, started = map(int, folder.name.removeprefix(_PREFIX).split("-")[:2])
        mine = folder.lstat().st_uid == os.geteuid()
        return mine and _started(pid) != started and not _is_locked(folder)
    except (ValueError, OSError):
        return False


def _is_locked(folder: Path) -> bool:
    """Whether its process lives: in another container it is not seen."""
    import fcntl

    fd = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _started(pid: int) -> int:
    """When a process started, in ticks since boot; 0 if there is none. A number comes again."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
