"""What a tool call may change of the rules: each tool of Hermes by what it does, others by names.

A tool that nobody here knows may write: then no argument of it may lead to a protected place, and
what looks like a command or like code is judged as that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import define

from hermes_ext._guard.commands import Refused, judge_shell, judge_words
from hermes_ext._guard.look import Look
from hermes_ext._guard.mentions import SWITCHES, Mention
from hermes_ext._guard.places import Protected
from hermes_ext._guard.python_code import judge_python
from hermes_ext._guard.words import Values

# These change no file that they are told: they read, ask, remember, talk, or start agents whose own
# calls are judged. What they are given may speak of anything.
HARMLESS: Final = frozenset(
    {
        "browser_back", "browser_click", "browser_console", "browser_dialog",
        "browser_get_images", "browser_navigate", "browser_press", "browser_scroll",
        "browser_snapshot", "browser_type", "browser_vision", "clarify", "close_terminal",
        "delegate_task", "discord", "discord_admin", "feishu_doc_read",
        "feishu_drive_add_comment", "feishu_drive_list_comment_replies",
        "feishu_drive_list_comments", "feishu_drive_reply_comment", "ha_call_service",
        "ha_get_state", "ha_list_entities", "ha_list_services", "kanban_attachments",
        "kanban_block", "kanban_comment", "kanban_complete", "kanban_create", "kanban_heartbeat",
        "kanban_link", "kanban_list", "kanban_show", "kanban_unblock", "memory",
        "mixture_of_agents", "project_list", "project_switch", "read_file", "read_terminal",
        "search_files", "send_message", "session_search", "skill_view", "skills_list", "todo",
        "tool_describe", "tool_search", "video_analyze", "vision_analyze", "web_extract",
        "web_search", "x_search", "yb_query_group_info", "yb_query_group_members",
        "yb_search_sticker", "yb_send_dm", "yb_send_sticker",
    }
)  # fmt: skip

_COMMAND_KEYS: Final = frozenset(
    {
        "argv",
        "bash",
        "cmd",
        "cmdline",
        "command",
        "command_line",
        "commands",
        "data",
        "input",
        "script",
        "shell",
        "stdin",
    }
)
_CODE_KEYS: Final = frozenset({"code", "expression", "program", "python", "source_code"})
_PATH_KEY: Final = re.compile(
    r"path|file|dir|folder|dest|target|source|src|dst|uri|url|output|cwd|root|\A(?:to|from|name)\Z",
    re.IGNORECASE,
)
_READS: Final = re.compile(
    r"(?:\A|_)(?:read|get|list|search|view|show|stat|info|describe|find|fetch|query|grep|tree)"
    r"(?:_|\Z)"
)
_WRITES: Final = re.compile(
    r"(?:write|edit|create|delete|remove|move|rename|set|update|patch|append|copy|put|save|exec|run"
    r"|insert|replace|upload|download|install|apply|make|touch|link|add|sync|extract|fix|erase|clear"
    r"|drop|reset|truncate)|(?:\A|_)(?:rm|mv|cp|ln)(?:_|\Z)"
)
_TAKES_AWAY: Final = re.compile(r"delete|remove|move|rename|erase|(?:\A|_)(?:rm|mv)(?:_|\Z)")
_HEADER: Final = re.compile(r"\s*\*{3}\s*(?:[A-Za-z]+\s+){0,3}[A-Za-z]+\s*:\s*(.+)")
_LONGEST_PATH: Final = 4_096
_DEPTH: Final = 12


@define
class ToolCall:
    """One call to be judged. cwd: where its relative paths start."""

    protected: Protected
    cwd: str

    def judge(self, tool: str, args: Mapping[str, Any]) -> None:
        """Raises `Refused` if the call may change what is protected."""
        name = tool.strip().lower()
        if name in HARMLESS:
            return
        judge = {
            "write_file": self._file,
            "patch": self._patch,
            "terminal": self._terminal,
            "process": self._process,
            "execute_code": self._code,
        }.get(name)
        look = Look(self.protected)
        if judge is not None:
            judge(args, look)
        else:
            self._other(name, args, look)

    # -- tools that are known ---------------------------------------------------------------------

    def _file(self, args: Mapping[str, Any], look: Look) -> None:
        for _, text in _texts({k: v for k, v in args.items() if k != "content"}):
            self._path(text, look)

    def _patch(self, args: Mapping[str, Any], look: Look) -> None:
        for key, text in _texts(args):
            if key == "patch":
                for line in re.split(r"[\r\n\v\f\x85\u2028\u2029]", text):
                    found = _HEADER.match(line)
                    for path in found[1].split("->") if found else ():
                        self._path(path, look)
            elif key not in {"old_string", "new_string"}:
                self._path(text, look)

    def _terminal(self, args: Mapping[str, Any], look: Look) -> None:
        bases = self._bases(args)
        for key, text in _texts(args):
            if key in SWITCHES:
                raise Refused(Mention("switch", key))
            if key not in {"workdir", "cwd"}:
                self._shell(text, bases, look)

    def _process(self, args: Mapping[str, Any], look: Look) -> None:
        for _, text in _texts(args):
            self._shell(text, (self.cwd,), look)

    def _code(self, args: Mapping[str, Any], look: Look) -> None:
        bases = self._bases(args)
        for _, text in _texts(args):
            self._python(text, bases, look)

    # -- tools that are not -----------------------------------------------------------------------

    def _other(self, name: str, args: Mapping[str, Any], look: Look) -> None:
        bare = name.removeprefix("mcp_")
        reads = _READS.search(bare) is not None and _WRITES.search(bare) is None
        self._program(args, look)
        for key, text in _texts(args, names=True):
            if _TAKES_AWAY.search(bare) and len(text) <= _LONGEST_PATH:
                self._whole(text, look)
            if key in _COMMAND_KEYS:
                self._shell(text, (self.cwd,), look)
            elif key in _CODE_KEYS:
                self._python(text, (self.cwd,), look)
                self._shell(text, (self.cwd,), look)
            elif not reads and len(text) <= _LONGEST_PATH and "\n" not in text.strip():
                if _PATH_KEY.search(key) or not re.search(r"\s", text.strip()):
                    self._path(text, look)
            elif _HEADER.search(text):  # a patch by another tool
                self._patch({"patch": text}, look)

    def _program(self, args: Mapping[str, Any], look: Look) -> None:
        """A program and its arguments, given apart or as a list."""
        for key in sorted(_COMMAND_KEYS & args.keys()):
            command = args[key]
            words = [command] if isinstance(command, str) else command
            more = args.get("args", args.get("arguments", args.get("argv", ())))
            if isinstance(words, list | tuple) and isinstance(more, list | tuple):
                listed = [str(each) for each in (*words, *more)]
                if len(listed) > 1:
                    self._words(listed, (self.cwd,), look)

    def _whole(self, text: str, look: Look) -> None:
        for each in self._spellings(text):
            covered = look.covers(each, self.cwd) if each else None
            if covered is not None:
                raise Refused(Mention("place", covered))

    # -- what is judged ---------------------------------------------------------------------------

    def _bases(self, args: Mapping[str, Any]) -> Values:
        given = [text for key, text in _texts(args) if key in {"workdir", "cwd"}]
        found = (os.path.join(self.cwd, each) for text in given for each in self._spellings(text))
        return tuple(dict.fromkeys((*found, self.cwd)))

    def _shell(self, text: str, bases: Values, look: Look) -> bool:
        return judge_shell(text, bases, look, lambda code, cwd: self._python(code, cwd, look))

    def _words(self, words: Any, bases: Values, look: Look) -> bool:
        return judge_words(words, bases, look, lambda code, cwd: self._python(code, cwd, look))

    def _python(self, text: str, bases: Values, look: Look) -> bool:
        return judge_python(
            text,
            bases,
            look,
            lambda command, cwd: self._shell(command, cwd, look),
            lambda words, cwd: self._words(words, cwd, look),
        )

    def _path(self, text: str, look: Look) -> None:
        for each in self._spellings(text):
            place = look.place(each, self.cwd)
            if place is not None:
                raise Refused(Mention("place", place))

    def _spellings(self, text: str) -> Iterator[str]:
        """A path as a tool may take it: bare, unquoted, with `~` and variables replaced."""
        for bare in dict.fromkeys((text, text.strip(), text.strip().strip("\"'`").strip())):
            local = re.sub(r"\A(?:file|vscode-remote)://(?:localhost)?(?=/)", "", bare)
            yield local
            yield os.path.expandvars(local.replace("${HERMES_HOME}", self.protected.hermes_home))
            if local.startswith("~"):
                for home in self.protected.user_homes:
                    yield home + local[1:] if local[1:2] in ("", "/") else os.path.expanduser(local)
            if "%" in local:
                from urllib.parse import unquote

                yield unquote(local)


def _texts(
    value: Any, key: str = "", depth: int = 0, *, names: bool = False
) -> Iterator[tuple[str, str]]:
    """Every text in some arguments, with the name of the argument that it stands in.

    names: below the first level the names too, which may be paths: `{"files": {"a.py": "…"}}`.
    """
    if isinstance(value, str):
        yield key, value
    elif depth > _DEPTH:
        return
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if names and depth:
                yield key, str(name)
            yield from _texts(each, str(name), depth + 1, names=names)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _texts(each, key, depth + 1, names=names)
