"""Programs whose words say more than a table can tell, each by the name that the data gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hermes_ext.effects._programs import (
    archives,
    awk,
    code,
    copying,
    databases,
    finding,
    git,
    making,
    network,
    patching,
    running,
    sed,
)
from hermes_ext.effects._programs.call import Call

__all__ = ["PROGRAMS"]

PROGRAMS: Final[dict[str, Callable[[Call], None]]] = {
    "ar": archives.ar,
    "awk": awk.awk,
    "busybox": running.busybox,
    "cloud": network.cloud,
    "cp": copying.cp,
    "crontab": running.crontab,
    "csplit": making.csplit,
    "curl": network.curl,
    "dd": making.dd,
    "env": running.env,
    "fd": finding.fd,
    "find": finding.find,
    "flock": running.flock,
    "gzip": archives.gzip,
    "install": copying.install,
    "jar": archives.jar,
    "later": running.later,
    "ldd": databases.ldd,
    "ln": copying.ln,
    "mkdir": making.mkdir,
    "mktemp": making.mktemp,
    "mv": copying.mv,
    "node": code.node,
    "nohup": running.nohup,
    "pager": databases.pager,
    "patch": patching.patch,
    "perl": code.perl,
    "python": code.python,
    "rmdir": making.rmdir,
    "rpm": databases.rpm,
    "rsync": network.rsync,
    "ruby": code.ruby,
    "sed": sed.sed,
    "sevenzip": archives.sevenzip,
    "sh": running.shell,
    "shred": making.shred,
    "split": making.split,
    "sql": databases.sql,
    "sqlite": databases.sqlite,
    "sudo": running.sudo,
    "test": running.test,
    "tar": archives.tar,
    "tree": finding.tree,
    "unzip": archives.unzip,
    "watch": running.watch,
    "wget": network.wget,
    "xargs": running.xargs,
    "zip": archives.zip_,
    **git.PROGRAMS,
}
