# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Asks before what cannot be undone. README.md says what that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import pathspec

from hermes_ext import CallVerdict, HookResult, ToolCall, register_hook
from hermes_ext.effects import ChangeKind, Command, Effects, effects_of

from .commands import kind_of, runs_statements
from .statements import destroys_data

_SETTING = "extensions.confirm-destructive"


@register_hook("intercept_tool_call", guard=True)
def ask_first(
    event: ToolCall, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None
) -> CallVerdict:
    """Ask about a call that destroys something; a yes is for exactly this call."""
    effects = effects_of(event)
    if not (effects.may_write or effects.commands):
        return None
    root = project_root or cwd
    resolved = None if root is None or event.machine is None else event.machine.resolve(root)
    for kind, told in _reasons(effects, event, config, resolved):
        if kind in config["kinds"] or kind == "extra":
            key = "extra" if kind == "extra" else "kinds"
            decide = HookResult.block if config["action"] == "block" else HookResult.ask
            return decide(told, metadata={"setting": f"{_SETTING}.{key}", "kind": kind})
    return None


def _reasons(
    effects: Effects, event: ToolCall, config: Mapping[str, Any], root: Path | None
) -> Iterator[tuple[str, str]]:
    for change in effects.changes:
        deletes = change.kind is ChangeKind.DELETE and change.tree
        if deletes and not _is_allowed(change.path, root, tuple(config["allowed"])):
            yield "recursive-delete", f"{change.by} deletes {change.path} with all that is in it."
    for command in effects.commands:
        found = kind_of(command)
        if found is not None:
            yield found, f"`{command.text}` cannot be undone ({found})."
        if any(fnmatchcase(_words(command), pattern) for pattern in config["extra"]):
            yield "extra", f"`{command.text}` is one of the commands to ask about."
        if runs_statements(command) and _destroys_data(command, event):
            yield "database", f"`{command.text}` may destroy data."


def _is_allowed(path: Path, root: Path | None, patterns: tuple[str, ...]) -> bool:
    if root is None or path == root or not path.is_relative_to(root):
        return False
    return _spec(patterns).match_file(f"{path.relative_to(root).as_posix()}/")


@lru_cache(maxsize=16)
def _spec(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    return pathspec.GitIgnoreSpec.from_lines(patterns)


def _words(command: Command) -> str:
    return " ".join((command.name, *("…" if each is None else each for each in command.args)))


def _destroys_data(command: Command, event: ToolCall) -> bool:
    """Whether a client of a database is given statements that do, or that are not seen.

    Statements may come through a pipe or a here-document: so the whole call is looked at.
    """
    told = [each for each in command.args if each is not None]
    texts = (str(value) for value in event.tool_args.values())
    return any(map(destroys_data, (*told, *texts))) or None in command.args
