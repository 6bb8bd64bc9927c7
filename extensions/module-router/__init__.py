# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""No broad search before the routing documents were read. README.md says what is broad."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    ToolCall,
    ToolOutputVerdict,
    ToolResult,
    register_hook,
)
from hermes_ext.effects import Machine, effects_of
from hermes_ext.exceptions import StateError

from .reading import beginning, stands_in, was_shown_before

_SETTING = "extensions.module-router"
# Who reads more files than this, in more directories, names them by a pattern: `cat */*.py`.
_MANY_FILES = 50
_MANY_DIRECTORIES = 5


@register_hook("intercept_tool_call", guard=True)
def read_the_map_first(
    event: ToolCall,
    config: Mapping[str, Any],
    state: Any,
    cwd: Path | None,
    project_root: Path | None,
) -> CallVerdict:
    """Block a broad search until the documents have been read in this turn."""
    effects = effects_of(event)
    root = _root(event.machine, project_root or cwd)
    if root is None or event.machine is None or not effects.reads:
        return None
    broad = [each for each in effects.searches if _is_broad(each, root, config, event.machine)]
    if _reads_everywhere(effects.reads, root):
        broad.append(root)
    if not broad:
        return None
    documents = _documents(config, root, event.machine)
    there = [each for each in documents if beginning(each)]
    absent = [_shown(each, root) for each in documents if each not in there]
    metadata = {"setting": f"{_SETTING}.documents", "absent": absent}
    missing = _unread(there, config, state)
    if not missing:
        # What cannot be read must not lock the agent out; the log has the setting.
        return HookResult.pass_(metadata=metadata) if absent else None
    link = " or " if config["need"] == "any" else " and "
    shown = link.join(_shown(each, root) for each in missing)
    told = (
        f"Searching all of {_shown(sorted(broad)[0], root)} comes after reading {shown}, which "
        "says where things are. Read it in full in this turn, then search in the directory that it "
        "names."
    )
    if absent:
        told += (
            f" Tell the user that {', '.join(absent)} ({_SETTING}.documents in config.yaml) is not "
            "there, or has no text."
        )
    return HookResult.block(told, metadata=metadata)


# A guard, because guards get what the model gets. It never blocks.
@register_hook("transform_tool_result", guard=True, priority=900, on_error="pass")
def notice(
    event: ToolResult,
    result: str,
    status: str | None,
    config: Mapping[str, Any],
    state: Any,
    session_state: Any,
    cwd: Path | None,
    project_root: Path | None,
) -> ToolOutputVerdict:
    """Note a document that the model gets to see."""
    root = _root(event.machine, project_root or cwd)
    if root is None or event.machine is None:
        return None
    documents = _documents(config, root, event.machine)
    for document in effects_of(event).reads.intersection(documents):
        # Whether the call was for it says little: the result has to have it.
        lines, key = beginning(document), _key(document)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        if status in (None, "ok") and stands_in(lines, result):
            state[key] = True
            # Where it cannot be stored, the document is to be read again in the next turn.
            with suppress(StateError):
                session_state[key] = digest
        elif was_shown_before(result) and _kept(session_state, key) == digest:
            state[key] = True
    return None


def _kept(session_state: Any, key: str) -> Any:
    with suppress(StateError):
        return session_state.get(key)
    return None


def _root(machine: Machine | None, root: Path | None) -> Path | None:
    return None if machine is None or root is None else machine.resolve(root)


def _documents(config: Mapping[str, Any], root: Path, machine: Machine) -> list[Path]:
    return [machine.resolve(each, root) for each in config["documents"]]


def _unread(there: Sequence[Path], config: Mapping[str, Any], state: Any) -> Sequence[Path]:
    unread = [each for each in there if not state.get(_key(each))]
    return () if config["need"] == "any" and len(unread) < len(there) else unread


def _is_broad(path: Path, root: Path, config: Mapping[str, Any], machine: Machine) -> bool:
    if root.is_relative_to(path):
        return True
    if not path.is_relative_to(root):
        return False
    if any(path.is_relative_to(machine.resolve(each, root)) for each in config["narrow"]):
        return False
    depth: int = config["broad_depth"]
    return len(path.relative_to(root).parts) <= depth


def _reads_everywhere(reads: Iterable[Path], root: Path) -> bool:
    below = [each for each in reads if each.is_relative_to(root)]
    return len(below) > _MANY_FILES and len({each.parent for each in below}) > _MANY_DIRECTORIES


def _key(document: Path) -> str:
    return f"module-router.read.{document}"


def _shown(path: Path, root: Path) -> str:
    if path == root:
        return "the project"
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
