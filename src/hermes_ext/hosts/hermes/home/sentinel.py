"""The sentinel: a plugin folder in a Hermes home that refuses tools when this package is gone.

Its files begin with the digest of the rest, by which any release knows that nobody changed them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from hermes_ext._files import replace_file
from hermes_ext._regular import read_regular
from hermes_ext._text import printable
from hermes_ext.exceptions import ConfigError

NAME: Final = "hermes-ext-sentinel"
_MARK: Final = "# hermes-ext sentinel, sha256 "
_MANIFEST: Final = f"""\
name: {NAME}
version: "1"
description: Refuses tool calls when the package hermes-ext is gone. To remove it, delete it.
"""
_CACHE: Final = "__pycache__"


class SentinelState(StrEnum):
    """What is in the sentinel's place.

    ABSENT: nothing. CURRENT: what this release writes. OLD: what another release wrote, unchanged.
    CHANGED: something that a person changed, or something else.
    """

    ABSENT = "absent"
    CURRENT = "current"
    OLD = "old"
    CHANGED = "changed"


def sentinel_folder(home: Path) -> Path:
    """Where the sentinel of a home is."""
    return home / "plugins" / NAME


def sentinel_state(home: Path) -> SentinelState:
    """What is in the sentinel's place. Raises nothing."""
    folder = sentinel_folder(home)
    try:
        names = {each.name for each in folder.iterdir()} - {_CACHE}
        found = {name: read_regular(folder / name) for name in names}
    except FileNotFoundError:
        is_there = folder.is_symlink() or folder.exists()
        return SentinelState.CHANGED if is_there else SentinelState.ABSENT
    except OSError:
        return SentinelState.CHANGED
    if folder.is_symlink():
        return SentinelState.CHANGED
    if found == _files():
        return SentinelState.CURRENT
    ours = found.keys() == _files().keys() and all(map(_is_unchanged, found.values()))
    return SentinelState.OLD if ours else SentinelState.CHANGED


def write_sentinel(home: Path) -> bool:
    """Write the sentinel; whether that was needed. Raises ConfigError where it cannot be done."""
    folder = sentinel_folder(home)
    state = sentinel_state(home)
    if state is SentinelState.CURRENT:
        return False
    if state is SentinelState.CHANGED:
        raise ConfigError(
            "the sentinel cannot be written: this folder is not as install left it",
            path=folder,
            hint="Move it away, then run install again",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _files().items():
            replace_file(folder / name, content, mode=0o644)
    except OSError as error:
        raise ConfigError(
            f"the sentinel cannot be written: {error.strerror or error}", path=folder
        ) from error
    return True


def remove_sentinel(home: Path) -> str | None:
    """Remove the sentinel if nobody changed it; a note on what was kept, None if nothing was."""
    folder = sentinel_folder(home)
    state = sentinel_state(home)
    if state is SentinelState.ABSENT:
        return None
    kept = f"{printable(folder)} is kept"
    if state is SentinelState.CHANGED:
        return f"{kept}, because it is not as install left it. Delete it if you do not need it"
    try:
        shutil.rmtree(folder)
    except OSError as error:
        return f"{kept}: {error.strerror or error}. Delete it"
    return None


def _files() -> Mapping[str, bytes]:
    code = Path(__file__).with_name("sentinel_stub.py").read_bytes()
    return {"plugin.yaml": _marked(_MANIFEST.encode()), "__init__.py": _marked(code)}


def _marked(content: bytes) -> bytes:
    return f"{_MARK}{sha256(content).hexdigest()}\n".encode() + content


def _is_unchanged(content: bytes) -> bool:
    first, _, rest = content.partition(b"\n")
    return first == f"{_MARK}{sha256(rest).hexdigest()}".encode()
