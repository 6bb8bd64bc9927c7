"""A new extension: its folder, written at once or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from hermes_ext._text import canonical_name, printable
from hermes_ext.exceptions import HermesExtError

__all__ = ["write_extension"]


def write_extension(root: Path, name: str, files: Mapping[str, str]) -> Path:
    """Write an extension's folder below `root`, which is made if need be; returns the folder.

    It is made under another name, which no loading looks at, and takes its own name when it is
    complete: nobody loads half of it, and of two that do this at once one fails.

    Args:
        root: where extensions are.
        name: the folder's name.
        files: the text of each file, by its path in the folder.

    Raises:
        HermesExtError: there is one of that name, however it is spelled; or it cannot be written.
    """
    folder = root / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        _refuse_another(root, name)
        made = root / f".new-{secrets.token_hex(8)}"
        made.mkdir()
    except FileExistsError:
        _refuse(root, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    except OSError as error:
        _refuse(root, error)
    try:
        for relative, text in files.items():
            path = made / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        _take_name(made, folder)
    except OSError as error:
        _refuse(folder, error)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _refuse_another(root: Path, name: str) -> None:
    for each in root.iterdir():
        other = each.stem if each.suffix == ".py" else each.name
        if canonical_name(other) == canonical_name(name) and not each.name.startswith("."):
            _refuse(each, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))


def _take_name(made: Path, folder: Path) -> None:
    # An empty folder is the claim: making it fails where there is anything, and a rename replaces
    # nothing but an empty folder.
    folder.mkdir()
    try:
        made.rename(folder)
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def _refuse(path: Path, error: OSError) -> NoReturn:
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
        raise HermesExtError(
            f'"{printable(path.name)}" is there already, and nothing is overwritten',
            path=path,
            hint="Choose another name, or remove it first",
        ) from error
    raise HermesExtError(
        f"{printable(path)} cannot be written: {error.strerror or error}", path=path
    ) from error
