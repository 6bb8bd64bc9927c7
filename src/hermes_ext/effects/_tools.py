"""What each tool of Hermes does with its arguments.

The databases, caches and logs that Hermes keeps for itself do not count as files: what a tool only
writes there changes nothing. Directories that are made on the way to a file are not told apart.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, TypeGuard

from hermes_ext.effects._other_tools import announce_by_names, strings_in
from hermes_ext.effects._patch import Edit, NotUnderstood, edits_of
from hermes_ext.effects._python import read_code
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell import Reading, read_text
from hermes_ext.effects._spelling import from_home, local_path

__all__ = ["announce"]

Args = Mapping[str, Any]

_HARMLESS: Final = frozenset(
    {
        "browser_back", "browser_get_images", "browser_navigate", "browser_scroll",
        "browser_snapshot", "browser_vision", "clarify", "close_terminal", "discord",
        "discord_admin",
        "feishu_doc_read", "feishu_drive_add_comment", "feishu_drive_list_comment_replies",
        "feishu_drive_list_comments", "feishu_drive_reply_comment", "ha_get_state",
        "ha_list_entities", "ha_list_services", "kanban_attachments", "kanban_block",
        "kanban_comment", "kanban_complete", "kanban_heartbeat", "kanban_link", "kanban_list",
        "kanban_show", "kanban_unblock", "mixture_of_agents", "project_list", "project_switch",
        "read_terminal", "send_message", "session_search", "skill_view", "skills_list",
        "spotify_albums", "spotify_devices", "spotify_library", "spotify_playback",
        "spotify_playlists", "spotify_queue", "spotify_search", "todo", "tool_describe",
        "tool_search", "video_analyze", "vision_analyze", "web_extract", "web_search", "x_search",
        "yb_query_group_info", "yb_query_group_members", "yb_search_sticker", "yb_send_dm",
        "yb_send_sticker",
    }
)  # fmt: skip
"""These ask, talk, keep notes in Hermes's own databases, or read."""

# Arguments of those that may name files which are read, and handed to others.
_READ_BY_OTHERS: Final = ("artifacts", "image_url", "media_files", "urls", "video_url")

_ALIASES: Final[Mapping[str, str]] = {
    "cronjob_manage": "cronjob",
    "edit": "patch",
    "process_manage": "process",
    "todo_list": "todo",
    "write": "write_file",
}
"""Other names of Hermes's tools: what it calls them from 0.21 on, and what other agents do."""

_PATHS: Final = frozenset(
    {"file", "file_path", "file_paths", "filename", "filepath", "files", "path", "paths"}
)
_TEXTS: Final = frozenset(
    {"content", "contents", "file_text", "new_str", "new_string", "old_str", "old_string", "text"}
)
_NAME_OF_SKILL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_HARMLESS_ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "cronjob": frozenset({"list"}),
    "process": frozenset({"close", "kill", "list", "log", "poll", "wait"}),
}


def announce(tool_name: str, tool_args: Args, rec: Recorder) -> None:
    """Announce what a call touches. A tool that nobody here knows may write."""
    name = tool_name.strip().casefold()
    name = _ALIASES.get(name, name)
    if name in _KNOWN:
        _KNOWN[name](tool_args, rec)
    elif name in _HARMLESS:
        _harmless(name, tool_args, rec)
    elif not _is_harmless_action(name, tool_args):
        named = rec.machine.read_only_tools
        only_reads = any(fnmatchcase(name, each.strip().casefold()) for each in named)
        announce_by_names(tool_name.strip(), tool_args, rec, only_reads=only_reads)


def _is_harmless_action(name: str, args: Args) -> bool:
    action = args.get("action")
    return isinstance(action, str) and action in _HARMLESS_ACTIONS.get(name, ())


# -- files ----------------------------------------------------------------------------------------


def _write_file(args: Args, rec: Recorder) -> None:
    paths = list(_paths(args, rec, {"cross_profile", *_TEXTS}))
    for path in paths:
        _write(path, rec, "write_file")
    if not paths:
        rec.unknown("write_file is not told where to write")


def _patch(args: Args, rec: Recorder) -> None:
    others = {"cross_profile", "mode", "patch", "replace_all", *_TEXTS}
    paths = list(_paths(args, rec, others))
    for path in paths:
        rec.read(path)
        _write(path, rec, "patch")
    # Both are looked at in both modes, whichever the tool takes.
    edited = _edit_all(args.get("patch"), rec)
    if not paths and not edited:
        rec.unknown("patch is not told which file to change")


