"""The programs that the set-up installs, and running a command line among them."""

import hashlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from tests import debian

# Debian's names; first those that every such system has, whose programs count all the same.
PACKAGES: Final = (
    "apt", "bash", "coreutils", "debianutils", "diffutils", "dpkg", "e2fsprogs", "findutils",
    "grep", "gzip", "hostname", "libc-bin", "login", "mawk", "ncurses-bin", "passwd",
    "perl-base", "sed", "tar", "util-linux", "acl", "attr", "bc", "binutils", "bsdextrautils",
    "bzip2", "curl", "file", "gawk", "gcc", "git", "gpg", "indent", "iproute2", "jq", "kmod",
    "less", "lsof", "make", "markdown", "mercurial", "ncdu", "net-tools", "nkf",
    "openssh-client", "openssl", "p7zip-full", "patch", "pciutils", "perl", "procps", "psmisc",
    "python3", "python3-minimal", "python3-pip", "rcs", "rename", "ripgrep", "rsync", "sqlite3",
    "strace", "subversion", "time", "tree", "unzip", "vim-tiny", "xxd", "xz-utils", "zip",
)  # fmt: skip
_BUILTINS: Final = frozenset(
    {
        "alias", "cd", "compgen", "declare", "dirs", "echo", "eval", "export", "false", "for",
        "hash", "help", "history", "jobs", "let", "popd", "printf", "pushd", "pwd", "read",
        "readonly", "set", "shopt", "source", ".", "test", "[", "[[", "time", "trap", "true",
        "type", "ulimit", "umask", "unset", "wait", "while", "if", "done", "fi",
    }
)  # fmt: skip
PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"  # nothing that was put there by hand


@frozen
class Person:
    """Who runs a command."""

    name: str
    uid: int
    gid: int

    @property
    def as_whom(self) -> dict[str, Any]:
        """What `subprocess` is told."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


ROOT: Final = Person("root", 0, 0)


def ordinary() -> Person:
    """A user without rights whom every Debian has; not `nobody`, who stands for unknown owners."""
    found = pwd.getpwnam("games")
    return Person(found.pw_name, found.pw_uid, found.pw_gid)


def missing() -> tuple[str, ...]:
    """The packages that are not installed yet."""
    return tuple(each for each in PACKAGES if not _files_of(each))


def install(packages: tuple[str, ...]) -> None:
    """Install these packages.

    Raises:
        subprocess.CalledProcessError: A package cannot be installed.
    """
    debian.install(packages)
    _files_of.cache_clear()


def installs(program: str) -> bool:
    """Whether the set-up installs `program`, or the shell has it."""
    if program in _BUILTINS:
        return True
    found = shutil.which(program, path=PATH)
    if found is None:
        return False
    return os.path.realpath(found) in _installed()


def environment(home: Path, person: Person) -> dict[str, str]:
    """The variables of every run."""
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LOGNAME": person.name,
        "PATH": PATH,
        "TERM": "dumb",
        "TZ": "UTC",
        "USER": person.name,
    }


def state(paths: Iterable[Path]) -> str:
    """A digest of the name, kind, mode, owner, size, time and content of `paths`."""
    digest = hashlib.sha256()
    for path in paths:
        found = path.lstat()
        facts = (path, found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns)
        digest.update(repr(facts).encode())
        if path.is_symlink():
            digest.update(os.readlink(path).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _installed() -> frozenset[str]:
    """The files of all packages, by their real paths."""
    return frozenset(
        os.path.realpath(file) for each in PACKAGES for file in _files_of(each) if "bin/" in file
    )


@cache
def _files_of(package: str) -> tuple[str, ...]:
    listed = subprocess.run(
        ["dpkg-query", "--listfiles", package], capture_output=True, text=True, check=False
    )
    return tuple(listed.stdout.splitlines()) if listed.returncode == 0 else ()
