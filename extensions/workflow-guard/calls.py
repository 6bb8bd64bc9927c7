"""What a tool call does: nothing that needs a plan, writing to paths, or something unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# These read, or write only what is no part of any project: the list of tasks, the agent's own
# notes, the user's answer. A subagent's calls are judged like any other.
HARMLESS = frozenset(
    {
        "browser_back",
        "browser_get_images",
        "browser_navigate",
        "browser_scroll",
        "browser_snapshot",
        "browser_vision",
        "clarify",
        "delegate_task",
        "feishu_doc_read",
        "feishu_drive_list_comment_replies",
        "feishu_drive_list_comments",
        "ha_get_state",
        "ha_list_entities",
        "ha_list_services",
        "kanban_attachments",
        "kanban_block",
        "kanban_comment",
        "kanban_complete",
        "kanban_heartbeat",
        "kanban_list",
        "kanban_show",
        "memory",
        "project_list",
        "read_file",
        "read_terminal",
        "search_files",
        "session_search",
        "skill_view",
        "skills_list",
        "todo",
        "tool_describe",
        "tool_search",
        "video_analyze",
        "vision_analyze",
        "web_extract",
        "web_search",
        "x_search",
    }
)

# Tools with an `action`, and those actions that only look.
HARMLESS_ACTIONS: Mapping[str, frozenset[str]] = {
    "cronjob": frozenset({"list"}),
    "process": frozenset({"list", "log", "poll", "wait"}),
}

# Names of the feature request and of other agents for Hermes's own tools.
ALIASES: Mapping[str, str] = {"write": "write_file", "edit": "patch"}

_ARGUMENTS = {
    "write_file": frozenset({"path", "content", "cross_profile"}),
    "patch": frozenset(
        {"mode", "path", "old_string", "new_string", "replace_all", "patch", "cross_profile"}
    ),
}

PATH_TOOLS = frozenset(_ARGUMENTS)
"""The tools whose calls say in full what they write to."""


class NotUnderstood(Exception):  # noqa: N818 - an answer, which becomes part of a message
    """Which paths a call writes to cannot be told; says why."""


def is_harmless(tool_name: str, tool_args: Mapping[str, Any]) -> bool:
    """Whether a call needs no plan, whatever the settings say about others."""
    if tool_name in HARMLESS_ACTIONS:
        action = tool_args.get("action")
        return isinstance(action, str) and action in HARMLESS_ACTIONS[tool_name]
    return tool_name in HARMLESS and _says_what_it_does(tool_name, tool_args)


def _says_what_it_does(tool_name: str, tool_args: Mapping[str, Any]) -> bool:
    """Whether a harmless tool's arguments are harmless: no options of a program behind it."""
    if tool_name in ("search_files", "browser_navigate"):
        texts = (value for value in tool_args.values() if isinstance(value, str))
        if any(text.lstrip().startswith("-") for text in texts):
            return False
    # Hands files of this machine to whoever reads the board.
    return not (tool_name == "kanban_complete" and tool_args.get("artifacts"))


def paths_written(tool_name: str, tool_args: Mapping[str, Any]) -> tuple[str, ...]:
    """Every path that a call of one of `PATH_TOOLS` writes to, moves or deletes.

    Raises:
        NotUnderstood: there is none, or there may be more.
    """
    unknown = sorted(tool_args.keys() - _ARGUMENTS[tool_name])
    if unknown:
        raise NotUnderstood(f"it has an argument that is not known: {', '.join(unknown)}")
    paths = [*_path_argument(tool_args.get("path"))]
    if tool_name == "patch":
        if tool_args.get("mode", "replace") not in ("replace", "patch"):
            raise NotUnderstood('its mode is neither "replace" nor "patch"')
        # Both are looked at in both modes, whichever the tool takes.
        paths += _patch_argument(tool_args.get("patch"))
    if not paths:
        raise NotUnderstood("it names no path")
    return tuple(paths)


def _path_argument(value: object) -> Iterator[str]:
    if value is None or value == "":
        return
    if not isinstance(value, str):
        raise NotUnderstood("its path is not a text")
    yield value


def _patch_argument(value: object) -> Iterator[str]:
    if value is None or value == "":
        return
    if not isinstance(value, str):
        raise NotUnderstood("its patch is not a text")
    # As Hermes's own parser splits it: a carriage return or a form feed ends no line there.
    for line in value.split("\n"):
        yield from _header_paths(line)


_FILE = re.compile(r"\s*\*\*\*\s*(?:Update|Add|Delete)\s+File:\s*(.+)")
_MOVE = re.compile(r"\s*\*\*\*\s*Move\s+File:\s*(.+?)\s*->\s*(.+)")
_MOVE_TO = re.compile(r"\s*\*\*\*\s*Move\s+to:\s*(.+)")
_NO_PATH = re.compile(r"\*\*\*\s*(?:Begin Patch|End Patch|End of File)\s*")


def _header_paths(line: str) -> Iterator[str]:
    for form in (_FILE, _MOVE, _MOVE_TO):
        found = form.match(line)
        if found:
            yield from (path.strip() for path in found.groups())
            return
    # In a file's content such a line begins with a space, a plus or a minus.
    if line.startswith("***") and not _NO_PATH.fullmatch(line):
        raise NotUnderstood(f"its patch has a line that is no known header: {line[:80]!r}")
