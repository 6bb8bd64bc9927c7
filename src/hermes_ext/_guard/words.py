"""Expansion: what the words of shell text become, as far as that can be told without running it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import translate
from itertools import pairwise
from typing import Final, TypeAlias

from attrs import define, evolve, field

from hermes_ext._guard.places import ANY, MANY, ONE, Protected
from hermes_ext._guard.shell import (
    CLOSE,
    COMMA,
    OPEN,
    SPLIT,
    Part,
    Program,
    Script,
    Tilde,
    Unknown,
    Variable,
    Word,
)

Values: TypeAlias = tuple[str, ...]
"""What a text may be; more than one where it is not known which."""

_MOST: Final = 48  # values of a word; beyond, it counts as unknown
_BACK: Final = str.maketrans({OPEN: "{", COMMA: ",", CLOSE: "}"})
_GLOBS: Final = str.maketrans({"*": MANY, "?": ONE})
_SPACE: Final = re.compile(r"[ \t\n]+")
_RANGE: Final = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])\Z")
_SLICE: Final = re.compile(r" ?(-?\d+)(?::(-?\d+))?\Z")
_NUMBERS: Final = frozenset("?$!#-")


@define
class State:
    """What a shell knows at a place of its text. cwd: where it may be."""

    protected: Protected
    cwd: Values
    variables: dict[str, Values] = field(factory=dict)
    aliases: dict[str, str] = field(factory=dict)
    before: Values = (ANY,)
    otherwise: Values = ()
    sure: bool = True

    def copy(self) -> State:
        """For a subshell: what it changes is its own."""
        return evolve(self, variables={**self.variables}, aliases={**self.aliases})

    def at(self, cwd: Values) -> State:
        """The same, elsewhere."""
        return evolve(self, cwd=cwd)

    def go(self, cwd: Values) -> None:
        """Change the directory; where it may not exist, the old one counts too."""
        self.before = self.cwd
        self.otherwise = () if self.sure and all(map(os.path.isdir, cwd)) else self.cwd
        self.cwd = cwd

    def move_on(self, chained: bool, sure: bool) -> None:
        """The next command is reached.

        chained: only if those before it did not fail. sure: it runs whatever else happened.
        """
        if self.otherwise and not chained:
            self.cwd = tuple(dict.fromkeys((*self.cwd, *self.otherwise)))[:_MOST]
            self.otherwise = ()
        self.sure = sure and not chained

    def assign(self, name: str, values: Values) -> None:
        """Set a variable. What it held counts on: nobody knows which branches are taken."""
        all_values = tuple(dict.fromkeys((*values, *self.variables.get(name, ()))))
        self.variables[name] = all_values if len(all_values) <= _MOST else (ANY,)

    def set_arguments(self, fields: Sequence[Values]) -> None:
        """What `$1` and so on are."""
        self.variables |= {str(place): value for place, value in enumerate(fields, 1)}
        everything = tuple(text for value in fields for text in value)
        self.variables |= dict.fromkeys("@*", everything or ("",))

    def value(self, name: str) -> Values:
        """What a variable may hold."""
        known = self.variables.get(name)
        if known is not None:
            return known
        if name in _NUMBERS:
            return ("1",)
        special = {
            "PWD": self.cwd,
            "OLDPWD": self.before,
            "HOME": self.protected.user_homes,
            "HERMES_HOME": (self.protected.hermes_home,),
            "IFS": (" ",),
        }
        if name in special:
            return special[name]
        if name in os.environ:
            return (os.environ[name],)
        # Set by an earlier command, perhaps: then its name says what it is.
        return (ANY, self.protected.hermes_home) if "hermes" in name.lower() else (ANY,)

    def home_of(self, user: str) -> Values:
        """What `~` or `~user` stands for."""
        if user in ("", "+", "-"):
            return {"": self.value("HOME"), "+": self.cwd, "-": self.before}[user]
        with suppress(KeyError, ImportError, ValueError):
            if sys.platform != "win32":
                import pwd

                return (pwd.getpwnam(user).pw_dir,)
        return (f"~{user}",)


@define
class Expander:
    """Expands words in a state. run: what a substitution prints, once it is run."""

    state: State
    run: Callable[[Program, State], Values]

    def fields(self, word: Word) -> list[Values]:
        """The fields that a word becomes; a field has several values if it is not known which."""
        values = [list(_fields_of(each)) for each in self._texts(word)]
        if len(values) > 1 and all(len(each) == 1 for each in values):
            return [tuple(dict.fromkeys(each[0] for each in values))]
        return [(each,) for group in values for each in group]

    def text(self, word: Word) -> Values:
        """A word as one text, neither split nor expanded as braces."""
        return tuple(each.translate(_BACK) for each in self._texts(word))

    def _texts(self, word: Word) -> Values:
        if len(word) == 1 and isinstance(word[0], str):
            return (word[0],)
        texts: Values = ("",)
        for part in word:
            values = self._values(part)
            if len(texts) * len(values) > _MOST:
                values = (ANY,)
            texts = tuple(dict.fromkeys(text + value for text in texts for value in values))
        return texts

    def _values(self, part: Part) -> Values:
        if isinstance(part, str):
            return (part,)
        if isinstance(part, Tilde):
            return self.state.home_of(part.user)
        if isinstance(part, Unknown):
            self._texts(part.inner)
            return (ANY,)
        if isinstance(part, Script):
            printed = self.run(part.program, self.state.copy())
            if part.is_file:
                return ("/dev/fd/63",)
            return printed if part.quoted else _unquoted(printed)
        values = self._expansion(part)
        return values if part.quoted else _unquoted(values)

    # -- ${…} -----------------------------------------------------------------------------------

    def _expansion(self, part: Variable) -> Values:
        values = self.state.value(part.name)
        if not part.operator:
            return values
        operator = part.operator.lstrip(":") or ":"
        given = self.text(part.word)
        if operator in "-=":
            known = ANY not in values and values != ("",)
            found = values if known else (*given, *values)
            if operator == "=":
                self.state.assign(part.name, found)
            return found
        if operator == "+":
            return (*given, "")
        if operator == "?" and part.operator == "?":
            return tuple(each for name in values for each in self.state.value(name))
        change = _CHANGES.get(operator[0])
        if change is None:
            return (*values, ANY)
        return tuple(
            ANY if ANY in value else change(value, operator, word)
            for value in values
            for word in given
        )


def _unquoted(values: Iterable[str]) -> Values:
    """What becomes of an expansion that is not quoted: it is split, and globs in it count."""
    return tuple(_SPACE.sub(SPLIT, each.strip(" \t\n")).translate(_GLOBS) for each in values)


def _fields_of(text: str) -> Iterator[str]:
    for expanded in braces(text) if OPEN in text else (text,):
        back = expanded.translate(_BACK) if COMMA in expanded or CLOSE in expanded else expanded
        if SPLIT in back:
            yield from filter(None, back.split(SPLIT))
        else:
            yield back


def braces(text: str) -> tuple[str, ...]:
    """The texts that `{a,b}` and `{1..3}` in a text stand for; no more than a few."""
    done: list[str] = []
    todo = [text]
    while todo and len(done) + len(todo) < _MOST:
        current = todo.pop(0)
        choices = _first_braces(current)
        if choices is None:
            done.append(current)
        else:
            todo += choices
    return (*done, *(ANY for _ in todo[:1]))


def _first_braces(text: str) -> list[str] | None:
    """The text with its first braces expanded; None if it has none."""
    start = text.find(OPEN)
    while start >= 0:
        commas, end = _inside(text, start)
        if end:
            before, after = text[:start], text[end + 1 :]
            if commas:
                edges = [start, *commas, end]
                return [f"{before}{text[one + 1 : two]}{after}" for one, two in pairwise(edges)]
            numbers = _RANGE.match(text[start + 1 : end])
            if numbers:
                return [f"{before}{each}{after}" for each in _counted(numbers[1], numbers[2])]
        start = text.find(OPEN, start + 1)
    return None


def _inside(text: str, start: int) -> tuple[list[int], int]:
    """The commas of braces that open at `start`, and where they close (0: nowhere)."""
    depth, commas = 0, []
    for place in range(start, len(text)):
        char = text[place]
        depth += (char == OPEN) - (char == CLOSE)
        if char == COMMA and depth == 1:
            commas.append(place)
        if depth == 0:
            return commas, place
    return [], 0


def _counted(first: str, last: str) -> list[str]:
    numbers = first.lstrip("-").isdigit() and last.lstrip("-").isdigit()
    one, two = (int(first), int(last)) if numbers else (ord(first[0]), ord(last[0]))
    if abs(one - two) >= _MOST:
        return [ANY]
    counted = range(min(one, two), max(one, two) + 1)
    return [str(each) if numbers else chr(each) for each in counted]


# -- what ${…} does to a value ------------------------------------------------------------------


def _glob(pattern: str) -> str:
    return pattern.replace(MANY, "*").replace(ONE, "?")


def _without_start(value: str, operator: str, word: str) -> str:
    lengths = range(len(value) + 1)
    pattern = re.compile(translate(_glob(word)))
    for length in reversed(lengths) if operator == "##" else lengths:
        if pattern.match(value[:length]):
            return value[length:]
    return value


def _without_end(value: str, operator: str, word: str) -> str:
    lengths = range(len(value) + 1)
    pattern = re.compile(translate(_glob(word)))
    for length in lengths if operator == "%%" else reversed(lengths):
        if pattern.match(value[length:]):
            return value[:length]
    return value


def _replaced(value: str, operator: str, word: str) -> str:
    wanted, _, instead = word.partition("/")
    if any(char in wanted for char in "*?[") or ANY in word:
        return ANY
    return value.replace(wanted, instead, -1 if operator == "//" else 1)


def _sliced(value: str, _: str, word: str) -> str:
    found = _SLICE.match(word)
    if not found:
        return ANY
    start = int(found[1])
    rest = value[start:]
    return rest if found[2] is None else rest[: int(found[2])]


_CHANGES: Final[dict[str, Callable[[str, str, str], str]]] = {
    "#": _without_start,
    "%": _without_end,
    "/": _replaced,
    ":": _sliced,
    "^": lambda value, _o, _w: value.upper(),
    ",": lambda value, _o, _w: value.lower(),
}
