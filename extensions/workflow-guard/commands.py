"""Which commands run as they are without a plan: the patterns of `allowed_commands`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path

from attrs import evolve

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of

from .project import Project

# Where a path can begin within a word, beside at the letters of a short option.
_BEGINNINGS = re.compile(r"[=:@,\s]+")
_ADDRESS = re.compile(r"https?://\S+")
_MODULE = re.compile(r"\w[\w.]*")

_AS_ANOTHER = ("sudo", "doas")  # users; a pattern names them


def allows(pattern: str, words: Sequence[str]) -> bool:
    """Whether a pattern is for a command of these words.

    Word by word; a `*` at the end of the pattern matches any further words, too.
    """
    wanted = pattern.split()
    further = pattern.endswith("*")
    if wanted[-1] == "*":
        wanted.pop()
    if len(words) < len(wanted) or (len(words) > len(wanted) and not further):
        return False
    return all(map(fnmatchcase, words, wanted))


def runs_as_it_is(event: ToolCall, effects: Effects, project: Project) -> bool:
    """Whether a call of a shell, which is not known to be harmless, is by these patterns.

    All that they do not name has to be known to write nothing. What they name has to start in the
    project, as this user, and must not be pointed to what can be written without a plan, nor find
    code there by itself. Nor to anything outside of the project: confined commands leave files in
    their temporary folder.
    """
    patterns = project.settings["allowed_commands"]
    if not patterns or effects.exact or effects.variables or _leads_astray(effects, project):
        return False

    starts = [each.cwd for each in effects.commands if each.cwd is not None]

    def trusts(words: Sequence[str]) -> bool:
        named = (each for each in patterns if allows(each, words))
        return any(not _leave(_further(each, words), starts, project) for each in named)

    for each in effects.commands:
        if each.name in _AS_ANOTHER and not trusts([each.name, *(arg or "" for arg in each.args)]):
            return False
    machine = evolve(event.machine or Machine(), trusts=trusts)
    rest = effects_of(event, machine=machine)
    # A file that it writes itself could be found and run by what it runs then.
    return rest.exact and not rest.changes and not project.holds_examples()


def _leads_astray(effects: Effects, project: Project) -> bool:
    starts = [each.cwd for each in effects.commands]
    astray = any(each is None or not project.is_own(each) for each in starts)
    return astray or any(
        each is not None and project.is_open(each) for each in (*starts, *effects.mentions)
    )


def _further(pattern: str, words: Sequence[str]) -> list[str]:
    """The words that only a wildcard of the pattern matches."""
    both = zip_longest(words, pattern.split()[: len(words)])
    return [word for word, wanted in both if word != wanted]


def _leave(words: Sequence[str], starts: Sequence[Path], project: Project) -> bool:
    """Whether words may name something outside of the project, or what can be written there."""
    named = (each for word in words for each in _paths_in(_ADDRESS.sub("", word)))
    return any(_leads_out(start, each, project) for each in named for start in starts)


def _paths_in(word: str) -> Iterator[str]:
    beginnings = {0, *(found.end() for found in _BEGINNINGS.finditer(word))}
    if word.startswith("-"):
        beginnings.update(range(1, min(len(word), 80)))
    for path in (word[each:] for each in beginnings):
        yield path
        if _MODULE.fullmatch(path):
            yield path.replace(".", "/")


def _leads_out(start: Path, path: str, project: Project) -> bool:
    place = Path(os.path.normpath(start / path))
    real = Path(os.path.realpath(place))
    out = path.startswith("~") or not project.is_own(place)
    return out or project.is_open(place) or project.is_open(real)
