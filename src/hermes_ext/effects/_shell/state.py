"""What a shell has in mind, and what it may have in mind after either of two ways."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from typing import Final, TypeAlias

from attrs import define, field, fields

from hermes_ext.effects._shell.marks import HOLE, hole
from hermes_ext.effects._words import Hole, Word, tags_of

Values: TypeAlias = tuple[str, ...]
"""What a word or a variable may be, with holes in it; never empty."""

Ends: TypeAlias = "tuple[State | None, State | None]"
"""The state after success and after failure; None where it does not end so."""

MOST_VALUES: Final = 16
UNKNOWN: Final[Values] = (HOLE,)
_NUMBER: Final = re.compile(r"\s*-?\d*\s*\Z")


@define
class State:
    """What a shell has in mind: where it stands, and what its names mean.

    cwd: the directories that it may be in; none if that is not known. arrays: the words of each, or
    None. functions: the `Function`s that a name may run; None among them: no function. numbers:
    variables that arithmetic gave their value. fixed: read-only variables. local: in a function,
    what the names that it declares stand for outside. arguments: `$1` and so on.
    """

    cwd: tuple[str, ...]
    old: tuple[str, ...] = ()
    stack: list[tuple[str, ...]] = field(factory=list)
    variables: dict[str, Values] = field(factory=dict)
    exported: set[str] = field(factory=set)
    numbers: set[str] = field(factory=set)
    fixed: set[str] = field(factory=set)
    local: dict[str, Values | None] | None = None
    arrays: dict[str, tuple[Word, ...] | None] = field(factory=dict)
    functions: dict[str, tuple[object, ...]] = field(factory=dict)
    arguments: tuple[Word, ...] | None = ()

    def is_number(self, name: str) -> bool:
        """Whether a variable, or each element of an array, surely is a whole number, or nothing."""
        values = self.variables.get(name, self.arrays.get(name))
        return name in self.numbers or (values is not None and all(map(is_number, values)))

    def make_local(self, name: str) -> None:
        """In a function, a name that stands for something else outside."""
        if self.local is not None and name and name not in self.local:
            self.local[name] = self.variables.get(name)

    def leave(self, outer: dict[str, Values | None] | None) -> None:
        """At a function's end, its local names stand for what they stood for before."""
        for name, values in (self.local or {}).items():
            self.arrays.pop(name, None)
            self.numbers.discard(name)
            if values is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = values
        self.local = outer

    def copy(self) -> State:
        """One that can change by itself."""
        return State(*(copy(getattr(self, name)) for name in _FIELDS))


_FIELDS: Final = tuple(each.name for each in fields(State))


def is_number(word: Word) -> bool:
    """Whether a word is a whole number, or nothing."""
    return isinstance(word, str) and _NUMBER.match(word) is not None


def merged(one: State | None, other: State | None) -> State | None:
    """What is so after either of two."""
    if one is None or other is None or one is other:
        return one or other
    both = one.copy()
    both.cwd = _united(one.cwd, other.cwd) if one.cwd and other.cwd else ()
    both.old = _united(one.old, other.old) if one.old and other.old else ()
    if one.stack != other.stack:
        both.stack = [()]
    both.exported |= other.exported
    both.fixed |= other.fixed
    if both.local is not None:
        both.local = {**(other.local or {}), **both.local}
    both.numbers = {
        name
        for name in one.numbers | other.numbers
        if one.is_number(name) and other.is_number(name)
    }
    if one.arguments != other.arguments:
        both.arguments = None
    for name in one.variables.keys() | other.variables.keys():
        values = _united(one.variables.get(name, UNKNOWN), other.variables.get(name, UNKNOWN))
        both.variables[name] = values if len(values) <= MOST_VALUES else (hole(values),)
    for name in one.arrays.keys() | other.arrays.keys():
        mine, theirs = one.arrays.get(name), other.arrays.get(name)
        open_ended = Hole(many=True, tags=tags_of((*(mine or ()), *(theirs or ()))))
        both.arrays[name] = mine if mine == theirs else (open_ended,)
    for name in one.functions.keys() | other.functions.keys():
        bodies, others = one.functions.get(name, (None,)), other.functions.get(name, (None,))
        both.functions[name] = (*bodies, *(each for each in others if each not in bodies))
    return both


def either(ways: Iterable[Ends]) -> Ends:
    """What may be so after one of several ways."""
    ok: State | None = None
    failed: State | None = None
    for ends in ways:
        ok, failed = merged(ok, ends[0]), merged(failed, ends[1])
    return ok, failed


def _united(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def forget(state: State, before: State) -> None:
    """What changed since `before` is not known any more."""
    for name, values in state.variables.items():
        if before.variables.get(name) != values:
            state.variables[name] = (hole(values),)
    for name, words in state.arrays.items():
        if before.arrays.get(name, ()) != words:
            state.arrays[name] = (Hole(many=True, tags=tags_of(words or ())),)
    if state.cwd != before.cwd:
        state.cwd, state.old = (), ()
    if state.arguments != before.arguments:
        state.arguments = None
