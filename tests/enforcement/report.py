"""The table of ways for the docs, with what came of each when this was run.

python -m tests.enforcement.report > docs/enforcement.md

With `--expected` nothing is driven: the page has what has to come of each way, as the tests hold.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from tests.enforcement.groups import GROUPS
from tests.enforcement.table import Group, Tried, Way, drive

HEAD = """\
# Ways around a guard

Each way is driven in the real Hermes twice: with a guard that refuses whatever says "evil", and
with our plugin taken out. With the guard nothing evil may happen, and the agent must be able to go
on; without it the same way does evil, or it would be no way at all. Where Hermes itself closes a
way, the table says why; it must not be opened by us either. Where the newest code of Hermes differs
from the newest release, the table says both.

`python -m tests.enforcement.report` makes this page; `pytest tests/enforcement` tries each line.
"""


def page(found: Mapping[str, tuple[Mapping[str, Tried], Mapping[str, Tried]]]) -> str:
    """The page. found: by group, what came of its ways with the guard and without."""
    parts = [HEAD, summary(found)]
    for group in GROUPS:
        with_guard, without = found[group.key]
        parts.append(f"## {group.title}\n")
        more = any(way.how for way in group.ways)
        heads = ["Way", *(["How it is driven"] if more else []), "With the guard", "Without"]
        parts.append(line(heads) + "\n" + "|---" * len(heads) + "|")
        for way in group.ways:
            held, done = results(way, with_guard[way.name], without[way.name])
            parts.append(line([way.name, *([way.how] if more else []), held, done]))
        parts.append("")
        if group.notes:
            parts.append(dedent(group.notes).strip() + "\n")
    return "\n".join(parts)


def line(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def results(way: Way, with_guard: Tried, without: Tried) -> tuple[str, str]:
    """What came of a way with the guard and without, in words."""
    held = "nothing evil" if not with_guard.evil else "**EVIL DONE**"
    if not with_guard.goes_on:
        held += ", and the agent does not go on"
    if with_guard.wrong:
        held += f", but: {'; '.join(with_guard.wrong)}"
    done = "evil done" if without.evil else f"nothing: {way.closed}"
    if way.closed_newer is None:
        return held, done
    newer = f"nothing: {way.closed_newer}" if way.closed_newer else "evil done"
    return held, f"{done}; in newer code {newer}"


def summary(found: Mapping[str, tuple[Mapping[str, Tried], Mapping[str, Tried]]]) -> str:
    """How many ways there are, and what came of them."""
    with_guard = [each for held, _ in found.values() for each in held.values()]
    without = [each for _, done in found.values() for each in done.values()]
    through = sum(1 for each in with_guard if each.evil)
    evil = sum(1 for each in without if each.evil)
    return (
        f"**{len(with_guard)} ways. With the guard {through or 'none'} came through; without it "
        f"{evil} did evil, and {len(without) - evil} are closed by Hermes itself.**\n"
    )


def main() -> int:
    """Drive all ways, and print the page."""
    if sys.argv[1:] == ["--expected"]:
        print(page({group.key: expected(group) for group in GROUPS}), end="")
        return 0
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
