"""Which functions each proven Hermes has wrapped: the table of docs/hermes.md.

Its rows are those of `seams`; which release has which is noted in `wraps.json`.
`python -m tests.hermes.wraps` notes it of the installed release, and writes the table.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from pathlib import Path
from typing import Final

from tests.hermes.versions import HOSTS, PAGE, installed

from hermes_ext.hosts.hermes.adapter.wraps.seams import SEAMS, Seam

NOTED: Final = Path(__file__).with_name("wraps.json")
_BEGIN: Final = "<!-- Made by tests/hermes/wraps.py: edit there, and in seams.py. -->\n"
_END: Final = "<!-- The end of the wrapped functions. -->\n"


def noted() -> dict[str, list[str]]:
    """The full names of the wrapped functions, by the id of each release that was looked at."""
    return dict(json.loads(NOTED.read_text(encoding="utf-8")))


def wrapped_here() -> list[str]:
    """Those of the installed Hermes, once all of its modules are imported."""
    from hermes_ext.hosts.hermes.adapter.wraps.attaching import attach, standings

    importlib.import_module("run_agent")  # first, as Hermes does: its imports are circular
    for seam in SEAMS:
        with contextlib.suppress(ImportError) if seam.newer else contextlib.nullcontext():
            importlib.import_module(seam.module)
    attach()
    return [str(each.seam) for each in standings() if each.status == "attached"]


def table() -> str:
    """A row for each function, and how many there are of each kind."""
    found = noted()
    ids = [host.id for host in HOSTS if host.id in found]
    head = ["function of Hermes", "wrapped for", *ids, "why nothing published serves"]
    rows = [head, ["---"] * len(head), *(_row(seam, ids, found) for seam in SEAMS)]
    for rule, kind in ((True, "hold a rule"), (False, "are for convenience")):
        names = {str(seam) for seam in SEAMS if seam.rule is rule}
        counts = [str(len(names.intersection(found[each]))) for each in ids]
        rows.append([f"**how many {kind}**", "", *counts, ""])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(seam: Seam, ids: list[str], found: dict[str, list[str]]) -> list[str]:
    marks = ["x" if str(seam) in found[each] else "" for each in ids]
    return [f"`{seam}`", seam.purpose, *marks, seam.why or "newer code has no need of it"]


def page(text: str) -> str:
    """The docs' page with the table of today."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    here = installed()
    assert here is not None, "this is no release of tests/hermes/versions.py"
    every = {**(noted() if NOTED.exists() else {}), here.id: wrapped_here()}
    order = {host.id: every[host.id] for host in HOSTS if host.id in every}
    NOTED.write_text(json.dumps(order, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
