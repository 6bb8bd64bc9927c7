# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""No changes without a plan. README.md says what that means."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    InputResult,
    RequestResult,
    ToolCall,
    UserInput,
    register_hook,
)
from hermes_ext.effects import Effects, ToolKind, ToolTable, effects_of
from hermes_ext.exceptions import StateError

from .modules import new_modules
from .plan import in_words
from .project import Project
from .requests import asks_for_work, digest, is_routed

Settings = Mapping[str, Any]

# Blocking them altogether would leave no way to write the plan.
_WRITERS = (ToolKind.WRITE, ToolKind.EDIT)
_RUNNERS = (ToolKind.SHELL, ToolKind.CODE, ToolKind.INPUT)


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
    """Without a plan, block what can write outside of the allowed paths."""
    project = Project.of(config, cwd, project_root)
    # Looked up at each call: the plan may have been written in this very turn.
    fault = project.plan.fault()
    if fault is None:
        return None
    reason = _reason(event, config, project)
    if reason is None:
        return None
    what, setting, more = reason
    # The whole text once in a turn; the model has it from then on.
    first = state.count("workflow-guard: told") == 1
    writers = _names_of(event.tools, ToolKind.WRITE)
    told = _told(project, fault, what, more if first else "", writers, whole=first)
    return HookResult.block(told, metadata={"setting": _setting(setting)})


def _reason(event: ToolCall, config: Settings, project: Project) -> tuple[str, str, str] | None:
    """What a call must not do, the setting behind that, and what else to say; None if it may."""
    tool, tools = event.tool_name, event.tools
    named = tools.matches(tool, config["blocked_tools"])
    if named and tools.kind_of(tool) not in _WRITERS:
        return f"{tool} is blocked", "blocked_tools", ""
    if not named and tools.matches(tool, config["allowed_tools"]):
        return None
    effects = effects_of(event)
    if not effects.exact:
        return (
            f"this call of {tool} is blocked: {_unknown(effects)}",
            "allowed_tools",
            _way_out(tool, tools),
        )
    refused = [change.path for change in effects.changes if not project.may_change(change)]
    if not refused:
        return None
    shown = [repr(project.shown(path)) for path in dict.fromkeys(refused)]
    listed = ", ".join([*shown[:5], *(["…"] if shown[5:] else [])])
    return f"{tool} must not change {listed}", "allowed_paths", ""


def _unknown(effects: Effects) -> str:
    why = "; ".join(effects.unknown[:2]) or "it may write"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in why)


def _way_out(tool: str, tools: ToolTable) -> str:
    if tools.kind_of(tool) in _RUNNERS:
        readers = _names_of(tools, ToolKind.READ, ToolKind.SEARCH)
        return (
            f"Calls that only read pass: {readers}, and simple commands such as ls, "
            "grep or git diff."
        )
    return (
        f"If {tool} is to run without a plan, the user has to add it to "
        "extensions.workflow-guard.allowed_tools in config.yaml."
    )


def _names_of(tools: ToolTable, *kinds: ToolKind) -> str:
    return ", ".join(row.name for kind in kinds for row in tools.of(kind))


def _told(project: Project, fault: str, what: str, more: str, writers: str, *, whole: bool) -> str:
    plan = project.shown_plan
    if fault == "is missing":
        begin, do = "There is no plan yet", f"First write the plan to {plan} with {writers}"
    else:
        begin, do = f"There is no valid plan yet ({plan} {fault})", "First fix the plan"
    told = [f"{begin}, so {what}.", f"{do}, then make this call again."]
    if whole:
        writable = in_words((plan, *project.shown_allowed))
        told += [project.plan.needs(), f"Until then only {writable} may be written.", more]
    return " ".join(filter(None, told))


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
    place = project.plan.place
    touched = place is not None and (effects.change_of(place) or place in effects.mentions)
    if approval == "ask" and touched and effects.may_write:
        told = f"{event.tool_name} changes the plan, {project.shown_plan}."
        return HookResult.ask(told, metadata={"setting": _setting("plan.approval")})
    made = [] if modules == "pass" else new_modules(effects, project, config["module_files"])
    if not made:
        return None
    told = f"{event.tool_name} creates what is a new module: {', '.join(made[:5])}."
    where = {"setting": _setting("new_modules")}
    if modules == "ask":
        return HookResult.ask(told, metadata=where)
    told += " Put the code into a module that is there, or ask the user to create this one."
    return HookResult.block(told, metadata=where)


def _setting(name: str) -> str:
    return f"extensions.workflow-guard.{name}"
