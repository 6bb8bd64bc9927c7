"""What a command prints, where that is certain before it runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hermes_ext.effects._machine import upwards
from hermes_ext.effects._shell.state import State
from hermes_ext.effects._words import Hole, Word, shown, tags_of

# Of these, what is printed is what files hold, or a figure: no names of files.
_CONTENTS_LISTED: Final = """
awk base64 bat cat column cmp cut date diff egrep expand fgrep fmt fold gawk grep head hexdump
hostname id iconv jq less md5sum more nl od paste printenv ps rev rg sed seq sha1sum sha256sum
sort strings tac tail tr uname uniq wc whoami xxd yq zcat
"""
_CONTENTS: Final = frozenset(_CONTENTS_LISTED.split())
# What these print is no name at all.
FIGURES: Final = frozenset(
    {"cksum", "date", "hostname", "id", "md5sum", "nproc", "sha1sum", "sha256sum", "wc", "whoami"}
)
_LISTS: Final = re.compile(r"-[A-Za-z]*[lL]|--files")


def printed(
    words: Sequence[Word],
    stdin: Word | None,
    state: State,
    environ: Mapping[str, str],
    held: Callable[[Word], Sequence[Word]],
) -> Word:
    """The output of a program that was called with these words; a `Hole` where it is not certain.

    held: what a file holds that the call itself has written.
    """
    name, *args = words
    if name in _SILENT:
        return ""
    if name == "tee" or (name == "cat" and not args):
        return Hole() if stdin is None else stdin
    if name == "cat":
        found = [held(each) for each in args]
        known = all(len(each) == 1 for each in found)
        return whole([each for texts in found for each in texts] if known else [Hole()])
    if any(isinstance(each, Hole) for each in words):
        said = " ".join(map(shown, args)) if name in ("echo", "printf") else ""
        return Hole(text=said or (shown(stdin) if stdin else ""))
    known_to_the_end = _certain(str(name), [str(each) for each in args], state, environ)
    if known_to_the_end is not None:
        return known_to_the_end
    return Hole(text=shown(stdin) if stdin else "")


def prints_names(words: Sequence[Word]) -> bool:
    """Whether what a command prints may be names of the files that it is given, or finds."""
    lists = any(isinstance(each, str) and _LISTS.match(each) for each in words[1:])
    return words[0] not in _CONTENTS or (str(words[0]).endswith(("grep", "rg")) and lists)


def whole(pieces: Sequence[Word]) -> Word:
    """What is printed one after the other."""
    known = [each for each in pieces if isinstance(each, str)]
    if len(known) == len(pieces):
        return "".join(known)
    text = "".join(map(shown, pieces))
    return pieces[0] if len(pieces) == 1 else Hole(text=text, tags=tags_of(pieces))


def _certain(
    name: str, args: list[str], state: State, environ: Mapping[str, str]
) -> str | Hole | None:
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


_SILENT: Final = frozenset({":", "[", "false", "test", "true"})
_PRINTS: Final = {
    "basename": _base_name,
    "dirname": _directory_name,
    "echo": _echoed,
    "printf": _formatted,
}
