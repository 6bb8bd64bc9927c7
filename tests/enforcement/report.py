"""The table of ways for the docs, with what came of each when this was run.

python -m tests.enforcement.report > docs/enforcement.md
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.enforcement.groups import GROUPS
from tests.enforcement.table import Group, Tried, Way, drive

HEAD = """\
# Ways around a guard

Each way is driven in the real Hermes twice: with a guard that refuses whatever says "evil", and
with our plugin taken out. With the guard nothing evil may happen, and the agent must be able to go
on; without it the same way does evil, or it would be no way at all. Where Hermes itself closes a
way, the table says why; it must not be opened by us either.

`python -m tests.enforcement.report` makes this page; `pytest tests/enforcement` tries each line.
"""


def page(found: Mapping[str, tuple[Mapping[str, Tried], Mapping[str, Tried]]]) -> str:
    """The page. found: by group, what came of its ways with the guard and without."""
    parts = [HEAD]
    for group in GROUPS:
        with_guard, without = found[group.key]
        parts.append(f"## {group.title}\n")
        parts.append("| Way | With the guard | Without |\n|---|---|---|")
        parts += [row(way, with_guard[way.name], without[way.name]) for way in group.ways]
        parts.append("")
    return "\n".join(parts)


def row(way: Way, with_guard: Tried, without: Tried) -> str:
    """One line of the table."""
    held = "nothing evil" if not with_guard.evil else "**EVIL DONE**"
    if not with_guard.goes_on:
        held += ", and the agent does not go on"
    done = "evil done" if without.evil else f"nothing: {way.closed}"
    return f"| {way.name} | {held} | {done} |"


def main() -> int:
    """Drive all ways, and print the page."""
    found = {}
    with tempfile.TemporaryDirectory() as base:
        for group in GROUPS:
            print(f"{group.key}: {len(group.ways)} ways", file=sys.stderr, flush=True)
            found[group.key] = (
                drive(group, Path(base, group.key, "with"), guarded=True),
                drive(group, Path(base, group.key, "without"), guarded=False),
            )
    print(page(found), end="")
    return 0


def expected(group: Group) -> tuple[Mapping[str, Tried], Mapping[str, Tried]]:
    """What has to come of a group's ways."""
    with_guard = {way.name: Tried((), True, "") for way in group.ways}
    without = {way.name: Tried(() if way.closed else ("evil",), True, "") for way in group.ways}
    return with_guard, without


if __name__ == "__main__":
    sys.exit(main())
