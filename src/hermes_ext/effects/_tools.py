"""What each tool of Hermes does with its arguments; other tools by names and schemas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hermes_ext.effects._patch import Edit, NotUnderstood, edits_of
from hermes_ext.effects._python import read_code
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell import read_text

__all__ = ["announce"]

Args = Mapping[str, Any]

# These read, ask, remember, talk, or start agents whose own calls are judged.
HARMLESS: Final = frozenset(
    {
        "browser_back", "browser_get_images", "browser_navigate", "browser_scroll",
        "browser_snapshot", "browser_vision", "clarify", "delegate_task", "feishu_doc_read",
        "feishu_drive_list_comment_replies", "feishu_drive_list_comments", "ha_get_state",
        "ha_list_entities", "ha_list_services", "kanban_attachments", "kanban_list",
        "kanban_show", "project_list", "read_terminal", "session_search", "skill_view",
        "skills_list", "todo", "tool_describe", "tool_search", "video_analyze", "vision_analyze",
        "web_extract", "web_search", "x_search",
    }
)  # fmt: skip

ALIASES: Final[Mapping[str, str]] = {
    "edit": "patch",
    "edit_file": "patch",
    "read": "read_file",
    "write": "write_file",
}
"""Names that the feature request and other agents give to Hermes's own tools."""

_PATH_KEYS: Final = ("path", "paths", "file_path", "file_paths", "filepath", "file", "filename")


def announce(tool_name: str, tool_args: Args, rec: Recorder) -> None:
    """Announce what a call touches. A tool that nobody here knows may write."""
    name = tool_name.strip().casefold()
    name = ALIASES.get(name, name)
    if name in HARMLESS:
        return
    known = _KNOWN.get(name)
    if known is None:
        rec.unknown(f"nobody knows what {name} does", *_strings(tool_args))
    else:
        known(tool_args, rec)


def _write_file(args: Args, rec: Recorder) -> None:
    paths = list(_paths(args, rec, {"content", "cross_profile"}))
    for path in paths:
        rec.write(path, "write_file")
    if not paths:
        rec.unknown("write_file is not told where to write")


def _patch(args: Args, rec: Recorder) -> None:
    others = {"mode", "old_string", "new_string", "replace_all", "patch", "cross_profile"}
    paths = list(_paths(args, rec, others))
    for path in paths:
        rec.write(path, "patch")
    # Both are looked at in both modes, whichever the tool takes.
    patch = args.get("patch")
    edits = []
    try:
        edits = list(edits_of(patch)) if isinstance(patch, str) else []
    except NotUnderstood as error:
        rec.unknown(f"the patch has a line that is no known header: {str(error)[:80]!r}")
    for edit in edits:
        _edit(edit, rec)
    if not paths and not edits:
        rec.unknown("patch is not told which file to change")


def _edit(edit: Edit, rec: Recorder) -> None:
    paths = _spelt(edit.path, rec)
    if edit.verb == "delete":
        for path in paths:
            rec.delete(path, "patch")
    elif edit.verb == "move":
        for path in paths:
            rec.delete(path, "patch")
        for path in _spelt(edit.to, rec):
            rec.write(path, "patch")
    else:
        for path in paths:
            rec.write(path, "patch")


def _read_file(args: Args, rec: Recorder) -> None:
    for path in _paths(args, rec, {"offset", "limit"}):
        rec.read(path)


def _search_files(args: Args, rec: Recorder) -> None:
    others = {
        "pattern", "target", "file_glob", "limit", "offset", "output_mode", "context",
    }  # fmt: skip
    if any(text.lstrip().startswith("-") for text in _strings(args)):
        rec.unknown("search_files is given options for the program that searches")
    for path in list(_paths(args, rec, others)) or ["."]:
        if rec.is_directory(path) is False:
            rec.read(path)
        else:
            rec.search(path)


def _terminal(args: Args, rec: Recorder) -> None:
    others = {"command", "background", "timeout", "workdir", "pty", "notify_on_complete"}
    unknown = sorted(args.keys() - others - {"watch_patterns", "check_interval"})
    if unknown:
        rec.unknown(f"terminal has an argument that is not known: {unknown[0]!r}")
    workdir = args.get("workdir")
    if isinstance(workdir, str) and workdir:
        rec.cwd = tuple(
            os.path.join(base, each) for each in _spelt(workdir, rec) for base in rec.cwd or ("",)
        )
    command = args.get("command")
    if isinstance(command, str):
        read_text(command, rec)
    else:
        rec.unknown("terminal is given no command that is a text")


def _process(args: Args, rec: Recorder) -> None:
    if args.get("action") in ("list", "log", "poll", "wait", "kill", "close"):
        return
    rec.unknown("process feeds a program that is running", *_strings(args))


def _execute_code(args: Args, rec: Recorder) -> None:
    code = args.get("code")
    if isinstance(code, str):
        read_code(code, rec)
    else:
        rec.unknown("execute_code is given no code that is a text")


_KNOWN: Final[Mapping[str, Callable[[Args, Recorder], None]]] = {
    "write_file": _write_file,
    "patch": _patch,
    "read_file": _read_file,
    "search_files": _search_files,
    "terminal": _terminal,
    "process": _process,
    "execute_code": _execute_code,
}


def _paths(args: Args, rec: Recorder, others: set[str]) -> Iterator[str]:
    """The paths in the arguments of a tool whose other arguments are `others`."""
    for key, value in args.items():
        if key in _PATH_KEYS:
            for text in _strings(value):
                yield from _spelt(text, rec)
            if value is not None and not isinstance(value, str | list | tuple):
                rec.unknown(f"the {key} is no text")
        elif key not in others:
            rec.unknown(f"there is an argument that is not known: {key!r}", *_strings(value))


def _spelt(path: str, rec: Recorder) -> tuple[str, ...]:
    """A path as the tools take it: `~` stands for the home directory."""
    if not path.startswith("~"):
        return (path,) if path else ()
    name, _, rest = path.partition("/")
    if name != "~" or not rec.machine.homes:
        rec.unknown(f"the home directory of {name!r} is not known", path)
        return ()
    return tuple(os.path.join(home, rest) for home in rec.machine.homes)


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > 12:
        return
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _strings(each, depth + 1)
