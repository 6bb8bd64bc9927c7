"""What git keeps of a folder."""

from __future__ import annotations

import os
from pathlib import Path

_CUT = (4).to_bytes(4, "big")


def is_tracked(folder: Path, root: Path | None) -> bool:
    """Whether git keeps files of a folder: then it holds sources, whatever it is called.

    As far as the index tells: not read is one of version 4, which cuts what two paths have in
    common, and one that is split. Of a submodule git keeps only the commit.
    """
    if root is None or not folder.is_relative_to(root):
        return False
    name = os.fsencode(f"{folder.relative_to(root).as_posix()}/")
    try:
        kept = _kept_in(root)
        index = (kept / "index").read_bytes()
        if index[4:8] == _CUT or [*kept.glob("sharedindex.*")]:
            return True
        return name in index or (folder / ".git").exists()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def _kept_in(root: Path) -> Path:
    """The folder of git; a linked work tree has a file that names it."""
    found = root / ".git"
    if found.is_dir():
        return found
    return root / found.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
