"""What tools do, ready-made: the second column of a `ToolTable`.

    ToolTable([
        Tool("Write", writes()),
        Tool("Bash", runs_shell("command", others="timeout")),
        Tool("Ask", harmless()),
    ])

Arguments that a reading does not know make a call inexact. Names of arguments are given as one text
with blanks between them. A reading of one's own is `Does(function)`; the function gets the tool's
name, its arguments and the `Recorder`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from hermes_ext.effects._patch import Edit, NotUnderstood, edits_of
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._spelling import from_home, local_path, strings_in
from hermes_ext.effects._table import Does, ToolKind, normal

__all__ = [
    "Args",
    "Recorder",
    "by_names",
    "calls_tool",
    "edits",
    "feeds",
    "harmless",
    "harmless_for",
    "local_path",
    "paths_in",
    "reads",
    "refuse_others",
    "runs_python",
    "runs_shell",
    "searches",
    "spelt",
    "strings_in",
    "writes",
]

Args: TypeAlias = Mapping[str, Any]

_PATHS: Final = "file file_path file_paths filename filepath files path paths"
_TEXTS: Final = "content contents file_text new_str new_string old_str old_string text"


# -- files ----------------------------------------------------------------------------------------


def reads(*, paths: str = _PATHS, others: str = "") -> Does:
    """Reads the files at these arguments."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        for path in paths_in(args, rec, paths, others):
            rec.read(path)

    return Does(reading, ToolKind.READ)


def writes(*, paths: str = _PATHS, others: str = "") -> Does:
    """Writes the files at these arguments; texts under their usual names are content."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        found = list(paths_in(args, rec, paths, f"{_TEXTS} {others}"))
        for path in found:
            _write(path, rec, name)
        if not found:
            rec.unknown(f"{name} is not told where to write")

    return Does(reading, ToolKind.WRITE)


def edits(*, paths: str = _PATHS, patch: str = "patch", others: str = "") -> Does:
    """Changes the files at these arguments, or those that a patch names; as `writes` otherwise."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        found = list(paths_in(args, rec, paths, f"{patch} {_TEXTS} {others}"))
        for path in found:
            rec.read(path)
            _write(path, rec, name)
        # Both are looked at, whichever the tool takes.
        edited = _edit_all(name, args.get(patch), rec)
        if not found and not edited:
            rec.unknown(f"{name} is not told which file to change")

    return Does(reading, ToolKind.EDIT)


def searches(
    *,
    paths: str = _PATHS,
    pattern: str = "pattern",
    names_only: tuple[str, str] = ("", ""),
    numbers: str = "",
    others: str = "",
) -> Does:
    """Searches below the directories at these arguments, or in the working directory.

    Args:
        paths: the arguments that name directories.
        pattern: the argument that has what is looked for.
        names_only: an argument, and its values with which only names are compared; then no program
            gets the pattern.
        numbers: arguments that must be numbers.
        others: further arguments.
    """
    target, without = names_only[0], names_only[1].split()

    def reading(name: str, args: Args, rec: Recorder) -> None:
        found = list(paths_in(args, rec, paths, f"{pattern} {target} {numbers} {others}")) or ["."]
        patterns = [] if args.get(target) in without else [*strings_in(args.get(pattern))]
        options = [each for each in (*found, *patterns) if each.startswith("-")]
        if options:
            rec.unknown(f"{name} is given an option of the program that searches", *options)
        for key in numbers.split():
            if not isinstance(args.get(key, 0), int | float | None):
                rec.unknown(f"the {key} of {name} is not a number", *strings_in(args[key]))
        for path in found:
            if rec.is_directory(path) is False:
                rec.read(path)
            else:
                rec.search(path)

    return Does(reading, ToolKind.SEARCH)


def _write(path: str, rec: Recorder, by: str) -> None:
    rec.write(path, by, tree=rec.is_directory(path) is True)


def _edit_all(by: str, patch: object, rec: Recorder) -> bool:
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
            _edit(by, edit, rec)
    except NotUnderstood as error:
        rec.unknown(f"the patch has a line that is not a known header: {str(error)[:80]!r}", patch)
    return edited


def _edit(by: str, edit: Edit, rec: Recorder) -> None:
    paths = list(spelt(edit.path, rec))
    if not paths:
        rec.unknown("the patch has a header without a file")
    for path in paths:
        if edit.verb == "move":
            _move(by, path, edit.to, rec)
        elif edit.verb == "delete":
            rec.read(path)  # what was in it is shown
            rec.delete(path, by)
        else:
            if edit.verb == "update":
                rec.read(path)
            _write(path, rec, by)


def _move(by: str, source: str, to: str, rec: Recorder) -> None:
    """As `mv` does it: a directory takes the file in."""
    if source.startswith("-") or to.startswith("-"):
        rec.unknown("a path that begins with a dash is an option of mv", source, to)
    rec.delete(source, by)
    for path in spelt(to, rec):
        inside = rec.is_directory(path)
        if inside is not True:
            rec.write(path, by)
            rec.taint(path, source)
        if inside is not False:
            within = os.path.join(path, os.path.basename(source))
            rec.write(within, by)
            rec.taint(within, source)


