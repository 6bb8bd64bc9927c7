"""Commands whose answer is about what a confinement changes by design: counted apart.

The rule is older than the first confined run: it goes by the program, or by a path in `/proc`.
"""

import re
from typing import Final

from tests.confine.corpus.words import simple_commands

MOUNTS: Final = "it answers with mounts, and a confined command has its own"
CAPABILITIES: Final = "it answers with capabilities, or needs some, and a confined command has few"
PROCESSES: Final = "it answers with processes or their sockets, and some are hidden or its own"
DAEMONS: Final = "it asks a daemon, and the sockets of daemons are hidden"

_PROGRAMS: Final = {
    MOUNTS: "blkid df findmnt fsck fuser lsblk mount mountpoint swapon umount",
    CAPABILITIES: "capsh chroot dmesg getpcaps iptables ip6tables lspci nft nsenter setpriv strace "
    "su sudo sysctl unshare",
    PROCESSES: "jobs lsns lsof netstat pgrep pidof pidstat pmap prtstat ps pstree pwdx ss w who",
    DAEMONS: "at atq busctl docker hostnamectl journalctl localectl loginctl lpstat machinectl "
    "nmcli podman resolvectl screen ssh-add systemctl systemd-analyze timedatectl tmux udevadm",
}
_REASONS: Final = {name: why for why, names in _PROGRAMS.items() for name in names.split()}
_PATHS: Final = re.compile(r"/proc/(?:self|thread-self|mounts|\d+|\*)|/etc/mtab")


def reason(line: str) -> str | None:
    """Why `line` is counted apart, or None."""
    for command in simple_commands(line):
        for word in (command.program, *command.words):
            if (why := _REASONS.get(word)) and (word == command.program or _runs(command.program)):
                return why
            if _PATHS.search(word):
                return MOUNTS if "m" in word.rpartition("/")[2] else PROCESSES
    return None


def _runs(program: str) -> bool:
    """Whether the words of `program` name another program."""
    return program in {"env", "nohup", "time", "timeout", "watch", "xargs"}
