"""What the last load recorded, kept so that `list` can show hooks without running any code.

One JSON file in the home's cache. It is never the reason why something fails: without it, and
where it is damaged or cannot be written, extensions are merely "not loaded yet".
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes_ext._files import replace_file
from hermes_ext._regular import read_regular
from hermes_ext._text import printable
from hermes_ext._values import frozen
from hermes_ext.hooks.source import Source
from hermes_ext.records import CommandInfo, ExtensionRecord, HookInfo, Status

_FORMAT = 2

# Not this: they tell nothing that needs the code to have run.
_UNTOLD = frozenset(
    {
        Status.DISABLED,
        Status.SHADOWED,
        Status.MISSING,
        Status.UNTRUSTED,
        Status.INCOMPATIBLE,
        Status.NOT_AN_EXTENSION,
    }
)


@frozen
class Remembered:
    """One extension as the last load left it.

    hooks: also those that were turned off. stamp: of its module then, see `stamp_of`.
    """

    status: Status
    reason: str
    hooks: tuple[HookInfo, ...]
    commands: tuple[CommandInfo, ...]
    warnings: tuple[str, ...]
    stamp: int


def snapshot_file(home: Path) -> Path:
    """Where the snapshot of a home lies."""
    return home / "cache" / "hermes-ext" / "last-load.json"


def stamp_of(path: Path | None) -> int:
    """The modification time of a file in nanoseconds, 0 for none: tells whether it changed."""
    if path is None:
        return 0
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def write_snapshot(home: Path, records: Iterable[tuple[ExtensionRecord, int]]) -> bool:
    """Write what a load recorded; returns whether the file was written.

    records: each with what tells whether it has changed since, see `load_stamp`.

    What earlier loads recorded of extensions that are still there, and were not loaded this time,
    stays. Written only where something changed, atomically; nothing is raised and nothing is
    created for a home where no extension is on.
    """
    records = tuple(records)
    told = [_told(each, stamp) for each, stamp in records if each.status not in _UNTOLD]
    file = snapshot_file(home)
    old = _read(file).get("extensions", [])
    told.sort(key=_key)
    if old == told:
        return False
    new = {_key(each) for each in told}
    there = {key_of(each.source, each.name, each.path) for each, _ in records}
    told += [
        each
        for each in old
        if _is_entry(each)
        and _key(each) not in new
        and (_key(each) in there or (each["path"] and os.path.exists(each["path"])))
    ]
    told.sort(key=_key)
    if old == told:
        return False
    text = json.dumps({"format": _FORMAT, "at": time.time(), "extensions": told}, indent=1)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode(), durable=False)
    except OSError:
        return False
    return True


def read_snapshot(home: Path) -> dict[tuple[str, str, str], Remembered]:
    """What is remembered, by `key_of`; empty where there is nothing to read."""
    found: dict[tuple[str, str, str], Remembered] = {}
    for each in _read(snapshot_file(home)).get("extensions", []):
        # An older or damaged file: the extension counts as not loaded yet.
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found[each["source"], each["name"], each["path"]] = _remembered(each)
    return found


def key_of(source: Source | None, name: str, path: Path | None) -> tuple[str, str, str]:
    """What tells extensions apart in a snapshot."""
    return str(source), name, "" if path is None else printable(path)


def _told(record: ExtensionRecord, stamp: int) -> dict[str, Any]:
    return {
        "name": record.name,
        "source": str(record.source),
        "path": "" if record.path is None else printable(record.path),
        "status": str(record.status),
        "reason": record.reason,
        "hooks": [hook.to_json() for hook in record.known_hooks],
        "commands": [command.to_json() for command in record.commands],
        "warnings": list(record.warnings),
        "stamp": stamp,
    }


def _is_entry(told: Any) -> bool:
    with contextlib.suppress(KeyError, TypeError, ValueError):
        _remembered(told)
        return all(isinstance(part, str) for part in _key(told))
    return False


def _key(told: Mapping[str, Any]) -> tuple[str, str, str]:
    return told["source"], told["name"], told["path"]


def _remembered(told: Mapping[str, Any]) -> Remembered:
    hooks = tuple(
        HookInfo(**hook | {"tools": None if hook["tools"] is None else tuple(hook["tools"])})
        for hook in told["hooks"]
    )
    status, warnings = Status(told["status"]), tuple(told["warnings"])
    commands = tuple(CommandInfo(**command) for command in told["commands"])
    return Remembered(status, told["reason"], hooks, commands, warnings, told["stamp"])


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(read_regular(file))
    except (OSError, ValueError):
        return {}
    usable = isinstance(told, dict) and told.get("format") == _FORMAT
    return told if usable and isinstance(told.get("extensions"), list) else {}
