# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""No changes without a plan. README.md says what that means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import evolve

from hermes_ext import (
    CallVerdict,
    HookResult,
    InputResult,
    RequestResult,
    ToolCall,
    UserInput,
    register_hook,
)
from hermes_ext.effects import ToolKind, ToolTable, effects_of
from hermes_ext.exceptions import StateError

from .calls import Confined, judged, names_of
from .modules import new_modules
from .plan import MISSING
from .project import Project
from .requests import asks_for_work, digest, is_routed

Settings = Mapping[str, Any]


# What steers a running turn, and what an agent tells another, is left as it is: the instructions
# and the guard hold there all the same.
@register_hook("transform_user_input", origins=["user", "api", "cron", "batch"])
def plan_first(
    event: UserInput,
    config: Settings,
    cwd: Path | None,
    project_root: Path | None,
    session_state: Any,
) -> InputResult:
    """Without a plan, turn a request to implement something into the planning command."""
    command = config["plan_command"].strip()
    if event.command is not None or is_routed(event.text, command):
        return None
    if not asks_for_work(event.text, config):
        return None
    if Project.of(config, cwd, project_root).plan.fault() is None:
        with suppress(StateError):
            session_state.pop("routed", None)
        return None
    # Queued or sent again, it has its command already, further up. Where that cannot be known, one
    # command too many does no harm.
    with suppress(StateError):
        if session_state.get("routed") == digest(event.text):
            return None
        session_state["routed"] = digest(event.text)
    setting = "implementation_pattern" if config["implementation_pattern"] else "languages"
    return HookResult.rewrite(f"{command} {event.text}", metadata={"setting": _setting(setting)})


@register_hook("before_llm_call")
def instruct(config: Settings, cwd: Path | None, project_root: Path | None) -> RequestResult:
    """Tell the model to plan, or to follow the plan."""
    project = Project.of(config, cwd, project_root)
    setting = "plan_reminder" if project.plan.fault() else "guardrails"
    text = project.filled_in(config[setting])
    if not text.strip():
        return None
    return HookResult.inject_system(text, metadata={"setting": _setting(setting)})


@register_hook("intercept_tool_call", guard=True)
def no_changes_without_a_plan(
    event: ToolCall,
    config: Settings,
    cwd: Path | None,
    project_root: Path | None,
    state: Any,
) -> CallVerdict:
    """Without a plan, refuse what would write outside of the allowed paths; confine programs."""
    project = Project.of(config, cwd, project_root)
    # Looked up at each call: the plan may have been written in this very turn.
    fault = project.plan.fault()
    if fault is None:
        return None
    found = judged(event, project)
    if found is None:
        return None
    where = {"setting": _setting(found.setting)}
    if isinstance(found, Confined):
        reason = "no plan yet" if fault == MISSING else f"the plan {fault}"
        # For most calls nobody reads it: no look into all the plans.
        advice = _in_one(_advice(event, project, fault, project.link_to, _what_passes(event.tools)))
        return HookResult.confine(
            found.writable, reason=reason, or_exact=True, advice=advice, metadata=where
        )
    # The whole text once in a turn; the model has it from then on.
    first = state.count("workflow-guard: told") == 1
    begin = f"There is no valid plan yet ({project.shown_plan} {fault})"
    begin = "There is no plan yet" if fault == MISSING else begin
    more = found.more if first else None
    then = _advice(event, project, fault, project.in_the_way, more)
    return HookResult.block(
        _in_one([f"{begin}, so {found.what}.", *found.hints, *then]), metadata=where
    )


def _advice(
    event: ToolCall,
    project: Project,
    fault: str,
    obstacle: Callable[[Path], str],
    more: str | None,
) -> list[str]:
    """What to do about it; more: what else to say, None for the short form."""
    plan = project.plan.place
    in_the_way = "" if plan is None else obstacle(plan)
    if in_the_way:
        return [in_the_way]
    writers = names_of(event.tools, ToolKind.WRITE)
    write = f"First write the plan to {project.shown_plan} with {writers}"
    do = write if fault == MISSING else "First fix the plan"
    told = [f"{do}, then make this call again."]
    if more is not None:
        told += [
            project.plan.needs(),
            f"Until then only {project.shown_open} may be written.",
            more,
        ]
    return told


def _in_one(sentences: list[str]) -> str:
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _what_passes(tools: ToolTable) -> str:
    readers = names_of(tools, ToolKind.READ, ToolKind.SEARCH)
    return f"Calls that only read still run: {readers}, and commands such as ls or git diff."


@register_hook("intercept_tool_call", guard=True)
def a_person_decides(
    event: ToolCall, config: Settings, cwd: Path | None, project_root: Path | None
) -> CallVerdict:
    """With and without a plan: ask about changes of the plan and about new modules, if set."""
    approval, modules = config["plan"]["approval"], config["new_modules"]
    if approval == modules == "pass":
        return None
    project = Project.of(config, cwd, project_root)
    effects = effects_of(event)
    if project.plan.fault() is not None and isinstance(judged(event, project), Confined):
        # What it may name, it cannot change.
        effects = evolve(effects, mentions=frozenset())
    place = project.plan.place
    touched = place is not None and (effects.change_of(place) or place in effects.mentions)
    if approval == "ask" and touched and effects.may_write:
        told = f"{event.tool_name} changes the plan, {project.shown_plan}"
        return HookResult.ask(told, metadata={"setting": _setting("plan.approval")})
    made = [] if modules == "pass" else new_modules(effects, project, config["module_files"])
    if not made:
        return None
    told = f"{event.tool_name} creates a new module: {', '.join(made[:5])}"
    where = {"setting": _setting("new_modules")}
    if modules == "ask":
        return HookResult.ask(told, metadata=where)
    told += ". Put the code into an existing module, or ask the user to create this one."
    return HookResult.block(told, metadata=where)


def _setting(name: str) -> str:
    return f"extensions.workflow-guard.{name}"
