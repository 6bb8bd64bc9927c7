"""What git keeps of a folder."""

from __future__ import annotations

import os
from pathlib import Path


def is_tracked(folder: Path, root: Path | None) -> bool:
    """Whether git keeps files of a folder: then it holds sources, whatever it is called.

    As far as the index tells, which has the paths as they are.
    """
    if root is None or not folder.is_relative_to(root):
        return False
    name = os.fsencode(f"{folder.relative_to(root).as_posix()}/")
    try:
        return name in (_kept_in(root) / "index").read_bytes()
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
