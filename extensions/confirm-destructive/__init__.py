# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Asks before what cannot be undone. README.md says what that is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pathspec

from hermes_ext import CallVerdict, HookResult, ToolCall, register_hook
from hermes_ext.effects import Change, ChangeKind, Command, Effects, ToolKind, effects_of

from .commands import kind_of, runs_statements
from .git import UNKNOWN, sets_settings
from .hidden import deletes_trees, has_client, hidden, in_shell_texts, runs_unknown, started
from .statements import are_hidden, destroys_data, named_as_such

_SETTING = "extensions.confirm-destructive"
_MOVES = re.compile(r"(?:^|[ .])(?:mv|move|rename|renames|replace)\Z")
_DEVICE = re.compile(r"/dev/(?:r?disk|[shv]d[a-z]|xvd|nvme|mmcblk|md|dm-|mapper/)")
_LANGUAGES = re.compile(r"(?:python|node|deno|bun|perl|ruby|php|lua|Rscript)[\d.]*\Z")


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
        if kind in (*config["kinds"], "extra", UNKNOWN):
            key = "extra" if kind == "extra" else "kinds"
            decide = HookResult.block if config["action"] == "block" else HookResult.ask
            return decide(told, metadata={"setting": f"{_SETTING}.{key}", "kind": kind})
    return None


def _reasons(
    effects: Effects, event: ToolCall, config: Mapping[str, Any], root: Path | None
) -> Iterator[tuple[str, str]]:
    for change in effects.changes:
        deletes = change.kind is ChangeKind.DELETE and change.tree and not _moves(effects, change)
        if deletes and not _is_allowed(change.path, root, tuple(config["allowed"])):
            yield "recursive-delete", f"{change.by} deletes {change.path} with all that is in it."
        if _DEVICE.match(str(change.path)):
            yield "infrastructure", f"{change.by} writes to {change.path}, a whole device."
    if deletes_trees(effects):
        yield "recursive-delete", "Code that is not understood deletes directories."
    found = [(each, True) for each in effects.commands]
    found += [(each, False) for each in hidden(effects, [w.split()[0] for w in config["extra"]])]
    quoted = list(in_shell_texts(effects))
    found += [(each, False) for _, inner in quoted for each in started(inner)]
    for command, seen in found:
        kind = kind_of(command, seen=seen)
        if kind == UNKNOWN:
            yield UNKNOWN, f"`{command.text}` is not known before it runs."
        elif kind is not None:
            yield kind, f"`{command.text}` cannot be undone ({kind})."
        if any(_fits(command, pattern) for pattern in config["extra"]):
            yield "extra", f"`{command.text}` is one of the commands to ask about."
    why = runs_unknown(effects)
    if why is not None:
        yield UNKNOWN, f"Commands are not known before they run: {why}."
    if sets_settings(effects.variables):
        yield UNKNOWN, "What git is set to by variables may make it run anything."
    of_clients = (text for text, inner in quoted if has_client(inner))
    if _destroys_data(effects, event) or any(map(destroys_data, of_clients)):
        yield "database", f"{event.tool_name} is given statements that may destroy data."


def _moves(effects: Effects, change: Change) -> bool:
    """Whether what goes away appears at another place, or what rsync may replace is meant."""
    if change.by == "rsync":  # with --delete it is one of the commands
        return True
    if not _MOVES.search(change.by):
        return False
    others = (each for each in effects.changes if each.by == change.by)
    kept = (each for each in others if each.kind is not ChangeKind.DELETE)
    return any(not each.path.is_relative_to("/dev") for each in kept)


def _is_allowed(path: Path, root: Path | None, patterns: tuple[str, ...]) -> bool:
    if root is None or path == root or not path.is_relative_to(root):
        return False
    return _spec(patterns).match_file(f"{path.relative_to(root).as_posix()}/")


@lru_cache(maxsize=16)
def _spec(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    return pathspec.GitIgnoreSpec.from_lines(patterns)


def _fits(command: Command, pattern: str) -> bool:
    """Whether a command has the words of a pattern, or may have them."""
    known = list(takewhile(lambda each: each is not None, command.args))
    words = " ".join(filter(None, (command.name, *known)))
    if len(known) == len(command.args):
        return fnmatchcase(words, pattern)
    fixed = re.split(r"[*?\[]", pattern)[0]
    return fixed.startswith(f"{words} ") or words.startswith(fixed)


def _destroys_data(effects: Effects, event: ToolCall) -> bool:
    """Whether something that talks to databases is given statements that do.

    They may come through a pipe or a here-document: so the whole call is looked at.
    """
    words = [each for command in effects.commands for each in command.args if each is not None]
    clients = [each for each in effects.commands if runs_statements(each.name)]
    if any(are_hidden(each.args) for each in clients):
        return True
    texts = [*effects.texts, *named_as_such(event.tool_args)]
    if clients:
        texts += [*words, *(str(value) for value in event.tool_args.values())]
    elif not (_is_code(event, effects) or any(map(runs_statements, (*words, *texts)))):
        return False
    return any(map(destroys_data, texts))


def _is_code(event: ToolCall, effects: Effects) -> bool:
    """Whether what it is given may reach a database without a client among the commands.

    What is fed to a running process may be given to one.
    """
    names = (each.name or "" for each in effects.commands)
    is_shell = event.tools.kind_of(event.tool_name) is ToolKind.SHELL
    return not is_shell or any(map(_LANGUAGES.match, names))
