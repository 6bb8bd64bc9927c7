"""Hermes Agent in this Python: under which name it was installed, its version and its program."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_ext._values import frozen
from hermes_ext.hosts.hermes.facts.names import DISTRIBUTION, PACKAGE

if TYPE_CHECKING:
    from importlib.metadata import Distribution

UNKNOWN_VERSION: Final = "an unknown version"

_PLACEHOLDER: Final = "0.0.0"  # what newer code says that was not set up by its own installer
_MAIN: Final = f"{PACKAGE}.main:main"
_VERSION: Final = rb"""(?m)^__version__\s*=\s*["']([^"'\n]+)["']"""
_PROGRAM: Final = rf"(?m)^([\w.-]+)\s*=\s*{re.escape(_MAIN)}\s*$"
# By file of a distribution's metadata, a line that only the one that brings Hermes has.
_OWNS: Final = {
    "top_level.txt": rf"(?m)^{PACKAGE}\s*$",
    "RECORD": rf"(?m)^{PACKAGE}/__init__\.py,",
    "entry_points.txt": _PROGRAM,
}


@frozen
class HostPackage:
    """The distribution that Hermes comes from.

    Attributes:
        name: the distribution's name; a fork has one other than `hermes-agent`.
        version: the distribution's version; where it has no metadata, what the code says.
        program: the console script that starts Hermes, None where there is none.
    """

    name: str
    version: str
    program: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def is_here() -> bool:
    """Whether Hermes is in this Python."""
    return _version_of_code() is not None


def host_package() -> HostPackage | None:
    """What brings Hermes to this Python, None without Hermes. Imports nothing of it.

    The code decides whether Hermes is here: metadata can outlive it, and a checkout has none.
    """
    said = _version_of_code()
    if said is None:
        return None
    owner = next((each for each in _distributions() if _owns(each)), None)
    if owner is None:
        return HostPackage(DISTRIBUTION, said, None)
    return HostPackage(owner.metadata["Name"], owner.version, _program(owner))


def host_program() -> str:
    """What a person types to start Hermes."""
    host = host_package()
    return (host and host.program) or "hermes"


def has_main() -> bool:
    """Whether Hermes can be started as a program; a fork may be a library alone."""
    spec = _spec()
    places = None if spec is None else spec.submodule_search_locations
    return bool(places) and PathFinder.find_spec(f"{PACKAGE}.main", places) is not None


def hermes_version() -> str | None:
    """Hermes's version, None without Hermes. Imports nothing of it.

    It is what the code says: of a checkout that was updated in place the metadata may be old. Code
    that does not say it, as Hermes's from 0.21 on, has the version of its distribution.
    """
    said = _version_of_code()
    host = host_package() if said == UNKNOWN_VERSION else None
    return said if host is None else host.version


def _version_of_code() -> str | None:
    loaded = _version_of_loaded()
    if loaded is not None:
        return loaded
    spec = _spec()
    if spec is None:
        return None
    try:
        found = re.search(_VERSION, Path(spec.origin or "").read_bytes())
    except OSError:  # frozen, in an archive, without a file
        found = None
    return found[1].decode("ascii", "replace") if found else UNKNOWN_VERSION


def _version_of_loaded() -> str | None:
    try:
        said = getattr(sys.modules.get(PACKAGE), "__version__", None)
    except Exception:  # noqa: BLE001 - the host's own code computes it
        return None
    return said if isinstance(said, str) and said != _PLACEHOLDER else None


def _spec() -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):  # ValueError: a module without a spec
        return None


def _distributions() -> Iterator[Distribution]:
    """Hermes's usual one first: reading the metadata of all takes a while."""
    from importlib.metadata import distributions

    yield from distributions(name=DISTRIBUTION)
    yield from distributions()


def _owns(distribution: Distribution) -> bool:
    return any(re.search(line, _text(distribution, file)) for file, line in _OWNS.items())


def _text(distribution: Distribution, file: str) -> str:
    try:
        return distribution.read_text(file) or ""
    except (OSError, ValueError):  # ValueError: it is not UTF-8
        return ""


def _program(distribution: Distribution) -> str | None:
    named = re.search(_PROGRAM, _text(distribution, "entry_points.txt"))
    return named[1] if named else None
