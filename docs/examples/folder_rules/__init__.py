"""Rules by folder: what to know before something is changed there, and who may change it.

A rule's `say` is given to the model once a turn, when something in the folder is read or is to be
changed; until then nothing there is changed. `do: ask` asks a person, `do: block` refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    RequestResult,
    ToolCall,
    TurnState,
    register_hook,
)
from hermes_ext.effects import effects_of

WANTED, TOLD = "folder_rules.wanted", "folder_rules.told"


@register_hook("intercept_tool_call", guard=True)
def judge(
    event: ToolCall,
    config: Mapping[str, Any],
    state: TurnState,
    cwd: Path | None,
    project_root: Path | None,
) -> CallVerdict:
    """Judge a call by every rule whose folder it touches; the strictest counts."""
    effects, root = effects_of(event), project_root or cwd
    if not config["rules"]:
        return None
    if root is None or event.machine is None:
        return HookResult.block("Which folder this is about is not known.")
    named = effects.mentions | {each.cwd for each in effects.commands if each.cwd}
    found: dict[str, str] = {}
    for rule in config["rules"]:
        do = rule.get("do", "allow")
        folder = event.machine.resolve(rule["folder"], root)
        near = not effects.exact and any(each.is_relative_to(folder) for each in named)
        changed = effects.change_in(folder) is not None or near
        if not changed and not any(each.is_relative_to(folder) for each in effects.reads):
            continue
        if rule.get("say"):
            with state.lock:
                state.setdefault(WANTED, {})[rule["folder"]] = rule["say"]
            if changed and rule["folder"] not in state.get(TOLD, ()):
                found["block"] = f"{rule['folder']} has rules, which follow. Read them, then go on."
        if changed and do != "allow":
            found[do] = f"The rule for {rule['folder']} is: {do}."
    if not effects.exact and any(rule.get("do", "allow") != "allow" for rule in config["rules"]):
        told = f"What this changes is not known: {effects.unknown[0]}."
        found.setdefault(config["unknown"], told)
    setting = {"setting": "extensions.folder_rules.rules"}
    if "block" in found:
        return HookResult.block(found["block"], metadata=setting)
    return HookResult.ask(found["ask"], metadata=setting) if "ask" in found else None


@register_hook("before_llm_call")
def tell(state: TurnState) -> RequestResult:
    """Give the model what is to be known of the folders that it works in."""
    with state.lock:
        told = state.setdefault(TOLD, set())
        new = {name: say for name, say in state.get(WANTED, {}).items() if name not in told}
        told.update(new)
    text = "\n".join(f"Rules for {name}: {say}" for name, say in new.items())
    return HookResult.inject_user(text, keep="turn") if text else None
