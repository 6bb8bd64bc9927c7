"""Where a call runs: its directory, what `~` stands for, and where paths lead."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from attrs import evolve, field, frozen

if TYPE_CHECKING:
    from hermes_ext.effects._knowledge import Knowledge
    from hermes_ext.effects._table import ToolTable

# Those that shells are started with, and that hardly anything sets to something else.
_KNOWN_VARIABLES: Final = ("LOGNAME", "TMPDIR", "USER")
_MOST_LINKS: Final = 40
_LONGEST: Final = 4_096  # characters of a path; the system takes no longer one
_DEEPEST: Final = 256  # directories of a path


@lru_cache(maxsize=8)
def _homes(of_environment: str) -> tuple[str, ...]:
    found = [of_environment] if of_environment else []
    if not found and sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.normpath(each) for each in found if os.path.isabs(each)))


@frozen
class Machine:
    """Where the tools of a session run.

    Attributes:
        cwd: where relative paths start; None where the host does not know it.
        homes: what `~` and `$HOME` may stand for; by default the user's home, by the environment
            or else by the password database.
        environ: variables whose values are known to commands; None for a few of this process.
        local: whether the tools run on this machine; if not, paths are taken by their names.
        commands: what is known of commands; None for what comes with the package.
        tools: the host's tools; None for those of the event.
        schema: the JSON Schema of the tool's arguments, where the host has one.
        read_only_tools: names, or patterns such as `mcp__docs__*`, of tools that the user says only
            read.
        trusts: asked about the words of a program that a shell would start: whether it is taken as
            one that changes nothing. Only asked where each word is known, no variable is set for
            the program and it is given no input; None for no such program.
    """

    cwd: Path | None = None
    homes: tuple[str, ...] = field(factory=lambda: _homes(os.environ.get("HOME", "")))
    environ: Mapping[str, str] | None = None
    local: bool = True
    commands: Knowledge | None = None
    tools: ToolTable | None = None
    schema: Mapping[str, Any] | None = None
    read_only_tools: tuple[str, ...] = ()
    trusts: Callable[[Sequence[str]], bool] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """`environ`; where it is not given, the usual variables and the host's own."""
        if self.environ is not None:
            return self.environ
        names = (*_KNOWN_VARIABLES, "" if self.tools is None else self.tools.home_variable)
        return {name: os.environ[name] for name in names if name in os.environ}

    def at(self, cwd: Path | None, schema: Mapping[str, Any] | None = None) -> Self:
        """The same machine with another directory and tool."""
        return evolve(self, cwd=cwd, schema=schema)

    def resolve(self, path: str | Path, base: Path | None = None) -> Path:
        """A path as `Effects` names it: absolute, `~` replaced, links resolved.

        Args:
            path: as a person or a setting writes it.
            base: where it starts if it is relative; `cwd` by default.
        """
        text = os.fspath(path)
        if text == "~" or text.startswith("~/"):
            text = (self.homes[0] if self.homes else "/") + text[1:]
        start = base or self.cwd or Path("/")
        return Path(places_of(os.path.join(start, text), local=self.local).leads_to)


class Places(NamedTuple):
    """What a path means.

    own: where its name stands. leads_to: where it leads. They differ for a link: removing takes the
    link away, writing changes what it leads to. sure: False where that depends on the process that
    asks (anything in /proc), on links without end, or is too long to be looked up.
    """

    own: str
    leads_to: str
    sure: bool = True


def places_of(
    path: str, *, local: bool = True, links: Mapping[str, str | None] | None = None
) -> Places:
    """What an absolute path means, on the disk as it is now.

    links: targets of links that are there besides; None for one that is there no more.
    """
    made = links or {}
    parts = path.replace("\0", "\ufffd").split("/")
    while parts and parts[-1] in ("", "."):
        parts.pop()
    too_long = len(path) > _LONGEST or len(parts) > _DEEPEST
    if too_long or not local:
        plain = os.path.normpath("/".join(parts) or "/")
        return Places(plain, plain, sure=not too_long)
    if not parts or parts[-1] == "..":
        leads_to, sure = _followed("", parts, made)
        own = leads_to
    else:
        above, sure = _followed("", parts[:-1], made)
        own = f"{above}/{parts[-1]}"
        leads_to, still = _followed(above, parts[-1:], made)
        sure = sure and still
    own, leads_to = own or "/", leads_to or "/"
    if _folds_names():
        return Places(_as_on_disk(own), _as_on_disk(leads_to), sure)
    return Places(own, leads_to, sure)


def _followed(start: str, parts: Sequence[str], made: Mapping[str, str | None]) -> tuple[str, bool]:
    """Where the parts of a path lead from a place that is no link (the root is "")."""
    at, sure, links = start, True, 0
    ahead = list(reversed(parts))
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        at = f"{at}/{part}"
        sure = sure and not at.startswith("/proc/")
        target = made[at] if at in made else _target(at)
        if target is None:
            continue
        links += 1
        if links > _MOST_LINKS:
            return at, False
        at = "" if target.startswith("/") else at.rpartition("/")[0]
        ahead += reversed(target.split("/"))
    return at, sure


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):  # no link, or no name that a file can have
        return None


@lru_cache(maxsize=1)
def _folds_names() -> bool:
    """Whether the usual file systems here take other spellings for the same name."""
    return sys.platform in ("darwin", "win32")


def _as_on_disk(path: str) -> str:
    """A path with those names that are there spelt as the disk has them."""
    head, tail = os.path.split(path)
    if not tail or head == path:
        return path
    above = _as_on_disk(head)
    if os.path.lexists(os.path.join(above, tail)):
        try:
            names = os.listdir(above)
        except OSError:
            return os.path.join(above, tail)
        if tail not in names:
            wanted = same_name(tail)
            tail = next((name for name in names if same_name(name) == wanted), tail)
    return os.path.join(above, tail)


def upwards(folder: str) -> Iterator[str]:
    """A directory, and all that are above it."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield (folder := above)


def same_name(name: str) -> str:
    """A name as file systems compare it that do not regard case and composition."""
    return unicodedata.normalize("NFC", name).casefold()
