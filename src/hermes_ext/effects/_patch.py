"""The files that a patch in the V4A form names, split as the parsers of agents split it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from attrs import frozen


class NotUnderstood(Exception):  # noqa: N818 - an answer, which becomes part of a message
    """A line that looks like a header and is none."""


@frozen
class Edit:
    """What a patch does with one file. to: where it is moved."""

    verb: Literal["add", "update", "delete", "move"]
    path: str
    to: str = ""


_FILE: Final = re.compile(r"\*\*\*\s*(Update|Add|Delete)\s+File:\s*(.+)")
_MOVE: Final = re.compile(r"\*\*\*\s*Move\s+File:\s*(.+?)\s*->\s*(.+)")
_MOVE_TO: Final = re.compile(r"\*\*\*\s*Move\s+to:\s*(.+)")
_NO_FILE: Final = re.compile(r"\*\*\*\s*(?:Begin Patch|End Patch|End of File)\s*")


def edits_of(patch: str) -> Iterator[Edit]:
    """Every edit of a patch, in order; NotUnderstood where a line only begins as a header does."""
    last = ""
    # A carriage return or a form feed ends no line there.
    for line in patch.split("\n"):
        if not line.startswith("***"):
            continue  # of a file's content: such a line begins with a space, a plus or a minus
        if found := _FILE.match(line):
            last = found[2].strip()
            yield Edit(found[1].lower(), last)  # type: ignore[arg-type] # the three of the pattern
        elif found := _MOVE.match(line):
            yield Edit("move", found[1].strip(), found[2].strip())
        elif found := _MOVE_TO.match(line):  # of other agents, below "Update File"
            yield Edit("move", last, found[1].strip())
        elif not _NO_FILE.fullmatch(line):
            raise NotUnderstood(line)
