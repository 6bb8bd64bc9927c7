"""Writes the pages that the code tells: `python docs/generate_reference.py`.

docs/hooks.md is made from the table of hooks, docs/command-reference.md from what the command line
takes, docs/files.md from the docstrings of the modules, extensions/manifests.json from the bundled
extensions' manifests. With `--check` nothing is written, and the exit code is 1 where one of them
is stale.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

from hermes_ext.cli import add_commands
from hermes_ext.hooks.payloads import EVENT_OF
from hermes_ext.hooks.table import TABLE, Action, HookDef
from hermes_ext.loading.finding.known_manifests import SHIPPED, kept

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "src" / "hermes_ext"

_NOTE = "<!-- Made from hermes_ext/hooks/table.py by docs/generate_reference.py: edit there. -->"
_HEAD = """\
# Hooks

How handlers are written and in which order they run: [authoring](authoring.md).
"""
_COMMANDS = """\
<!-- Made from hermes_ext/cli/_commands by docs/generate_reference.py: edit there. -->

# Command reference

Every command with every argument, as `hermes-ext COMMAND --help` tells them. What they do, what
they print and how they end: [commands](commands.md). `hermes extensions COMMAND` is the same inside
Hermes.
"""

_FILES = """\
<!-- Made from the docstrings of the modules by docs/generate_reference.py: edit there. -->

# Every file

What each module of `src/hermes_ext` is for, by room. How the rooms stand to each other:
[the code](architecture.md).
"""


_EVERYWHERE = """\
- `event`: the frozen, typed event.
- `session_id`, `conversation_id` (survives compression, resume and restart; shared by
  subagents and branches), `turn_id`, `turn_number`, `task_id`: `str`, the number `int`.
  Numbers are counted for the conversation, subagents' turns included: 1 is the first, none
  comes twice, and they never go back, whatever becomes of the history. While session state is
  unavailable there is none, and a handler that needs it fails.
- `platform`: where the user is, `str`. `origin`: where the turn came from: `user`, `api`,
  `cron`, `batch`, `subagent`, `background` (a review that the host begins by itself), `steer` or
  `extension`.
- `interactive`: whether a person is there. `model`: its name.
- `cwd`, `project_root`: `Path`.
- `is_subagent`: `bool`; `parent_session_id`, `sender_id`, `chat_id`: `str`.
- `state`: the dict of this turn, shared by all extensions.
- `session_state`: what this extension keeps for the conversation (JSON values). While it cannot
  be read or stored, using it raises `StateError`; `on_store_error=` decides what that does.
- `config`: this extension's own validated settings.
- `data_dir`: a private folder of this extension for its files, `Path`. It exists, lies outside
  of every tree, and stays over restarts and upgrades. `**kwargs` does not hold it: it is made
  when a handler that names it is first called.
- `metadata`: what earlier handlers of this chain added; read-only.

