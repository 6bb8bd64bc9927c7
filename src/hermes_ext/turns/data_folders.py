"""The folders in which extensions keep files: one for each, private, outside of every tree.

    HOME/extensions-data/home/NAME               an extension of the user's
    HOME/extensions-data/projects/REPO-ab12/NAME one of a project

A folder is made when a handler that names `data_dir` is first called, and nothing removes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import threading
import weakref
from pathlib import Path

from hermes_ext._forks import has_locks
from hermes_ext._text import printable
from hermes_ext.exceptions import StateError

FOLDER = "extensions-data"

_LONGEST = 40  # characters of a project's name; what tells projects apart is the digest


class DataFolders:
    """The data folders of one runtime.

    Args:
        home: the Hermes home; None for a temporary folder, which is removed with this object.
    """

    def __init__(self, home: Path | None) -> None:
        self._base = None if home is None else home / FOLDER
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """After a fork."""
        self._lock = threading.Lock()

    def of(self, extension: str, project: Path | None) -> Path:
        """The folder of an extension, which exists.

        Args:
            extension: its name.
            project: the root of the project that it belongs to; None for the user's own.

        Raises:
            StateError: the folder cannot be made, or it is not the user's alone.
        """
        of = ("home",) if project is None else ("projects", _named(project))
        folder = self._root().joinpath(*of, extension.replace(os.sep, "%2F"))
        try:
            for each in (*reversed(folder.parents[: len(of) + 1]), folder):
                if not each.is_dir():
                    each.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check(folder)
        except OSError as error:
            raise StateError(
                f"the data_dir of {extension!r} cannot be used: {error.strerror or error}",
                path=folder,
                hint="Check its owner and permissions, and whether the disk is full",
            ) from None
        return folder

    def _root(self) -> Path:
        with self._lock:
            if self._base is None:
                self._base = Path(tempfile.mkdtemp(prefix="hermes-ext-"))
                weakref.finalize(self, _remove, self._base, os.getpid())
            return self._base


def _named(project: Path) -> str:
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()
    return f"{printable(project.name)[:_LONGEST]}-{digest[:12]}"


def _check(folder: Path) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(None, "it is a link, or not a folder")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise OSError(None, f"it belongs to another user (uid {found.st_uid})")


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)