# -- programs -------------------------------------------------------------------------------------


def runs_shell(
    command: str = "command", *, cwd: str = "", background: str = "", others: str = ""
) -> Does:
    """Runs a shell command.

    Args:
        command: the argument that has it: a text, or a list of words.
        cwd: arguments that may name the directory that it starts in; the first that does counts.
        background: the argument that leaves it running; then a directory that is not there is
            passed over.
        others: further arguments.
    """
    known = frozenset(f"{command} {cwd} {background} {others}".split())

    def reading(name: str, args: Args, rec: Recorder) -> None:
        from hermes_ext.effects._shell import Reading as Shell

        refuse_others(name, args, rec, known)
        directory = next(filter(None, map(args.get, cwd.split())), None)
        _work_in(directory, rec, background=bool(args.get(background)))
        given = args.get(command)
        if isinstance(given, str):
            Shell(rec).text(given)
        elif isinstance(given, list) and given and all(isinstance(each, str) for each in given):
            Shell(rec).run(given)
        else:
            rec.unknown(f"{name} is given no command that is a text", *strings_in(given))

    return Does(reading, ToolKind.SHELL)


def runs_python(code: str = "code", *, others: str = "") -> Does:
    """Runs Python code."""
    known = frozenset(f"{code} {others}".split())

    def reading(name: str, args: Args, rec: Recorder) -> None:
        from hermes_ext.effects._python.reading import read_code
        from hermes_ext.effects._shell import Reading as Shell

        refuse_others(name, args, rec, known)
        given = args.get(code)
        if isinstance(given, str):
            read_code(given, Shell(rec, ""))  # nothing is typed into it
        else:
            rec.unknown(f"{name} is given no code that is a text", *strings_in(given))

    return Does(reading, ToolKind.CODE)


def feeds(text: str) -> Does:
    """Types what this argument has to a program that is running; it may be a shell."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        from hermes_ext.effects._shell import Reading as Shell

        texts = list(strings_in(args.get(text)))
        rec.unknown("a program that is running is fed", *texts)
        for each in texts:
            Shell(rec).text(each)

    return Does(reading, ToolKind.INPUT)


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


# -- others ---------------------------------------------------------------------------------------


def harmless(*, reads: str = "") -> Does:
    """Changes no file, whatever its arguments; those of `reads` may name files that it reads."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        for key in reads.split():
            for text in strings_in(args.get(key)):
                path = local_path(text)
                if "://" not in path and not path.startswith("data:"):
                    for each in from_home(path, rec.machine):
                        rec.read(each)

    return Does(reading, ToolKind.HARMLESS)


def harmless_for(values: str, otherwise: Does, *, argument: str = "action") -> Does:
    """Changes no file where an argument has one of these values."""
    known = frozenset(values.split())

    def reading(name: str, args: Args, rec: Recorder) -> None:
        action = args.get(argument)
        if not (isinstance(action, str) and action in known):
            otherwise.announce(name, args, rec)

    return Does(reading, otherwise.kind)


def by_names() -> Does:
    """May do anything; the names of its arguments say what it is told to read or change."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        from hermes_ext.effects._tools import announce_by_names

        announce_by_names(name, args, rec)

    return Does(reading, ToolKind.OTHER)


def calls_tool(tool: str = "name", arguments: str = "arguments") -> Does:
    """Calls another tool, whose name and arguments it is given."""

    def reading(name: str, args: Args, rec: Recorder) -> None:
        from hermes_ext.effects._tools import announce

        called, given = args.get(tool), args.get(arguments) or {}
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except ValueError:
                given = None
        known = isinstance(called, str) and normal(called) != normal(name)
        if known and isinstance(given, Mapping):
            announce(str(called), given, rec)
        else:
            rec.unknown("which tool is called is not known", *strings_in(args))

    return Does(reading, ToolKind.OTHER)


# -- arguments ------------------------------------------------------------------------------------


def paths_in(args: Args, rec: Recorder, paths: str = _PATHS, others: str = "") -> Iterator[str]:
    """The paths in the arguments of these names; other arguments than `others` are unknown."""
    named, ignored = paths.split(), others.split()
    for key, value in args.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key)).lower()
        if name in named:
            for text in strings_in(value):
                yield from spelt(text, rec)
            if not isinstance(value, str | list | tuple | None):
                rec.unknown(f"{key} is neither a path nor a list of paths")
        elif name not in ignored:
            rec.unknown(f"there is an argument that is not known: {key!r}", *strings_in(value))


def spelt(path: str, rec: Recorder) -> tuple[str, ...]:
    """A path as the tools take it: `~` stands for the home directory."""
    found = from_home(path, rec.machine)
    if not found:
        rec.unknown(f"where {path!r} leads is not known", path)
    return tuple(each for each in found if each)


def refuse_others(tool: str, args: Args, rec: Recorder, known: frozenset[str]) -> None:
    """Say that a call is inexact for each argument that is not known."""
    for key in sorted(args.keys() - known):
        rec.unknown(f"{tool} has an argument that is not known: {key!r}", *strings_in(args[key]))
