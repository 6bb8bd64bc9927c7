# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Files that no tool may change. README.md says what that means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_ext import CallVerdict, HookResult, ToolCall, register_hook
from hermes_ext.effects import ChangeKind, Effects, effects_of

from .patterns import Rule, rules_of

_SETTING = "extensions.protected-paths"


@register_hook("intercept_tool_call", guard=True)
def keep_off(
    event: ToolCall, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None
) -> CallVerdict:
    """Refuse a call, or ask about it, that changes what a pattern matches."""
    effects = effects_of(event)
    if not effects.may_write or not (config["paths"] or config["rules"]):
        return None
    root = project_root or cwd
    if root is None or event.machine is None:
        told = f"The project's directory is not known, so nobody can say what {_SETTING} protects."
        return HookResult.block(told)
    asked: HookResult[Any] | None = None
    rules = rules_of(config, event.machine.resolve(root), event.machine)
    for rule, told in _reasons(effects, rules):
        setting = {"setting": f"{_SETTING}.{rule.setting}"}
        if rule.action == "block":
            return HookResult.block(f"{told} {rule.message}".strip(), metadata=setting)
        asked = asked or HookResult.ask(f"{told} {rule.message}".strip(), metadata=setting)
    return asked or _unknown(effects, config["unknown"])


def _reasons(effects: Effects, rules: list[Rule]) -> Iterator[tuple[Rule, str]]:
    """Every rule that something of a call is against, and what to say."""
    for rule in rules:
        for change in effects.changes:
            if change.kind in rule.on or change.tree:
                found = rule.match_in(change)
                if found is not None:
                    what = f"{change.by} must not {change.kind} {_shown(found[0])}"
                    yield rule, f"{what}: it is protected {_where(rule, found[1])}."
                    break
        if effects.exact:
            continue
        # What is not understood is judged by the paths that it names, and by where it runs.
        places = {each.cwd: False for each in effects.commands if each.cwd is not None}
        for path in sorted(places | dict.fromkeys(effects.mentions, True)):
            pattern = rule.pattern_for(path, named=path in effects.mentions)
            if pattern is not None:
                told = (
                    f"{_shown(path)} is protected {_where(rule, pattern)}, and what happens to it"
                )
                yield rule, f"{told} is open: {effects.unknown[0]}."
                break


def _unknown(effects: Effects, action: str) -> CallVerdict:
    # A tree that is written (unpacked, checked out) gets files whose names nobody knows.
    trees = (each for each in effects.changes if each.tree and each.kind is not ChangeKind.DELETE)
    tree = next(trees, None)
    if action == "pass" or (effects.exact and tree is None):
        return None
    why = effects.unknown[0] if tree is None else f"{tree.by} writes below {_shown(tree.path)}"
    told = f"What this call writes cannot be told ({why}), and some files are protected."
    decide = HookResult.ask if action == "ask" else HookResult.block
    return decide(told, metadata={"setting": f"{_SETTING}.unknown"})


def _where(rule: Rule, pattern: str) -> str:
    return f"({_SETTING}.{rule.setting}: {pattern})"


def _shown(path: Path) -> str:
    text = str(path)
    return text if text.isprintable() else repr(text)
