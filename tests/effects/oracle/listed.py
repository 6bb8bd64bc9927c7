"""Each option that the data lists for usual readers, with the values that agents might give it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from hermes_ext.effects._knowledge import Entry, Knowledge

__all__ = ["LISTED", "LISTED_OF_GIT"]

# `tail` is left out, which waits with `-f`, and so is what writes with most of its options.
_READERS: Final = """
basename cat cksum cmp column comm cut df diff du expand file fmt fold grep head hexdump join ls
md5sum nl nm numfmt objdump od paste pr readelf readlink realpath rev sha256sum shuf sort stat
strings tac tr tsort unexpand uniq wc xxd
"""
_OF_GIT: Final = """
blame cat-file describe diff diff-tree for-each-ref grep log ls-files ls-tree merge-base reflog
rev-list rev-parse shortlog show show-ref status
"""
_VALUES: Final = ("«new»", "3", "«word»")


def _templates(form: str, entry: Entry | None, operands: tuple[str, ...]) -> Iterator[str]:
    for place, option in enumerate(() if entry is None else entry.table.options):
        for number, name in enumerate(option.names, place):
            start = f"{form} {shlex.quote(name)}"
            operand = operands[number % len(operands)]
            if not option.values:
                yield f"{start} {operand} < /dev/null"
                continue
            value = _VALUES[number % len(_VALUES)]
            glue = "=" if name.startswith("--") and number % 2 else " "
            yield f"{start}{glue}{value} {operand} < /dev/null"


_DATA: Final = Knowledge.bundled()
LISTED: Final = tuple(
    template
    for name in _READERS.split()
    for template in _templates(name, _DATA.get(name), ("«file»", "«file» «new»", "x «folder»"))
)
_GIT: Final = _DATA.get("git")
LISTED_OF_GIT: Final = tuple(
    template
    for name in _OF_GIT.split()
    for template in _templates(
        f"git {name}", _GIT and _GIT.subcommand(name), ("HEAD", "-- «file»", "", "«new»")
    )
)
