"""`log`: the newest lines of the decision log."""

from __future__ import annotations

from argparse import ArgumentParser

from hermes_ext.cli import _options
from hermes_ext.cli._decisions import SHOWN
from hermes_ext.cli._log import log as work
from hermes_ext.cli._log_pages import log as page
from hermes_ext.cli._values import count

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    """What it takes."""
    command.add_argument(
        "-n", "--last", metavar="N", type=count, default=SHOWN, dest="ext_query_last",
        help="how many lines (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "-f", "--follow", action="store_true", dest="ext_query_follow",
        help="go on with each new line, until Ctrl-C; with --json one JSON object per line",
    )  # fmt: skip
    command.add_argument(
        "--turn", metavar="ID", dest="ext_query_turn", help="only of this turn; its begin is enough"
    )
    _options.filters(command)
