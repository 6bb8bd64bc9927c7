"""Programs that tests need, as packages of Debian."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

NOT_HERE = "the set-up installs programs by apt-get, as root"


def can_install() -> bool:
    """Whether this is root on a Debian."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Iterable[str]) -> None:
    """Install by apt-get, one process at a time; its lists are read anew first.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with FileLock(Path(tempfile.gettempdir(), "hermes-ext-debian.lock")):
        for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            command = ["apt-get", "-qq", *words]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
