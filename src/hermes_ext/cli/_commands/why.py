"""`why`: who decided what and why."""

from __future__ import annotations

from argparse import ArgumentParser

from hermes_ext.cli import _options
from hermes_ext.cli._log import why as work
from hermes_ext.cli._log_pages import why as page

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    """What it takes."""
    command.add_argument(
        "ext_query_turn", metavar="TURN", nargs="?", default="last",
        help="how the id of a turn begins (default: last, the last decision of all)",
    )  # fmt: skip
    _options.filters(command)
