"""What a command prints, where that is certain before it runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from hermes_ext.effects._machine import upwards
from hermes_ext.effects._shell.state import State
from hermes_ext.effects._words import Hole, Word


def printed(
    words: Sequence[Word], stdin: str | Hole | None, state: State, environ: Mapping[str, str]
) -> str | Hole | None:
    """The output of a program that was called with these words; None where it is not certain.

    A `Hole` is one line, of which it is known how it begins.
    """
    if any(isinstance(each, Hole) for each in words):
        return None
    name, *args = (str(each) for each in words)
    if name == "cat" and not args:
        return stdin if isinstance(stdin, str) else None
    if name == "pwd" and not args and len(state.cwd) == 1:
        return f"{state.cwd[0]}\n"
    if name == "git" and args == ["rev-parse", "--show-toplevel"] and len(state.cwd) == 1:
        return _top_of(state.cwd[0])
    if name == "mktemp" and "TMPDIR" not in state.variables:
        return _temporary(args, environ)
    prints = _PRINTS.get(name)
    return None if prints is None else prints(args)


def _top_of(directory: str) -> str | None:
    """The work tree that a directory is in, if its repository says nothing else."""
    above = upwards(os.path.realpath(directory))
    place = next((each for each in above if os.path.lexists(os.path.join(each, ".git"))), None)
    if place is None:
        return None
    try:
        with open(os.path.join(place, ".git", "config"), encoding="utf-8") as file:
            return None if "worktree" in file.read().lower() else f"{place}\n"
    except (OSError, ValueError):
        return None


def _temporary(args: Sequence[str], environ: Mapping[str, str]) -> Hole | None:
    """What `mktemp` makes is in the directory for such files, or where its template says."""
    templates = [each for each in args if each not in ("-d", "--directory", "-q", "--quiet")]
    if len(templates) == 1 and templates[0].startswith("/"):
        return Hole(re.sub(r"XXX+[^X/]*\Z", "", templates[0]))
    # macOS has another directory than the variable says.
    if templates or sys.platform == "darwin":
        return None
    return Hole(os.path.join(environ.get("TMPDIR") or "/tmp", "tmp."))


def _echoed(args: Sequence[str]) -> str | None:
    newline = args[:1] != ["-n"]
    rest = args if newline else args[1:]
    if rest[:1] == ["-e"] and "\\" not in " ".join(rest):
        rest = rest[1:]
    if rest and rest[0].startswith("-"):
        return None
    return " ".join(rest) + ("\n" if newline else "")


def _base_name(args: Sequence[str]) -> str | None:
    return os.path.basename(args[0].rstrip("/")) + "\n" if len(args) == 1 else None


def _directory_name(args: Sequence[str]) -> str | None:
    return (os.path.dirname(args[0].rstrip("/")) or ".") + "\n" if len(args) == 1 else None


def _formatted(args: Sequence[str]) -> str | None:
    if not args or args[0].startswith("-"):
        return None
    written = args[0].replace("%%", "\0")
    if re.search(r"%(?!s)|\\(?![nt\\])", written):
        return None
    shown = re.sub(r"\\([nt\\])", lambda found: {"n": "\n", "t": "\t"}.get(found[1], "\\"), written)
    count = shown.count("%s")
    given = list(args[1:])
    text = ""
    while True:
        parts = shown.split("%s")
        text += parts[0]
        for part in parts[1:]:
            text += (given.pop(0) if given else "") + part
        if not given or not count:
            return text.replace("\0", "%")


_PRINTS: Final = {
    "basename": _base_name,
    "dirname": _directory_name,
    "echo": _echoed,
    "printf": _formatted,
}
