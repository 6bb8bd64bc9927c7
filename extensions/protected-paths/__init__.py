# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""Files that no tool may change. README.md says what that means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
        return HookResult.block(
            told, metadata={"setting": [f"{_SETTING}.paths", f"{_SETTING}.rules"]}
        )
    asked: HookResult[Any] | None = None
    rules = rules_of(config, event.machine.resolve(root), event.machine)
    for reason in _reasons(effects, rules, config["targets"]):
        told = f"{reason.told} {reason.rule.message}".strip()
        setting = {"setting": f"{_SETTING}.{reason.setting}"}
        if reason.action == "block":
            return HookResult.block(told, metadata=setting)
        asked = asked or HookResult.ask(told, metadata=setting)
    return asked or _unknown(effects, config["unknown"])


class _Reason(NamedTuple):
    """A rule that a call is against, what is done about it, by which setting, and what to say."""

    rule: Rule
    action: str
    setting: str
    told: str


def _reasons(effects: Effects, rules: list[Rule], targets: str) -> Iterator[_Reason]:
    """Every rule that something of a call is against."""
    for rule in rules:
        for told in (_named(effects, rule), _meant(effects, rule)):
            if told:
                yield _Reason(rule, rule.action, rule.setting, told)
        told = "" if targets == "pass" else _open(effects, rule)
        if told:
            # A rule that only asks about what is certain does no more about what is not.
            yield _Reason(rule, "ask" if rule.action == "ask" else targets, "targets", told)


def _named(effects: Effects, rule: Rule) -> str:
    """What a call surely does against a rule."""
    for change in effects.changes:
        if change.kind in rule.on or change.tree:
            found = rule.match_in(change)
            if found is not None:
                what = f"{change.by} must not {change.kind} {_shown(found[0])}"
                return f"{what}: it is protected {_where(rule, found[1])}."
    return ""


def _meant(effects: Effects, rule: Rule) -> str:
    """What is not understood is judged by the paths that it names, and by where it runs."""
    if effects.exact:
        return ""
    places = {each.cwd: False for each in effects.commands if each.cwd is not None}
    for path in sorted(places | dict.fromkeys(effects.mentions, True)):
        pattern = rule.pattern_for(path, named=path in effects.mentions)
        if pattern is not None:
            told = f"{_shown(path)} is protected {_where(rule, pattern)}, and what happens to it"
            return f"{told} is open: {effects.unknown[0]}."
    return ""


def _open(effects: Effects, rule: Rule) -> str:
    """A program that is known changes what nobody can name: that may be a protected file."""
    found = rule.reached_by(effects.open_changes)
    if found is None:
        return ""
    change, path, pattern = found
    told = f"Which files {change.by} would {change.kind} is not known before it runs"
    also = f"{_shown(path)} may be one, and is protected {_where(rule, pattern)}"
    return f"{told}. {also}. Name the files in the call."


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
