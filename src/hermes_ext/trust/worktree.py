"""The main work tree of a linked one (`git worktree add`), as git's own files name it.

    WORK/.git                           "gitdir: GITDIR"
    GITDIR/commondir                    the repository that all its work trees share
    GITDIR/gitdir                       back to WORK/.git

No git process runs, and nothing in these files is believed further than this: whoever wrote WORK
chose what its `.git` names. So a link only ever adds rules that the user trusts elsewhere. Where it
would put one tree in the place of another, the repository has to confirm it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hermes_ext._regular import read_regular
from hermes_ext._values import frozen
from hermes_ext.trust.place import real_path

_LONGEST: Final = 8_192  # bytes of a file that holds one path
_GIT: Final = ".git"


@frozen
class Link:
    """A link to the real path of a main work tree. confirmed: whether the repository has it too."""

    main: Path
    confirmed: bool


def link_of(folder: Path, roots: Iterable[Path] = ()) -> Link | None:
    """How a folder, by its real path, is linked to a main work tree; None if not. Never raises.

    roots: folders that may be the main work tree of a repository that is kept elsewhere (`git init
    --separate-git-dir`, a submodule).
    """
    if not os.path.isfile(f"{folder}{os.sep}{_GIT}"):  # as at most folders, at every turn
        return None
    own = _git_folder(folder)
    shared = None if own is None else _named(own / "commondir", own)
    if own is None or shared is None:
        return None
    main = (
        shared.parent
        if shared.name == _GIT
        else next((root for root in roots if _git_folder(root) == shared), None)
    )
    if main is None or main == folder:
        return None
    return Link(main, _is_confirmed(folder, own, shared))


def _git_folder(folder: Path) -> Path | None:
    """The folder that a `.git` file names."""
    return _named(folder / _GIT, folder, "gitdir:")


def _is_confirmed(folder: Path, own: Path, shared: Path) -> bool:
    back = _named(own / "gitdir", own)
    return own.parent == shared / "worktrees" and back == folder / _GIT


def _named(file: Path, base: Path, before: str = "") -> Path | None:
    """The real path that a file of git's holds behind `before`; None where it holds none."""
    try:
        text = os.fsdecode(_content(file)).rstrip("\r\n")
        path = text.removeprefix(before).lstrip(" \t")
        is_one = text.startswith(before) and path and "\n" not in path
        return real_path(base / path) if is_one else None
    except (OSError, ValueError):  # not there, not to be read, or a NUL in the path
        return None


def _content(file: Path) -> bytes:
    if not stat.S_ISREG(os.lstat(file).st_mode):
        return b""
    data = read_regular(file, _LONGEST + 1)
    return data if len(data) <= _LONGEST else b""
