# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""No broad search before the routing documents were read. README.md says what is broad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    ToolCall,
    ToolOutputResult,
    ToolResult,
    register_hook,
)
from hermes_ext.effects import Machine, effects_of

from .reading import stands_in

_SETTING = "extensions.module-router"


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
    if root is None or event.machine is None or not effects.searches:
        return None
    broad = [each for each in effects.searches if _is_broad(each, root, config, event.machine)]
    missing = _unread(config, root, event.machine, state)
    if not broad or not missing:
        return None
    link = " or " if config["need"] == "any" else " and "
    shown = link.join(_shown(each, root) for each in missing)
    told = (
        f"Searching all of {_shown(sorted(broad)[0], root)} comes after reading {shown}, which "
        "says where things are. Read it in full in this turn, then search in the directory that it "
        "names."
    )
    return HookResult.block(told, metadata={"setting": f"{_SETTING}.documents"})


@register_hook("transform_tool_result", priority=900)
def notice(
    event: ToolResult,
    result: str,
    status: str | None,
    config: Mapping[str, Any],
    state: Any,
    cwd: Path | None,
    project_root: Path | None,
) -> ToolOutputResult:
    """Note a document that the model gets to see."""
    root = _root(event.machine, project_root or cwd)
    if root is None or event.machine is None or status not in (None, "ok"):
        return None
    documents = _documents(config, root, event.machine)
    for document in effects_of(event).reads.intersection(documents):
        # Whether the call was for it says little: the result has to have it.
        if stands_in(document, result):
            state[_key(document)] = True
    return None


def _root(machine: Machine | None, root: Path | None) -> Path | None:
    return None if machine is None or root is None else machine.resolve(root)


def _documents(config: Mapping[str, Any], root: Path, machine: Machine) -> list[Path]:
    return [machine.resolve(each, root) for each in config["documents"]]


def _unread(config: Mapping[str, Any], root: Path, machine: Machine, state: Any) -> Sequence[Path]:
    documents = [each for each in _documents(config, root, machine) if each.is_file()]
    unread = [each for each in documents if not state.get(_key(each))]
    if config["need"] == "any" and len(unread) < len(documents):
        return ()
    return unread


def _is_broad(path: Path, root: Path, config: Mapping[str, Any], machine: Machine) -> bool:
    if root.is_relative_to(path):
        return True
    if not path.is_relative_to(root):
        return False
    if any(path.is_relative_to(machine.resolve(each, root)) for each in config["narrow"]):
        return False
    depth: int = config["broad_depth"]
    return len(path.relative_to(root).parts) <= depth


def _key(document: Path) -> str:
    return f"module-router.read.{document}"


def _shown(path: Path, root: Path) -> str:
    if path == root:
        return "the project"
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
