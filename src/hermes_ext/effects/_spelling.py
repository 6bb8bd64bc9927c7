"""How tools and programs write paths: from the home directory, and as addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from hermes_ext.effects._machine import Machine

_DEPTH: Final = 12

_ADDRESS: Final = re.compile(r"\A(?:file|vscode-remote):/+(?:localhost(?=/))?", re.IGNORECASE)


def homes_of(machine: Machine) -> tuple[str, ...]:
    """What `~` may mean; a host may give its programs their own home."""
    tools = machine.tools
    folder = "" if tools is None else machine.variables.get(tools.home_variable, "")
    if tools is None or not (folder and tools.programs_home):
        return machine.homes
    own = os.path.join(folder, tools.programs_home)
    there = not machine.local or os.path.isdir(own)
    return tuple(dict.fromkeys((*machine.homes, own))) if there else machine.homes


def from_home(path: str, machine: Machine) -> tuple[str, ...]:
    """A path that may begin with `~`, as all it may lead to; nothing if that is not known."""
    if not path.startswith("~"):
        return (path,)
    name, _, rest = path.partition("/")
    if name == "~":
        return tuple(os.path.join(home, rest.lstrip("/")) for home in homes_of(machine))
    if not machine.local or not re.search(r"[A-Za-z_]", name):  # ~-, ~1: of a shell's history
        return ()
    if "\0" in name:  # nobody is called so, and the system is not to be asked
        return (path,)
    # Where no such user is known, it is a name like any other.
    return tuple(dict.fromkeys((os.path.expanduser(path), path)))


def local_path(text: str) -> str:
    """The path of an address like `file:///etc/hosts`; other texts as they are."""
    found = _ADDRESS.match(text)
    return unquote("/" + text[found.end() :].lstrip("/")) if found else text


def strings_in(value: object, depth: int = 0) -> Iterator[str]:
    """Every text in a value, the names of arguments below it left out."""
    if isinstance(value, str):
        yield value
    elif depth > _DEPTH:
        yield str(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from strings_in(each, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from strings_in(each, depth + 1)
