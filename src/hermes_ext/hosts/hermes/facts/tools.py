"""The tools of Hermes: their names, and what each does.

The databases, caches and logs that Hermes keeps for itself do not count as files: what a tool only
writes there changes nothing. Directories that are made on the way to a file are not told apart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from hermes_ext.effects import Does, Tool, ToolKind, ToolTable
from hermes_ext.effects.readings import (
    Args,
    Recorder,
    by_names,
    calls_tool,
    edits,
    feeds,
    harmless,
    harmless_for,
    local_path,
    reads,
    refuse_others,
    runs_python,
    runs_shell,
    searches,
    spelt,
    strings_in,
    writes,
)
from hermes_ext.hosts.hermes.facts.names import HOME_VARIABLE

_NAME_OF_SKILL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DELEGATE: Final = frozenset(
    {"background", "context", "goal", "max_iterations", "model", "role", "tasks", "toolsets"}
)


def _delegate(name: str, args: Args, rec: Recorder) -> None:
    """The children's calls are judged, unless the child is another program."""
    tasks = args.get("tasks") or []
    for each in (args, *(tasks if isinstance(tasks, list) else [tasks])):
        if isinstance(each, Mapping):
            refuse_others(name, each, rec, _DELEGATE)
            program = list(strings_in([each.get("acp_command"), each.get("acp_args")]))
            if program:
                rec.command(program)
        else:
            rec.unknown(f"{name} has a task that is not understood", *strings_in(each))


def _browse(name: str, args: Args, rec: Recorder) -> None:
    for text in strings_in(args):
        path = local_path(text)
        if text.strip().startswith("-"):
            rec.unknown("the browser is given an option of its program", text)
        elif path != text:
            rec.read(path)
    _TALKS.announce(name, args, rec)


def _remember(name: str, args: Args, rec: Recorder) -> None:
    files = {"memory": ["MEMORY.md"], "user": ["USER.md"]}
    target = str(args.get("target", "memory"))
    for file in files.get(target, ["MEMORY.md", "USER.md"]):
        rec.write(os.path.join(_home(rec), "memories", file), name)


def _manage_skills(name: str, args: Args, rec: Recorder) -> None:
    skills = os.path.join(_home(rec), "skills")
    named = [args.get("category") or args.get("name"), args.get("name")]
    known = all(isinstance(each, str) and _NAME_OF_SKILL.fullmatch(each) for each in named)
    rec.write(skills, name, tree=True)
    if args.get("action") == "delete":
        rec.delete(skills, name, tree=True)
    if args.get("action") != "create" or not known:
        rec.unknown("skills may lie in other directories as well", *strings_in(args))


def _home(rec: Recorder) -> str:
    homes = rec.machine.homes
    return rec.variables.get(HOME_VARIABLE) or os.path.join(homes[0] if homes else "/", ".hermes")


def _speak(name: str, args: Args, rec: Recorder) -> None:
    for path in strings_in(args.get("output_path")):
        for each in spelt(path, rec):
            rec.write(each, name)
    rec.unknown(f"{name} saves sound where, and by what, its settings say")


# These ask, talk, keep notes in Hermes's own databases, or read; and hand files to others.
_TALKS: Final = harmless(reads="artifacts image_url media_files urls video_url")
_BROWSES: Final = Does(_browse, ToolKind.HARMLESS)
_ANYTHING: Final = by_names()

_HARMLESS: Final = (
    "close_terminal discord discord_admin feishu_doc_read feishu_drive_add_comment"
    " feishu_drive_list_comment_replies feishu_drive_list_comments feishu_drive_reply_comment"
    " ha_get_state ha_list_entities ha_list_services kanban_attachments kanban_block"
    " kanban_comment kanban_complete kanban_heartbeat kanban_link kanban_list kanban_show"
    " kanban_unblock mixture_of_agents project_list project_switch read_terminal send_message"
    " session_search skill_view skills_list spotify_albums spotify_devices spotify_library"
    " spotify_playback spotify_playlists spotify_queue spotify_search tool_describe tool_search"
    " video_analyze vision_analyze x_search yb_query_group_info yb_query_group_members"
    " yb_search_sticker yb_send_dm yb_send_sticker"
)

TOOLS: Final = ToolTable(
    (
        Tool(
            "write_file",
            writes(others="cross_profile"),
            synonyms="write",
            parameters="path content cross_profile",
        ),
        Tool(
            "patch",
            edits(others="cross_profile mode replace_all"),
            synonyms="edit",
            words="apply_patch multiedit str_replace",
            parameters="path old_string new_string replace_all mode patch cross_profile",
        ),
        Tool(
            "read_file", reads(others="limit offset"), words="read", parameters="path offset limit"
        ),
        Tool(
            "search_files",
            searches(
                names_only=("target", "files find"),
                numbers="context limit offset",
                others="file_glob output_mode",
            ),
            words="glob grep",
            parameters="pattern target path file_glob limit offset output_mode context",
        ),
        Tool(
            "terminal",
            runs_shell(
                cwd="workdir cwd",
                background="background",
                others="check_interval notify_on_complete pty timeout watch_patterns",
            ),
            words="bash exec run_command run_shell_command shell",
            parameters="command timeout workdir",
        ),
        Tool(
            "process",
            harmless_for("close kill list log poll wait", feeds("data")),
            aliases="process_manage",
        ),
        Tool("execute_code", runs_python(), words="python"),
        Tool("delegate_task", Does(_delegate), words="task"),
        Tool("todo", _TALKS, aliases="todo_list", words="todowrite"),
        Tool("clarify", _TALKS),
        Tool("web_extract", _TALKS, words="webfetch", parameters="urls"),
        Tool("web_search", _TALKS, words="websearch", parameters="query"),
        Tool("memory", Does(_remember)),
        Tool("skill_manage", Does(_manage_skills)),
        Tool("cronjob", harmless_for("list", _ANYTHING), aliases="cronjob_manage"),
        Tool("text_to_speech", Does(_speak)),
        Tool("tool_call", calls_tool()),
        *(Tool(name, _ANYTHING) for name in (
            "computer_use", "image_generate", "project_create", "video_generate",
        )),
        *(Tool(f"browser_{name}", _BROWSES) for name in (
            "back", "get_images", "navigate", "scroll", "snapshot", "vision",
        )),
        *(Tool(name, _TALKS) for name in _HARMLESS.split()),
    ),
    host="Hermes",
    home_variable=HOME_VARIABLE,
    programs_home="home",  # a profile's programs have their own home
    families="browser_ feishu_ ha_ kanban_ mcp_ xai_ yb_",
    module="hermes_tools",
    functions="json_parse retry shell_quote",
)  # fmt: skip
"""A tool that guards are to understand is one row here."""
