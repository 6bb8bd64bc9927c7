"""What of a call touches the rules: by its effects, and by what is said where those are open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, Literal

from hermes_ext._values import frozen
from hermes_ext.effects import Change, ChangeKind, Command, Effects
from hermes_ext.effects.readings import strings_in
from hermes_ext.guard.places import Identities, Protected
from hermes_ext.guard.talk import Talk, talk_of

_DEPTH: Final = 12
_LONGEST_PATH: Final = 4_096
_PATHS: Final = frozenset({"path", "file_path", "filepath", "output_path", "destination"})
_FILTERS: Final = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"}
)
_EXECUTES: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_HANDS_ON: Final = frozenset({"parallel", "xargs"})
_FILES: Final = ("__init__.py", "extension.yaml", "trusted.json")
# Files that shells, and what stands in for them, take variables from.
_STARTS: Final = re.compile(
    r"(?:/\.(?:bash(?:rc|_profile|_login|_logout|_aliases)|profile|z(?:shrc|shenv|profile|login|logout)"
    r"|m?kshrc|t?cshrc|login|x(?:profile|initrc|session|sessionrc)|pam_environment|envrc"
    r"|config/(?:environment\.d|fish(?:/\w+\.d)?|nushell|autostart)/[^/]+)"
    r"|\A/etc/(?:environment|profile|bash\.bashrc|bashrc|z(?:shenv|profile|shrc|login)"
    r"|csh\.(?:cshrc|login)|crontab|security/pam_env\.conf"
    r"|(?:profile\.d|environment\.d|zsh|fish(?:/\w+\.d)?|default|cron\.d)/[^/]+)"
    r"|/systemd/(?:[^/]+/)+[^/]+\.(?:service|conf)"
    r"|/Library/Launch(?:Agents|Daemons)/[^/]+\.plist)\Z"
)


@frozen
class Finding:
    """What is not to happen. what: for a message. by: what would do it; "" where that says nothing.

    kind: `home` is the Hermes home as such; `switch`, a variable that turns rules off; `unread`, a
    call that cannot be read, of which it is not known what it does to the rules.
    """

    kind: Literal["place", "home", "command", "switch", "unread"]
    what: str
    by: str = ""


def finding_in(
    effects: Effects, args: Mapping[str, Any], protected: Protected, cwd: Path | None = None
) -> Finding | None:
    """The first reason to refuse a call; None if it leaves the rules alone.

    cwd: where the session works; the rules of that project are protected from further up, too.
    """
    return next(_findings(effects, args, protected, cwd), None)


def _findings(
    effects: Effects, args: Mapping[str, Any], protected: Protected, cwd: Path | None
) -> Iterator[Finding]:
    if effects.unread is not None:
        yield Finding("unread", effects.unread)
    identities = Identities(protected)
    talk = talk_of(protected.host)
    for change in effects.changes:
        found = _changed(change, protected, identities)
        if found is not None:
            yield found
        if change.kind is ChangeKind.DELETE and cwd is not None and cwd.is_relative_to(change.path):
            place = protected.above(str(cwd), str(change.path))
            if place is not None:
                yield Finding("place", place, change.by)
    for command in effects.commands:
        for name in talk.switches & set(command.variables):
            yield Finding("switch", name, command.name or "")
        told = talk.rule_command(command)
        if told:
            yield Finding("command", told)
    if any(_STARTS.search(str(path)) for path in effects.writes):
        for switch in filter(None, map(talk.switch_in, strings_in(args))):
            yield Finding("switch", switch)
    for name in talk.switches & (effects.variables | set(_keys(args))):
        yield Finding("switch", name)
    yield from _left_open(effects, args, protected, identities)
    yield from _spelt(args, protected)


def _left_open(
    effects: Effects, args: Mapping[str, Any], protected: Protected, identities: Identities
) -> Iterator[Finding]:
    """What may be meant where a call does not say all that it does."""
    talk = talk_of(protected.host)
    if effects.unknown:
        yield from _said(effects, protected, identities, talk)
        yield from _put_together(effects, args, talk)
    if effects.may_write:
        yield from _looked_for(effects, protected, talk)


def _changed(change: Change, protected: Protected, identities: Identities) -> Finding | None:
    path = str(change.path)
    place = protected.place(path) or identities.of(path)
    if place is not None:
        return Finding("place", place, change.by)
    deleted = change.kind is ChangeKind.DELETE
    if (deleted or change.tree) and protected.is_home(path):
        return Finding("home", path, change.by)
    # Not only of what is below: a link or a folder above may hold the only way to it.
    covered = protected.below(path) if deleted else None
    return None if covered is None else Finding("place", covered, change.by)


def _said(
    effects: Effects, protected: Protected, identities: Identities, talk: Talk
) -> Iterator[Finding]:
    """What is meant by words that are given to something which nobody knows."""
    # What is only read was told apart from the rest.
    for path in effects.mentions - effects.reads:
        place = protected.place(str(path)) or identities.of(str(path))
        if place is not None:
            yield Finding("place", place)
        elif protected.is_home(str(path)):
            yield Finding("home", str(path))
    for text in effects.texts:
        switch, command = talk.switch_in(text), talk.command_in(text)
        if switch:
            yield Finding("switch", switch)
        if command:
            yield Finding("command", command)
        if talk.names_the_home(text):
            yield Finding("home", protected.hermes_home)
    # The words of one command, which something else is to run: `uv run hermes-ext …`.
    told = "\n".join((*effects.texts, *effects.unknown))
    command = talk.command_in(told) or talk.code_in(told) or talk.run_by_lookup(effects.commands)
    if command:
        yield Finding("command", command)


def _put_together(effects: Effects, args: Mapping[str, Any], talk: Talk) -> Iterator[Finding]:
    """A command made of words that stand in a text, of which it is not known how."""
    if any(not command.name for command in effects.commands):
        for told in filter(None, map(talk.command_somewhere_in, strings_in(args))):
            yield Finding("command", told)


def _looked_for(effects: Effects, protected: Protected, talk: Talk) -> Iterator[Finding]:
    """Files are changed whose names something prints or finds, or settings that it tells."""
    names = (each.name for each in effects.commands if each.name in _HANDS_ON)
    handed_on = next(filter(None, names), "") if effects.unknown else ""
    searched = {*map(str, effects.searches), *_listed(effects)}
    listed = set(map(str, effects.listed))
    for path in sorted(listed | (searched if handed_on else set())):
        place = protected.place(path)
        if place is not None:
            yield Finding("place", place, handed_on)
        elif protected.is_home(path):
            yield Finding("home", path, handed_on)
    # Alone, that is only shown.
    several = effects.unknown and len(effects.commands) > 1
    if several and any(map(talk.tells_the_home, effects.commands)):
        yield Finding("home", protected.hermes_home)
    for path in sorted(searched):
        by = handed_on or _changes_what_it_finds(effects, path)
        covered = protected.below(path) if by or path in listed else None
        if covered is not None and _are_found(effects, path, protected):
            yield Finding("place", covered, by)


def _changes_what_it_finds(effects: Effects, path: str) -> str:
    """What changes the files that a search below a path finds, if anything may."""
    executes = any(_EXECUTES.intersection(each.args) for each in effects.commands)
    trees = {str(each.path) for each in effects.changes if each.tree}
    return "find -exec" if executes and (effects.unknown or path in trees) else ""


def _are_found(effects: Effects, path: str, protected: Protected) -> bool:
    """Whether a search below a path finds rules, as far as the filters of `find` tell."""
    in_home = protected.holds_home(path)
    finds = [each for each in effects.commands if each.name == "find"]
    own = map(os.path.basename, protected.homes.values())
    files = (*_FILES, *protected.names, *own) if in_home else ()
    return any(_may_find(each, files) for each in finds) if finds else in_home


def _listed(effects: Effects) -> Iterator[str]:
    """Directories whose files a `find` that does not go deep gives to what runs behind it."""
    if any("-maxdepth" in each.args for each in effects.commands):
        yield from (str(each) for each in effects.reads if each.is_dir())


def _may_find(command: Command, files: tuple[str, ...]) -> bool:
    """Whether `find` finds rules, as far as its filters tell.

    files: what could be a rule there, if it has one of these names.
    """
    names: list[str] = []
    for option, value in pairwise(command.args):
        if option in _FILTERS:
            names.append(value or "*")
            if option not in ("-name", "-iname") and "hermes" in names[-1].lower():
                return True
    return not names or any(fnmatchcase(*each) for each in product(files, names))


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
    if isinstance(value, Mapping | list | tuple) and depth <= _DEPTH:
        if isinstance(value, Mapping):
            yield from map(str, value)
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _keys(each, depth + 1)
