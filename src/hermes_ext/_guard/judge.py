"""What of a call touches the rules: by its effects, and by what is said where those are open."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from attrs import frozen

from hermes_ext._guard.identity import Identities
from hermes_ext._guard.places import Protected
from hermes_ext._guard.talk import (
    SWITCHES,
    command_in,
    names_the_home,
    rule_command,
    switch_in,
    tells_the_home,
)
from hermes_ext.effects import Change, ChangeKind, Effects

__all__ = ["Finding", "finding_in"]

_DEPTH: Final = 12
_LONGEST_PATH: Final = 4_096
_PATHS: Final = frozenset({"path", "file_path", "filepath", "output_path", "destination"})
_FILTERS: Final = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"}
)
_EXECUTES: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@frozen
class Finding:
    """What is not to happen. what: for a message. by: what would do it; "" where that says nothing.

    kind: `home` is the Hermes home as such; `switch`, a variable that turns rules off.
    """

    kind: Literal["place", "home", "command", "switch"]
    what: str
    by: str = ""


def finding_in(effects: Effects, args: Mapping[str, Any], protected: Protected) -> Finding | None:
    """The first reason to refuse a call; None if it leaves the rules alone."""
    return next(_findings(effects, args, protected), None)


def _findings(effects: Effects, args: Mapping[str, Any], protected: Protected) -> Iterator[Finding]:
    identities = Identities(protected)
    for change in effects.changes:
        found = _changed(change, protected, identities)
        if found is not None:
            yield found
    for command in effects.commands:
        told = rule_command(command)
        if told:
            yield Finding("command", told)
        for name in SWITCHES & set(command.variables):
            yield Finding("switch", name, command.name)
    for name in SWITCHES & (effects.variables | set(_keys(args))):
        yield Finding("switch", name)
    if effects.unknown:
        yield from _said(effects, protected, identities)
        yield from _looked_for(effects, protected)
    yield from _spelt(args, protected)


def _changed(change: Change, protected: Protected, identities: Identities) -> Finding | None:
    path = str(change.path)
    place = protected.place(path) or identities.of(path)
    if place is not None:
        return Finding("place", place, change.by)
    if change.kind is ChangeKind.DELETE:
        if protected.is_home(path):
            return Finding("home", path, change.by)
        # Not only of what is below: a link or a folder above may hold the only way to it.
        covered = protected.below(path)
        return None if covered is None else Finding("place", covered, change.by)
    if change.tree and protected.is_home(path):
        return Finding("home", path, change.by)
    return None


def _said(effects: Effects, protected: Protected, identities: Identities) -> Iterator[Finding]:
    """What is meant by words that are given to something which nobody knows."""
    # What is only read was told apart from the rest.
    for path in effects.mentions - effects.reads:
        place = protected.place(str(path)) or identities.of(str(path))
        if place is not None:
            yield Finding("place", place)
        elif protected.is_home(str(path)):
            yield Finding("home", str(path))
    for text in effects.texts:
        switch, command = switch_in(text), command_in(text)
        if switch:
            yield Finding("switch", switch)
        if command:
            yield Finding("command", command)
        if names_the_home(text):
            yield Finding("home", protected.hermes_home)


def _looked_for(effects: Effects, protected: Protected) -> Iterator[Finding]:
    """Something that nobody knows is done to all files below a directory, or to settings."""
    for command in effects.commands:
        if tells_the_home(command):
            yield Finding("home", protected.hermes_home)
        filtered = any(each in _FILTERS for each in command.args)
        if command.name != "find" or filtered or not _EXECUTES.intersection(command.args):
            continue
        for path in effects.searches:
            covered = protected.below(str(path))
            if covered is not None:
                yield Finding("place", covered, "find -exec")


def _spelt(args: Mapping[str, Any], protected: Protected) -> Iterator[Finding]:
    """Paths that a tool may take for protected ones: in quotes, blanks, or with variables."""
    for key in _PATHS & args.keys():
        text = args[key]
        if isinstance(text, str) and len(text) <= _LONGEST_PATH:
            bare = os.path.expandvars(text.strip().strip("\"'`").strip())
            place = protected.place(os.path.normpath(os.path.join("/", bare)))
            if bare != text and place is not None:
                yield Finding("place", place)


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    """The names in some arguments: of variables too, where a tool takes an environment."""
    if depth > _DEPTH:
        return
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from _keys(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _keys(each, depth + 1)
