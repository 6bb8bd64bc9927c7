"""What becomes of a tool call without a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hermes_ext import ToolCall
from hermes_ext.effects import Change, Effects, ToolKind, ToolTable, effects_of

from .commands import runs_as_it_is
from .project import Project

_FILE_TOOLS = (ToolKind.WRITE, ToolKind.EDIT)
_ALLOWED_TOOLS = "extensions.workflow-guard.allowed_tools in config.yaml"


@dataclass(frozen=True)
class Refusal:
    """The call does not run.

    what: what it must not do. setting: the one that decides so. hints: why, and what to do instead.
    more: what else to say, once.
    """

    what: str
    setting: str
    hints: tuple[str, ...] = ()
    more: str = ""


@dataclass(frozen=True)
class Confined:
    """The call runs, and can write nothing but these folders.

    setting: the one by which it could run as it is.
    """

    writable: tuple[Path, ...]
    setting: str


def judged(event: ToolCall, project: Project) -> Refusal | Confined | None:
    """What becomes of a call; None: it runs as it is."""
    tool, tools, settings = event.tool_name, event.tools, project.settings
    kind = tools.kind_of(tool)
    named = tools.matches(tool, settings["blocked_tools"])
    # Blocking these altogether would leave no way to write the plan.
    if named and kind not in _FILE_TOOLS:
        return Refusal(f"{tool} is blocked (blocked_tools)", "blocked_tools")
    if not named and tools.matches(tool, settings["allowed_tools"]):
        return None
    effects = effects_of(event)
    if kind in (ToolKind.SHELL, ToolKind.CODE) or (kind is ToolKind.INPUT and not effects.exact):
        return _programs(event, effects, project)
    refused = [change for change in effects.changes if not project.may_change(change)]
    if refused:
        return _refused(event, refused, project)
    if effects.exact:
        return _files(event, effects, project) if kind in _FILE_TOOLS else None
    return None if event.read_only else _unknown(event, effects)


def _programs(event: ToolCall, effects: Effects, project: Project) -> Refusal | Confined | None:
    """What becomes of a call that starts programs."""
    is_shell = event.tools.kind_of(event.tool_name) is ToolKind.SHELL
    if is_shell and runs_as_it_is(event, effects, project):
        return None
    writable = project.writable(effects)
    refused = [each for each in effects.changes if not project.programs_may_change(each, writable)]
    if refused:
        return _refused(event, refused, project)
    setting = "allowed_commands" if is_shell else "allowed_tools"
    return Confined(project.handed_out(effects), setting)


def _refused(event: ToolCall, changes: list[Change], project: Project) -> Refusal:
    """The refusal of a call that would make these changes."""
    hints = [project.link_to(each.path) for each in changes]
    if all(map(project.is_link_in_the_open, changes)):
        hints.append("Links cannot be made there.")
    by_tools = next(filter(project.may_change, changes), None)
    if by_tools is not None:
        hints.append(_by_tools(event, by_tools, project))
    is_shell = event.tools.kind_of(event.tool_name) is ToolKind.SHELL
    if is_shell and any(map(project.is_temporary, changes)):
        hints.append("Write temporary files to $TMPDIR.")
    what = f"{event.tool_name} must not change {_listed(changes, project)}"
    return Refusal(what, "allowed_paths", tuple(hints))


def _by_tools(event: ToolCall, change: Change, project: Project) -> str:
    in_the_way = project.in_the_way(change.path)
    if in_the_way:
        return in_the_way
    writers, why = names_of(event.tools, ToolKind.WRITE), project.why_not_handed_out(change)
    told = f"Use {writers} to write there: a command cannot"
    return f"{told}, because {why}." if why else f"{told}."


def _files(event: ToolCall, effects: Effects, project: Project) -> Refusal | Confined | None:
    """What becomes of a call of a tool for files, which writes only what it may.

    A program of an earlier call, which may still run, could make a link of a folder between this
    look and the writing. So the call can write only where it was seen to.
    """
    folders = project.written_in(effects)
    why = project.why_not_held(folders)
    if why:
        changes = _listed(list(effects.changes), project)
        return Refusal(f"{event.tool_name} must not change {changes}", "allowed_paths", (why,))
    return Confined(folders, "allowed_paths") if folders else None


def _unknown(event: ToolCall, effects: Effects) -> Refusal:
    why = "; ".join(effects.unknown[:2]) or "it may write"
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in why)
    tool = event.tool_name
    known = event.tools.kind_of(tool) in _FILE_TOOLS
    more = f"To let {tool} run without a plan, the user can add it to {_ALLOWED_TOOLS}."
    told = f"this call of {tool} is blocked: {shown}"
    return Refusal(told, "allowed_tools", more="" if known else more)


def _listed(changes: list[Change], project: Project) -> str:
    shown = [repr(project.shown(each.path)) for each in changes]
    distinct = list(dict.fromkeys(shown))
    return ", ".join([*distinct[:5], *(["…"] if distinct[5:] else [])])


def names_of(tools: ToolTable, *kinds: ToolKind) -> str:
    """The tools of these kinds, in words."""
    return ", ".join(row.name for kind in kinds for row in tools.of(kind))
