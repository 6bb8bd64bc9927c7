"""Which functions each Hermes has wrapped: the table of docs/hermes.md.

Its rows are those of `seams`; which Hermes has which is noted in `wraps.json`.
`python -m tests.hermes.wraps` notes it of the installed Hermes and writes the table.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Final

from hermes_ext.hosts.hermes.seams import SEAMS

NOTED: Final = Path(__file__).with_name("wraps.json")
PAGE: Final = Path(__file__).parents[2] / "docs" / "hermes.md"

_BEGIN: Final = "<!-- Made by tests/hermes/wraps.py: edit there. -->\n"
_END: Final = "<!-- The end of what is made. -->\n"


def noted() -> dict[str, list[str]]:
    """The names of the wrapped functions, for each version that was looked at."""
    return dict(json.loads(NOTED.read_text(encoding="utf-8")))


def wrapped_here() -> list[str]:
    """Those of the installed Hermes, once all of its modules are imported."""
    from hermes_ext.hosts.hermes.attaching import attach, standings

    importlib.import_module("run_agent")  # first, as Hermes does: its imports are circular
    for seam in SEAMS:
        importlib.import_module(seam.module)
    attach()
    return [str(each.seam) for each in standings() if each.status == "attached"]
