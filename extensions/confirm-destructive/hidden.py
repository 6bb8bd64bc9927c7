"""Commands among the words of what is not understood: other programs, other languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from hermes_ext.effects import Command, Effects, Machine, effects_of_command

from .commands import PROGRAMS, runs_statements
from .words import Words

_WORD = re.compile(r"""[^\s'"`;&|(){}\[\]<>=,]+""")
_BEFORE_COMMANDS = frozenset({"sudo", "exec", "env", "nohup", "time", "then", "do", "else", "&&"})
_RUNS_UNKNOWN = re.compile(
    r"(?:sh|at|batch)` runs (?:what is|commands that are) not known"
    r"|what (?:eval|trap) runs is not known"
)
_SEVERAL_WORDS = re.compile(r"\s")
_LONGEST_TEXT = 20_000
_HOLE = "\ufffd"  # in a text: what is not known before it runs
_MOST_WORDS = 40  # of one command
_MOST_COMMANDS = 1000
_DEEPEST = 3  # shells that are reached from one another
_MOST_TEXTS = 50
# These take a command for another place; of other programs, words may be prose.
_TAKES_COMMANDS = re.compile(
    r"(?:ssh|mosh|docker|docker-compose|podman|nerdctl|kubectl|oc|lxc|vagrant|heroku|fly|flyctl)\Z"
)
_ELSEWHERE = Machine(homes=(), local=False)
_DELETES_TREES = re.compile(
    r"\b(?:rmtree|remove_tree|rm_rf?|remove_entry\w*|rimraf|rmSync|removeSync|emptyDirSync)\b"
    r"|\bdelete_(?:dir|folder)\w*|\brecursive\s*:\s*true"
)


def hidden(effects: Effects, more: Sequence[str]) -> Iterator[Command]:
    """Commands among the words of what is not understood: `ssh host rm -rf x`, code of a language.

    Where there are very many, the last stands for the rest: it is not known which it is.

    more: programs to look for, besides those that are known here.
    """
    found = _all_hidden(effects, more)
    yield from islice(found, _MOST_COMMANDS)
    if next(found, None) is not None:
        yield Command(None, text="one of very many commands")


def _all_hidden(effects: Effects, more: Sequence[str]) -> Iterator[Command]:
    told = frozenset(effects.texts)
    for each in effects.commands:
        if not told.isdisjoint(each.args):
            yield from _among(each.args, range(len(each.args)), more)
    yield from _among(effects.texts, range(len(effects.texts)), more)
    for text in effects.texts:
        found = list(_WORD.finditer(text))
        words = [each[0] for each in found]
        # In prose a program's name stands behind other words; in code it begins something.
        begin = [
            place
            for place, each in enumerate(found)
            if not place
            or words[place - 1] in _BEFORE_COMMANDS
            or text[found[place - 1].end() : each.start()].strip(" \t")
        ]
        yield from _among(words, begin, more)


def in_shell_texts(effects: Effects) -> Iterator[tuple[str, Effects]]:
    """What quoted words of what is not understood do, each as the text of a shell: `ssh host "…"`.

    The paths in it are those of another place.
    """
    yield from islice(_in_shell_texts(effects, 1), _MOST_TEXTS)


def _in_shell_texts(effects: Effects, depth: int) -> Iterator[tuple[str, Effects]]:
    for text in effects.texts:
        if _SEVERAL_WORDS.search(text.strip()) and len(text) <= _LONGEST_TEXT:
            found = effects_of_command(text, machine=_ELSEWHERE)
            yield text, found
            if depth < _DEEPEST:
                yield from _in_shell_texts(found, depth + 1)


def started(effects: Effects) -> Iterator[Command]:
    """The commands of a text that may be prose: those that are started, here or elsewhere.

    Which program `$X` is, is left open: much prose has a dollar sign.
    """
    for each in effects.commands:
        if each.name:
            yield each
        if _takes_commands(each):
            yield from _among(each.args, range(len(each.args)), ())


def _takes_commands(command: Command) -> bool:
    return command.name is not None and _TAKES_COMMANDS.match(command.name) is not None


def has_client(effects: Effects) -> bool:
    """Whether such a text starts a client of a database."""
    return any(
        runs_statements(word)
        for each in effects.commands
        for word in (each.name, *(each.args if _takes_commands(each) else ()))
    )


def _among(words: Words, places: Iterable[int], more: Sequence[str]) -> Iterator[Command]:
    for place in places:
        name = (words[place] or "").rpartition("/")[2]
        if name and _HOLE not in name and (PROGRAMS.match(name) or name in more):
            after = words[place + 1 : place + _MOST_WORDS]
            args = tuple(None if each is None or _HOLE in each else each for each in after)
            yield Command(name, args, text=" ".join(each or "…" for each in (name, *args[:8])))


def deletes_trees(effects: Effects) -> bool:
    """Whether code that is not understood calls what deletes directories."""
    return any(_DELETES_TREES.search(each) for each in (*effects.texts, *effects.unknown))


def runs_unknown(effects: Effects) -> str | None:
    """Why text that is not known before it runs is run as commands; None if none is."""
    return next((each for each in effects.unknown if _RUNS_UNKNOWN.search(each)), None)
