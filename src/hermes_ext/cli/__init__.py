"""The commands: `hermes-ext …`, `hermes extensions …` and `/extensions …`. Prints, decides nothing.

Exit codes: 0, 1 (something wrong was found), 2 (wrong usage). With `--json` stdout is one JSON
value and nothing else.
"""

from __future__ import annotations

from hermes_ext.cli._app import main, run
from hermes_ext.cli._arguments import add_commands
from hermes_ext.cli._slash import slash

__all__ = ["add_commands", "main", "run", "slash"]