What the runtime does not know is None; a parameter that has a default is then left out.
Whatever a handler is given is its own: changing it changes nothing for anyone, except `state`
and `session_state`, which are there for that."""


def hooks() -> str:
    """The page of the hooks."""
    return "\n".join([_NOTE, "", _HEAD, *_overview(), *_common(), *map(_hook, TABLE.values())])


def _overview() -> Iterator[str]:
    yield "| hook | a transformer may return | a guard may return |"
    yield "|---|---|---|"
    for row in TABLE.values():
        link = f"[`{row.name.value}`](#{row.name.value})"
        yield f"| {link} | {_actions(row.actions)} | {_actions(row.verdicts)} |"
    yield ""


def _actions(actions: frozenset[Action]) -> str:
    return ", ".join(action.value for action in Action if action in actions)


def _common() -> Iterator[str]:
    yield "## Arguments of every hook\n"
    yield _EVERYWHERE + "\n"


def _hook(row: HookDef) -> str:
    lines = [f"## {row.name.value}\n", row.does, "", row.fires, ""]
    lines += ["| argument | type | |", "|---|---|---|"]
    lines += [f"| `{one.name}` | `{_type(one.type)}` | {one.text} |" for one in row.arguments]
    event = EVENT_OF[row.name]
    lines += ["", f"`event`, of class `{event.__name__}`:\n"]
    lines += [f"- `{name}`: {text}" for name, text in _attributes(event)]
    lines += ["", f"**Returns.** {row.returns}", "", row.fails, ""]
    return "\n".join(lines)


def _type(annotation: str) -> str:
    return annotation.replace(" | ", " or ")


def _attributes(event: type) -> Iterator[tuple[str, str]]:
    """What the docstring of a class tells of each attribute."""
    _, _, section = (inspect.getdoc(event) or "").partition("Attributes:\n")
    return _items(dedent(section))


def _items(section: str) -> Iterator[tuple[str, str]]:
    """Each `name: text` of a section, its continuation lines joined."""
    entry: list[str] = []
    for line in [*section.splitlines(), ""]:
        if entry and not line.startswith(" "):
            name, _, text = _one_line("\n".join(entry)).partition(": ")
            yield name, text
            entry = []
        if line:
            entry.append(line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def commands() -> str:
    """The page of the commands."""
    parser = argparse.ArgumentParser(prog="hermes-ext", add_help=False)
    add_commands(parser)
    (named,) = (each for each in parser._actions if isinstance(each.choices, dict))
    told = {each.dest: each.help for each in named._choices_actions}
    for each in named.choices.values():
        each.with_arguments()
    common = _common_options(named.choices)
    lines = ["## Of every command\n", *_table(common), ""]
    for name, command in named.choices.items():
        lines += [f"## {name}\n", _sentence(told[name]), "", *_usage(command)]
        shared = {each.dest for each in common}
        lines += _table([each for each in _arguments(command) if each.dest not in shared])
        lines.append("")
    return "\n".join([_COMMANDS, *lines]).rstrip() + "\n"


def _arguments(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [each for each in command._actions if each.dest != "help"]


def _common_options(parsers: Mapping[str, argparse.ArgumentParser]) -> list[argparse.Action]:
    first, *others = map(_arguments, parsers.values())
    others_have = [{each.dest for each in other} for other in others]
    return [each for each in first if all(each.dest in has for has in others_have)]


def _usage(command: argparse.ArgumentParser) -> list[str]:
    command.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=10_000)
    return ["```text", command.format_usage().removeprefix("usage: ").strip(), "```", ""]


def _table(actions: list[argparse.Action]) -> list[str]:
    if not actions:
        return []
    return [
        "| argument | |",
        "|---|---|",
        *(f"| {_name(each)} | {_told(each)} |" for each in actions),
    ]


def _name(action: argparse.Action) -> str:
    takes = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar}"
    words = [f"{word}{takes}" for word in action.option_strings] or [str(action.metavar)]
    return ", ".join(f"`{word}`" for word in words)


def _told(action: argparse.Action) -> str:
    text = (action.help or "") % vars(action)
    return _sentence(text.replace("|", "\\|"))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def files() -> str:
    """The page of the files."""
    modules = sorted(PACKAGE.rglob("*.py"), key=lambda file: (file.parent, file.name))
    lines, room = [_FILES.rstrip()], None
    for file in modules:
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        if file.parent != room:
            room = file.parent
            title = room.relative_to(PACKAGE).as_posix()
            lines += ["", f"## {'The package' if title == '.' else f'`{title}/`'}", ""]
        if text:
            told = " ".join(text.partition("\n\n")[0].split())
            lines.append(f"- `{file.name}`: {told}")
    return "\n".join(lines) + "\n"


def manifests() -> str:
    """The bundled extensions' manifests, for a start that does not have to take YAML apart."""
    return kept(sorted(each.parent for each in DOCS.parent.glob("extensions/*/extension.yaml")))


PAGES: Mapping[str, Callable[[], str]] = {
    "hooks.md": hooks,
    "command-reference.md": commands,
    "files.md": files,
    f"../extensions/{SHIPPED}": manifests,
}


def main() -> int:
    """Write or check the pages; returns the exit code."""
    stale = 0
    for name, make in PAGES.items():
        file, made = DOCS / name, make()
        if "--check" not in sys.argv[1:]:
            file.write_text(made, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != made:
            sys.stderr.write(f"{file} is stale: run python docs/generate_reference.py\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
