"""The names of Hermes's tools, and patterns in `tools=` that none of them can match."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from attrs import frozen

from hermes_ext._problems import did_you_mean
from hermes_ext.chain.manager import normal
from hermes_ext.records import ExtensionRecord, HookInfo, Status

# What Hermes registers itself, from 0.17 on. Names with a `_` family (browser_click, …) are
# covered by the family, since a rule for one of them is rarely a slip.
HERMES_TOOLS: Final = (
    "clarify",
    "close_terminal",
    "computer_use",
    "cronjob",
    "cronjob_manage",
    "delegate_task",
    "discord",
    "discord_admin",
    "execute_code",
    "image_generate",
    "memory",
    "mixture_of_agents",
    "patch",
    "process",
    "process_manage",
    "project_create",
    "project_list",
    "project_switch",
    "read_file",
    "read_terminal",
    "search_files",
    "session_search",
    "skill_manage",
    "skill_view",
    "skills_list",
    "terminal",
    "text_to_speech",
    "todo",
    "todo_list",
    "video_analyze",
    "video_generate",
    "vision_analyze",
    "web_extract",
    "web_search",
    "write_file",
    "x_search",
)
FAMILIES: Final = ("browser_", "feishu_", "ha_", "kanban_", "mcp_", "xai_", "yb_")
# Names that no tool of Hermes has, and that `workflow-guard` takes for the ones that do the work.
TOOL_ALIASES: Final = {"write": "write_file", "edit": "patch"}
_OF_OTHER_AGENTS: Final = {
    **TOOL_ALIASES,
    "apply_patch": "patch",
    "bash": "terminal",
    "exec": "terminal",
    "glob": "search_files",
    "grep": "search_files",
    "multiedit": "patch",
    "python": "execute_code",
    "read": "read_file",
    "run_command": "terminal",
    "run_shell_command": "terminal",
    "shell": "terminal",
    "str_replace": "patch",
    "task": "delegate_task",
    "todowrite": "todo",
    "webfetch": "web_extract",
    "websearch": "web_search",
}
_WILD: Final = "*?["
_SIGN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)  # what stands for one character


@frozen
class ToolNames:
    """The tools that a pattern can match.

    Attributes:
        names: of the tools that are known.
        complete: whether a name outside of `names` and of the families is surely not a tool's.
    """

    names: frozenset[str] = frozenset(HERMES_TOOLS)
    complete: bool = False

    def can_match(self, pattern: str) -> bool:
        """Whether a known tool, or one that comes while Hermes runs (MCP), has such a name."""
        wanted = normal(pattern)
        known = (*self.names, *HERMES_TOOLS)
        return any(fnmatchcase(normal(name), wanted) for name in known) or may_be_dynamic(wanted)

    def is_dead(self, pattern: str) -> bool:
        """Whether a pattern surely matches nothing: no plugin that is not seen can bring it."""
        return not self.can_match(pattern) and (self.complete or nearest(pattern) is not None)


def may_be_dynamic(pattern: str) -> bool:
    """Whether a pattern can match a name of one of the families, such as `mcp_*`."""
    head, star, _ = pattern.partition("*")
    signs = _SIGN.findall(head)
    return any(
        all(map(fnmatchcase, family, signs)) and (star != "" or len(signs) >= len(family))
        for family in FAMILIES
    )


def nearest(pattern: str) -> str | None:
    """`Did you mean "terminal"?` for the nearest tool, or None if nothing is near."""
    meant = _OF_OTHER_AGENTS.get(normal(pattern).strip(_WILD))
    if meant is not None:
        return f'Did you mean "{meant}"?'
    return did_you_mean(pattern, (*HERMES_TOOLS, *TOOL_ALIASES))


def dead_guard(info: HookInfo, tools: ToolNames) -> bool:
    """Whether a handler is a guard that is never called, because no tool has such a name."""
    return info.guard and bool(info.tools) and all(map(tools.is_dead, info.tools or ()))


def dead_guards(
    records: Iterable[ExtensionRecord], names: Callable[[], Collection[str]]
) -> Iterator[str]:
    """A line for each guard that is loaded and can match none of the tools.

    Args:
        records: what is loaded.
        names: says which tools this process has, none where that is not known; asked only if a
            guard is limited to some tools.
    """
    limited = [
        (record, info)
        for record in records
        if record.status is Status.ENABLED
        for info in record.hooks
        if info.guard and info.tools
    ]
    if not limited:
        return
    known = frozenset(names())
    tools = ToolNames(known, complete=bool(known))
    for record, info in limited:
        if dead_guard(info, tools):
            yield f"extension {record.name} is not in force here: {told_dead(info)}"


def told_dead(info: HookInfo) -> str:
    """What is wrong with a guard that can match no tool, and what to write instead."""
    patterns = info.tools or ()
    written = ", ".join(f'"{pattern}"' for pattern in patterns)
    hints = " ".join(filter(None, dict.fromkeys(map(nearest, patterns))))
    told = f"the guard {info.handler} ({info.file}:{info.line}) can match no tool of Hermes"
    return f"{told}: tools=[{written}]" + (f". {hints}" if hints else "")