def _edit_all(patch: object, rec: Recorder) -> bool:
    """Whether a patch has any edit."""
    if patch is None or patch == "":
        return False
    if not isinstance(patch, str):
        rec.unknown("the patch is not text")
        return False
    edited = False
    try:
        for edit in edits_of(patch):
            edited = True
            _edit(edit, rec)
    except NotUnderstood as error:
        rec.unknown(f"the patch has a line that is not a known header: {str(error)[:80]!r}", patch)
    return edited


def _edit(edit: Edit, rec: Recorder) -> None:
    paths = list(_spelt(edit.path, rec))
    if not paths:
        rec.unknown("the patch has a header without a file")
    for path in paths:
        if edit.verb == "move":
            _move(path, edit.to, rec)
        elif edit.verb == "delete":
            rec.read(path)  # what was in it is shown
            rec.delete(path, "patch")
        else:
            if edit.verb == "update":
                rec.read(path)
            _write(path, rec, "patch")


def _move(source: str, to: str, rec: Recorder) -> None:
    """As `mv` does it: a directory takes the file in."""
    if source.startswith("-") or to.startswith("-"):
        rec.unknown("a path that begins with a dash is an option of mv", source, to)
    rec.delete(source, "patch")
    for path in _spelt(to, rec):
        inside = rec.is_directory(path)
        if inside is not True:
            rec.write(path, "patch")
            rec.taint(path, source)
        if inside is not False:
            within = os.path.join(path, os.path.basename(source))
            rec.write(within, "patch")
            rec.taint(within, source)


def _write(path: str, rec: Recorder, by: str) -> None:
    rec.write(path, by, tree=rec.is_directory(path) is True)


def _read_file(args: Args, rec: Recorder) -> None:
    for path in _paths(args, rec, {"limit", "offset"}):
        rec.read(path)


_SEARCH: Final = frozenset(
    {"context", "file_glob", "limit", "offset", "output_mode", "pattern", "target"}
)


def _search_files(args: Args, rec: Recorder) -> None:
    paths = list(_paths(args, rec, _SEARCH)) or ["."]
    patterns = [] if args.get("target") in ("files", "find") else [*strings_in(args.get("pattern"))]
    options = [each for each in (*paths, *patterns) if each.startswith("-")]
    if options:
        rec.unknown("search_files is given an option of the program that searches", *options)
    for name in ("context", "limit", "offset"):
        if not isinstance(args.get(name, 0), int | float | None):
            rec.unknown(f"the {name} of search_files is not a number", *strings_in(args[name]))
    for path in paths:
        if rec.is_directory(path) is False:
            rec.read(path)
        else:
            rec.search(path)


# -- programs -------------------------------------------------------------------------------------

_TERMINAL: Final = frozenset(
    {
        "background", "check_interval", "command", "cwd", "notify_on_complete", "pty", "timeout",
        "watch_patterns", "workdir",
    }
)  # fmt: skip


def _terminal(args: Args, rec: Recorder) -> None:
    _refuse_others("terminal", args, rec, _TERMINAL)
    _work_in(args.get("workdir") or args.get("cwd"), rec, background=bool(args.get("background")))
    command = args.get("command")
    if isinstance(command, str):
        read_text(command, rec)
    elif _is_list_of_texts(command):
        Reading(rec).run(command)
    else:
        rec.unknown("terminal is given no command that is a text", *strings_in(command))


def _work_in(directory: object, rec: Recorder, *, background: bool) -> None:
    if not directory:
        return
    # A background process is started in what there is of the directory.
    missing = background and not (isinstance(directory, str) and os.path.isdir(directory))
    if not isinstance(directory, str) or directory == "-" or missing:
        rec.cwd = ()
        return
    # Only `~/` is expanded there.
    named = from_home(directory, rec.machine) if re.match(r"~(/|\Z)", directory) else (directory,)
    rec.cwd = tuple(
        os.path.join(base, each)
        for each in named
        for base in (("/",) if each.startswith("/") else rec.cwd)
    )


def _is_list_of_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(e, str) for e in value)


def _process(args: Args, rec: Recorder) -> None:
    if _is_harmless_action("process", args):
        return
    texts = list(strings_in(args.get("data")))
    rec.unknown("a program that is running is fed", *texts)
    for text in texts:  # it may be a shell
        read_text(text, rec)


def _execute_code(args: Args, rec: Recorder) -> None:
    _refuse_others("execute_code", args, rec, {"code"})
    code = args.get("code")
    if isinstance(code, str):
        read_code(code, rec)
    else:
        rec.unknown("execute_code is given no code that is a text", *strings_in(code))


# -- others ---------------------------------------------------------------------------------------

