"""Run in new namespaces by `screen`: make the copy, run the command in it, print what changed."""

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

DEVICES = ("null", "zero", "full", "random", "urandom")


def main() -> None:
    asked = json.loads(sys.argv[1])
    upper, root = _copy(Path(asked["folder"]))
    status, err = _run(root, asked)
    print(
        json.dumps(
            {
                "status": status,
                "err": err,
                "changed": list(_changed(upper, Path("/"), asked["watched"])),
            }
        )
    )


def _copy(folder: Path) -> tuple[Path, Path]:
    _mount("-t", "tmpfs", "-o", "noatime", "none", folder)
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for each in (upper, work, root):
        each.mkdir()
    _mount(
        "-t", "overlay", "none", root, "-o", f"noatime,lowerdir=/,upperdir={upper},workdir={work}"
    )
    _mount("-t", "proc", "none", root / "proc")
    for path in filter(os.path.exists, (root / "proc/sys", root / "proc/sysrq-trigger")):
        _mount("--bind", path, path)
        _mount("-o", "remount,bind,ro", path)
    _mount("-t", "tmpfs", "none", root / "dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        _mount("--bind", Path("/dev", name), root / "dev" / name)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{target}")
    return upper, root


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _run(root: Path, asked: dict) -> tuple[int | None, str]:
    command = ["unshare", f"--root={root}", f"--wd={asked['project']}", *asked["command"]]
    started = subprocess.Popen(
        command, env=asked["variables"], start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, err = started.communicate(timeout=asked["seconds"])
    except subprocess.TimeoutExpired:
        return None, ""
    return (started.returncode if _alone(asked["seconds"]) else None), err.decode(errors="replace")


def _alone(seconds: float) -> bool:
    """Wait for what the command left running; this process is the first of its namespace."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            return True
    return False


def _changed(upper: Path, lower: Path, watched: list[str]) -> Iterator[str]:
    """What is there in another form than before; a copy that is the same is no change."""
    for entry in os.scandir(upper):
        there, before = Path(entry.path), lower / entry.name
        if not os.path.lexists(before) or _differs(there, before, watched):
            yield str(before)
        elif entry.is_dir(follow_symlinks=False):
            yield from _changed(there, before, watched)


def _differs(there: Path, before: Path, watched: list[str]) -> bool:
    new, old = there.lstat(), before.lstat()
    if (new.st_mode, new.st_uid, new.st_gid) != (old.st_mode, old.st_uid, old.st_gid):
        return True
    same_time = new.st_mtime_ns == old.st_mtime_ns
    if stat.S_ISDIR(new.st_mode):
        # Elsewhere a temporary file that is gone again changes no more than the folder's time.
        return not same_time and any(before.is_relative_to(each) for each in watched)
    if not same_time or new.st_atime_ns != old.st_atime_ns or stat.S_ISLNK(new.st_mode):
        return True
    return stat.S_ISREG(new.st_mode) and there.read_bytes() != before.read_bytes()


main()
