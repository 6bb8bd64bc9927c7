# ruff: noqa: N999 - the folder is named as the extension, which may hold a hyphen
"""No changes without a plan. README.md says what that means, tool by tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from hermes_ext import (
    CallVerdict,
    HookResult,
    InputResult,
    RequestResult,
    UserInput,
    register_hook,
)

from .calls import ALIASES, PATH_TOOLS, NotUnderstood, is_harmless, paths_written
from .project import Project, in_words

Settings = Mapping[str, Any]

# At each end of a text. A request stands at one of them, and a slow pattern stays bearable.
_LOOKED_AT = 4_000

# A path such as /etc/hosts is no command.
_SLASH_COMMAND = re.compile(r"/[\w-]+(?:\s|\Z)")


# What steers a running turn, and what an agent tells another, is left as it is: the instructions
# and the guard hold there all the same.
@register_hook("transform_user_input", origins=["user", "api", "cron", "batch"])
def plan_first(
    event: UserInput, config: Settings, cwd: Path | None, project_root: Path | None
) -> InputResult:
    """Without a plan, turn a request to implement something into the planning command."""
    command = config["plan_command"].strip()
    if event.command is not None or _is_command(event.text, command):
        return None
    if not _asks_for_work(event.text, config["implementation_pattern"]):
        return None
    if Project.of(config, cwd, project_root).has_plan():
        return None
    return HookResult.rewrite(
        f"{command} {event.text}", metadata={"setting": _setting("implementation_pattern")}
    )


@register_hook("before_llm_call")
def instruct(config: Settings, cwd: Path | None, project_root: Path | None) -> RequestResult:
    """Tell the model to plan, or to follow the plan."""
    project = Project.of(config, cwd, project_root)
    text = config["guardrails" if project.has_plan() else "plan_reminder"]
    return HookResult.inject_system(project.filled_in(text)) if text.strip() else None


@register_hook("intercept_tool_call", guard=True)
def no_changes_without_a_plan(
    tool_name: str,
    tool_args: dict[str, Any],
    config: Settings,
    cwd: Path | None,
    project_root: Path | None,
) -> CallVerdict:
    """Without a plan, block what can write outside of the allowed paths."""
    project = Project.of(config, cwd, project_root)
    # Looked up at each call: the plan may have been written in this very turn.
    if project.has_plan():
        return None
    named = _matches(tool_name, config["blocked_tools"])
    passes = is_harmless(tool_name, tool_args) or _matches(tool_name, config["allowed_tools"])
    if passes and not named:
        return None
    if tool_name in PATH_TOOLS:
        return _judged_by_path(tool_name, tool_args, project)
    if named:
        return _blocked(f"{tool_name} is blocked", project, "blocked_tools")
    return _blocked(
        f"{tool_name} is blocked, because it may write",
        project,
        "allowed_tools",
        "If it is to run without a plan, the user has to add it to "
        "extensions.workflow-guard.allowed_tools in config.yaml.",
    )


def _judged_by_path(tool_name: str, tool_args: dict[str, Any], project: Project) -> CallVerdict:
    try:
        paths = paths_written(tool_name, tool_args)
    except NotUnderstood as reason:
        return _blocked(f"this call of {tool_name} is blocked: {reason}", project, "allowed_paths")
    refused = [path for path in paths if not project.may_write(path)]
    if not refused:
        return None
    shown = ", ".join([*map(repr, refused[:5]), *(["…"] if refused[5:] else [])])
    return _blocked(f"{tool_name} must not change {shown}", project, "allowed_paths")


def _blocked(what: str, project: Project, setting: str, more: str = "") -> CallVerdict:
    writable = in_words((project.shown_plan, *project.shown_allowed))
    told = (
        f"There is no plan yet, so {what}. First write the plan to {project.shown_plan} with "
        f"write_file, then make this call again. Until then only {writable} may be written. {more}"
    )
    return HookResult.block(told.strip(), metadata={"setting": _setting(setting)})


def _asks_for_work(text: str, pattern: str) -> bool:
    parts = (text,) if len(text) <= 2 * _LOOKED_AT else (text[:_LOOKED_AT], text[-_LOOKED_AT:])
    return any(_pattern(pattern).search(part) for part in parts)


def _is_command(text: str, command: str) -> bool:
    start = text.lstrip()
    if _SLASH_COMMAND.match(start):
        return True
    rest = start[len(command) :]
    return start.casefold().startswith(command.casefold()) and not re.match(r"[\w-]", rest)


def _matches(tool_name: str, patterns: Iterable[str]) -> bool:
    names = (each.strip() for each in patterns)
    return any(fnmatchcase(tool_name, ALIASES.get(name, name)) for name in names)


def _setting(name: str) -> str:
    return f"extensions.workflow-guard.{name}"


@lru_cache(maxsize=16)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(
            f"{_setting('implementation_pattern')} is no regular expression: {error}"
        ) from error
