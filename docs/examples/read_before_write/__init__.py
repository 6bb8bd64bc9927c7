"""A file is read before it is overwritten, and read again if somebody else has changed it.

`read_file` counts as reading; a page of a file does, too. Creating is free, as is what lies in the
folders of the setting `free`. What programs, or code that computes its paths, overwrite is not
known before it runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hermes_ext import CallVerdict, HookResult, SessionState, ToolCall, ToolResult, register_hook
from hermes_ext.effects import Change, ChangeKind, effects_of

MOST = 1_000  # files of a directory that is deleted or unpacked into


@register_hook("intercept_tool_call", guard=True)
def read_first(
    event: ToolCall,
    config: Mapping[str, Any],
    session_state: SessionState,
    project_root: Path | None,
) -> CallVerdict:
    """Refuse to overwrite, move away or delete what was not read."""
    effects = effects_of(event)
    if effects.open_changes:
        by = effects.open_changes[0].by
        return HookResult.block(f"Which file {by} changes is not known. Name it.")
    for change in effects.changes:
        if change.kind is ChangeKind.CREATE:
            continue
        for path in islice(files_of(change), MOST + 1):
            if is_below(path, project_root, config["free"]):
                continue
            seen = session_state.get(str(path))
            if seen is None:
                return HookResult.block(f"Read {path} before {change.by} changes it.")
            if seen != digest_of(path):
                return HookResult.block(f"{path} has changed since you read it. Read it again.")
    return None


@register_hook("transform_tool_result", priority=900)
def notice(event: ToolResult, status: str | None, session_state: SessionState) -> None:
    """Note what was read, and what the agent's own edits have made of it."""
    effects = effects_of(event)
    if status not in (None, "ok") or not effects.exact:
        return
    known = {"read_file": effects.reads, "write_file": effects.writes, "patch": effects.writes}
    for path in known.get(event.tool_name, ()):
        session_state[str(path)] = digest_of(path)


def files_of(change: Change) -> Iterator[Path]:
    if change.path.is_symlink():
        return  # what it leads to has a change of its own
    if not change.path.is_dir():
        yield change.path
    elif change.tree:
        yield from (each for each in change.path.rglob("*") if not each.is_dir())


def is_below(path: Path, root: Path | None, names: list[str]) -> bool:
    inside = root is not None and path.is_relative_to(top := root.resolve())
    return inside and not set(names).isdisjoint(path.relative_to(top).parts)


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
