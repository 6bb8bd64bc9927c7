"""The tools of a host: how they are called, and what each does with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeAlias

from attrs import Factory, field, frozen

Reading: TypeAlias = Callable[..., None]
"""Announces what a call touches. Called with the tool's name, its arguments, and the `Recorder`."""


class ToolKind(StrEnum):
    """What a tool is for, as far as extensions ask.

    `write` is whole files, `edit` parts of files; `input` types to programs that are running;
    `harmless` changes no file.
    """

    READ = "read"
    SEARCH = "search"
    WRITE = "write"
    EDIT = "edit"
    SHELL = "shell"
    CODE = "code"
    INPUT = "input"
    HARMLESS = "harmless"
    OTHER = "other"


@frozen
class Does:
    """What a tool does; `hermes_ext.effects.readings` makes the usual ones.

    Attributes:
        announce: tells a `Recorder` what one call touches.
        kind: what the tool is for.
    """

    announce: Reading
    kind: ToolKind = ToolKind.OTHER


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split() if isinstance(value, str) else value)


def normal(name: str) -> str:
    """A tool's name as it is looked up: without case and surrounding blanks."""
    return name.strip().casefold()


@frozen
class Tool:
    """A row of a `ToolTable`.

    Several names are given as one text with blanks between them, or as a tuple.

    Attributes:
        name: the tool's name.
        does: what it does.
        aliases: other names that the host has for it, such as those of newer versions.
        synonyms: names that no tool of the host has. A call or a setting that uses one means
            this tool.
        words: other agents' names for such a tool. They only help to say what was meant.
        parameters: its positional parameters, where the host's `ToolTable.module` has it as a
            function; None where it does not.
    """

    name: str
    does: Does
    aliases: tuple[str, ...] = field(default=(), converter=_names, kw_only=True)
    synonyms: tuple[str, ...] = field(default=(), converter=_names, kw_only=True)
    words: tuple[str, ...] = field(default=(), converter=_names, kw_only=True)
    parameters: str | None = field(default=None, kw_only=True)

    @property
    def kind(self) -> ToolKind:
        """What it is for."""
        return self.does.kind


def _by_name(rows: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for row in rows:
        for name in map(normal, (row.name, *row.aliases, *row.synonyms)):
            if found.setdefault(name, row) is not row:
                raise ValueError(f"two tools are called {name!r}: {found[name].name}, {row.name}")
    return found


@frozen(eq=False)
class ToolTable:
    """The tools of a host.

    `table[name]` and `table.get(name)` are the row that a call of this name is read by; `in` asks
    whether there is one; iterating gives the rows.

    Attributes:
        rows: the tools.
        families: beginnings of the names of tools that come while the host runs: `mcp_`.
        module: the module that Python code run by a tool calls the host's tools by; "" for none.
        functions: names in that module that call no tool.
        home_variable: the variable with the host's own folder, which commands know; "" for none.
        programs_home: what in that folder, if it is there, may be `~` to the programs it starts.
        host: the host's name, for messages.

    Raises:
        ValueError: two tools have the same name.
    """

    rows: tuple[Tool, ...]
    families: tuple[str, ...] = field(default=(), converter=_names, kw_only=True)
    module: str = field(default="", kw_only=True)
    functions: tuple[str, ...] = field(default=(), converter=_names, kw_only=True)
    home_variable: str = field(default="", kw_only=True)
    programs_home: str = field(default="", kw_only=True)
    host: str = field(default="the host", kw_only=True)
    _by_name: Mapping[str, Tool] = field(
        init=False, repr=False, default=Factory(lambda table: _by_name(table.rows), takes_self=True)
    )

    def get(self, name: str) -> Tool | None:
        """The tool that a call of `name` means; None for one that is not in the table."""
        return self._by_name.get(normal(name))

    def __getitem__(self, name: str) -> Tool:
        return self._by_name[normal(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a tool of the host has."""
        return tuple(name for row in self.rows for name in (row.name, *row.aliases))

    def kind_of(self, name: str) -> ToolKind:
        """What a tool is for; `other` for one that is not in the table."""
        row = self.get(name)
        return ToolKind.OTHER if row is None else row.kind

    def of(self, *kinds: ToolKind | str) -> tuple[Tool, ...]:
        """The tools of these kinds."""
        return tuple(row for row in self.rows if row.kind in kinds)

    def matches(self, name: str, patterns: Iterable[str]) -> bool:
        """Whether a pattern (`browser_*`) matches a tool's name, or is another name of it."""
        called = self.get(name)
        return any(
            fnmatchcase(normal(name), normal(each))
            or (called is not None and self.get(each) is called)
            for each in patterns
        )

    def nearest(self, name: str) -> str | None:
        """The tool that was probably meant by a name; None if nothing is near."""
        import difflib

        wanted = normal(name).replace("-", "_")
        meant = {
            word: row.name for row in self.rows for word in map(normal, (*row.synonyms, *row.words))
        }
        if wanted in meant:
            return meant[wanted]
        known = {normal(each): each for each in self.names}
        known |= {normal(each): row.name for row in self.rows for each in row.synonyms}
        near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.7)
        return known[near[0]] if near else None
