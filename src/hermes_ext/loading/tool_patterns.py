"""Patterns in `tools=` that no tool of the host can match."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from hermes_ext._values import frozen
from hermes_ext.chain.manager import normal
from hermes_ext.records import ExtensionRecord, HookInfo, Status

if TYPE_CHECKING:
    from hermes_ext.effects import ToolTable

_WILD: Final = "*?["
_SIGN: Final = r"(?s)\[!?\]?[^\]]*\]|."  # what matches one character


@frozen
class ToolNames:
    """The tools that a pattern can match.

    Attributes:
        table: the host's tools.
        present: tools that are there besides.
        complete: whether a name that neither has, and that is of no family, is surely not a tool's.
    """

    table: ToolTable
    present: frozenset[str] = frozenset()
    complete: bool = False

    def can_match(self, pattern: str) -> bool:
        """Whether a known tool, or one that comes while the host runs, has such a name."""
        wanted = normal(pattern)
        known = (*self.present, *self.table.names)
        return any(fnmatchcase(normal(each), wanted) for each in known) or any(
            _may_begin_with(wanted, family) for family in self.table.families
        )

    def is_dead(self, pattern: str) -> bool:
        """Whether a pattern surely matches nothing: no plugin that is not seen can bring it."""
        return not self.can_match(pattern) and (self.complete or self.meant(pattern) is not None)

    def meant(self, pattern: str) -> str | None:
        """`Did you mean "terminal"?` for the nearest tool, or None if nothing is near."""
        near = self.table.nearest(normal(pattern).strip(_WILD))
        return None if near is None else f'Did you mean "{near}"?'

    def dead_guard(self, info: HookInfo) -> str | None:
        """What is wrong with a guard that is never called, because no tool has such a name."""
        if not (info.guard and info.tools and all(map(self.is_dead, info.tools))):
            return None
        written = ", ".join(f'"{pattern}"' for pattern in info.tools)
        hints = " ".join(filter(None, dict.fromkeys(map(self.meant, info.tools))))
        host = self.table.host
        told = f"the guard {info.handler} ({info.file}:{info.line}) can match no tool of {host}"
        return f"{told}: tools=[{written}]" + (f". {hints}" if hints else "")


def _may_begin_with(pattern: str, family: str) -> bool:
    """Whether a pattern can match a name of a family, such as `mcp_*`."""
    head, star, _ = pattern.partition("*")
    signs = re.findall(_SIGN, head)
    return all(map(fnmatchcase, family, signs)) and (star != "" or len(signs) >= len(family))


def dead_guards(
    records: Iterable[ExtensionRecord],
    table: Callable[[], ToolTable],
    names: Callable[[], Collection[str]],
) -> Iterator[str]:
    """A line for each guard that is loaded and can match none of the tools.

    table, names: the host's tools, and those of this process (none where that is not known); asked
    only if a guard is limited to some.
    """
    limited = [
        (record, info)
        for record in records
        if record.status is Status.ENABLED
        for info in record.hooks
        if info.guard and info.tools
    ]
    if not limited:
        return
    known = frozenset(names())
    tools = ToolNames(table(), known, complete=bool(known))
    for record, info in limited:
        told = tools.dead_guard(info)
        if told is not None:
            yield f"extension {record.name} is not in force here: {told}"