_DELEGATE: Final = frozenset(
    {"background", "context", "goal", "max_iterations", "model", "role", "tasks", "toolsets"}
)


def _delegate_task(args: Args, rec: Recorder) -> None:
    """The children's calls are judged, unless the child is another program."""
    tasks = args.get("tasks") or []
    for each in (args, *(tasks if isinstance(tasks, list) else [tasks])):
        if isinstance(each, Mapping):
            _refuse_others("delegate_task", each, rec, _DELEGATE)
            program = list(strings_in([each.get("acp_command"), each.get("acp_args")]))
            if program:
                rec.command(program)
        else:
            rec.unknown("delegate_task has a task that is not understood", *strings_in(each))


def _browser(args: Args, rec: Recorder) -> None:
    for text in strings_in(args):
        path = local_path(text)
        if text.strip().startswith("-"):
            rec.unknown("the browser is given an option of its program", text)
        elif path != text:
            rec.read(path)


def _memory(args: Args, rec: Recorder) -> None:
    home = _hermes_home(rec)
    target = args.get("target", "memory")
    names = {"memory": ["MEMORY.md"], "user": ["USER.md"]}.get(
        str(target), ["MEMORY.md", "USER.md"]
    )
    for name in names:
        rec.write(os.path.join(home, "memories", name), "memory")


def _skill_manage(args: Args, rec: Recorder) -> None:
    skills = os.path.join(_hermes_home(rec), "skills")
    named = [args.get("category") or args.get("name"), args.get("name")]
    known = all(isinstance(each, str) and _NAME_OF_SKILL.fullmatch(each) for each in named)
    rec.write(skills, "skill_manage", tree=True)
    if args.get("action") == "delete":
        rec.delete(skills, "skill_manage", tree=True)
    if args.get("action") != "create" or not known:
        rec.unknown("skills may lie in other directories as well", *strings_in(args))


def _hermes_home(rec: Recorder) -> str:
    homes = rec.machine.homes
    return rec.machine.environ.get("HERMES_HOME") or os.path.join(
        homes[0] if homes else "/", ".hermes"
    )


def _text_to_speech(args: Args, rec: Recorder) -> None:
    for path in strings_in(args.get("output_path")):
        for each in _spelt(path, rec):
            rec.write(each, "text_to_speech")
    rec.unknown("text_to_speech saves sound where, and by what, its settings say")


def _tool_call(args: Args, rec: Recorder) -> None:
    """A call of another tool, whose name and arguments it is given."""
    name, given = args.get("name"), args.get("arguments") or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    if isinstance(name, str) and isinstance(given, Mapping) and name.strip() != "tool_call":
        announce(name, given, rec)
    else:
        rec.unknown("which tool is called is not known", *strings_in(args))


def _harmless(name: str, args: Args, rec: Recorder) -> None:
    if name.startswith("browser_"):
        _browser(args, rec)
    for key in _READ_BY_OTHERS:
        for text in strings_in(args.get(key)):
            path = local_path(text)
            if "://" not in path and not path.startswith("data:"):
                for each in from_home(path, rec.machine):
                    rec.read(each)


_KNOWN: Final[Mapping[str, Callable[[Args, Recorder], None]]] = {
    "delegate_task": _delegate_task,
    "execute_code": _execute_code,
    "memory": _memory,
    "patch": _patch,
    "process": _process,
    "read_file": _read_file,
    "search_files": _search_files,
    "skill_manage": _skill_manage,
    "terminal": _terminal,
    "text_to_speech": _text_to_speech,
    "tool_call": _tool_call,
    "write_file": _write_file,
}


def _paths(args: Args, rec: Recorder, others: set[str] | frozenset[str]) -> Iterator[str]:
    """The paths in the arguments of a tool whose other arguments are `others`."""
    for key, value in args.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key)).lower()
        if name in _PATHS:
            for text in strings_in(value):
                yield from _spelt(text, rec)
            if not isinstance(value, str | list | tuple | None):
                rec.unknown(f"{key} is neither a path nor a list of paths")
        elif name not in others:
            rec.unknown(f"there is an argument that is not known: {key!r}", *strings_in(value))


def _spelt(path: str, rec: Recorder) -> tuple[str, ...]:
    """A path as the tools take it: `~` stands for the home directory."""
    found = from_home(path, rec.machine)
    if not found:
        rec.unknown(f"where {path!r} leads is not known", path)
    return tuple(each for each in found if each)


def _refuse_others(tool: str, args: Args, rec: Recorder, known: frozenset[str] | set[str]) -> None:
    for key in sorted(args.keys() - known):
        rec.unknown(f"{tool} has an argument that is not known: {key!r}", *strings_in(args[key]))
