# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Files that no tool may change. README.md says what that means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_ext import CallVerdict, HookResult, ToolCall, register_hook
from hermes_ext.effects import Effects, effects_of

from .patterns import Rule, rules_of

_SETTING = "extensions.protected-paths"


@register_hook("intercept_tool_call", guard=True)
def keep_off(
    event: ToolCall, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None
) -> CallVerdict:
    """Refuse a call, or ask about it, that changes what a pattern matches."""
    effects = effects_of(event)
    if not effects.may_write:
        return None
    root = project_root or cwd
    if root is None or event.machine is None:
        told = "The project's directory is not known, so what is protected cannot be told."
        return HookResult.block(told)
    rules = rules_of(config, event.machine.resolve(root), event.machine.homes)
    asked: HookResult[Any] | None = None
    for rule, told in _reasons(effects, rules):
        setting = {"setting": f"{_SETTING}.{rule.setting}"}
        if rule.action == "block":
            return HookResult.block(f"{told} {rule.message}".strip(), metadata=setting)
        asked = asked or HookResult.ask(f"{told} {rule.message}".strip(), metadata=setting)
    return asked or _unknown(effects, config["unknown"])


def _reasons(effects: Effects, rules: list[Rule]) -> Iterator[tuple[Rule, str]]:
    for change in effects.changes:
        for rule in rules:
            if change.kind in rule.on or change.tree:
                found = rule.match_in(change)
                if found is not None:
                    path, pattern = found
                    what = f"{change.by} must not {change.kind} {path}"
                    yield rule, f"{what}: it is protected ({pattern})."
                    break
    for path in sorted(effects.mentions):
        for rule in rules:
            pattern = rule.pattern_for(path, named=True)
            if pattern is not None:
                why = effects.unknown[0]
                yield (
                    rule,
                    f"{path} is protected ({pattern}), and what happens to it is open: {why}.",
                )
                break


def _unknown(effects: Effects, action: str) -> CallVerdict:
    if effects.exact or action == "pass":
        return None
    why = effects.unknown[0]
    told = f"What this call writes cannot be told ({why}), and some files are protected."
    setting = {"setting": f"{_SETTING}.unknown"}
    decide = HookResult.ask if action == "ask" else HookResult.block
    return decide(told, metadata=setting)
