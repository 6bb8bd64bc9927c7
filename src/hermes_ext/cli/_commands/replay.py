"""`replay`: runs recorded events through the extensions of today."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from hermes_ext.cli import _options
from hermes_ext.cli._loading import REPLAY_SECONDS
from hermes_ext.cli._trying import replay as work
from hermes_ext.cli._trying_pages import replay as page
from hermes_ext.cli._values import at_least_one

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "ext_path", metavar="LOG", type=Path, nargs="?",
        help="a decision log with payloads (default: the Hermes home's); - is standard input",
    )  # fmt: skip
    command.add_argument(
        "--config", metavar="FILE", type=Path, dest="ext_config",
        help="take the settings from this file instead of the home's config.yaml",
    )  # fmt: skip
    command.add_argument(
        "--turn", metavar="ID", dest="ext_query_turn", help="only of this turn; its begin is enough"
    )
    command.add_argument(
        "--limit", metavar="N", type=at_least_one, default=0, dest="ext_limit",
        help="only the newest N (default: all)",
    )  # fmt: skip
    _options.filters(command, actions=False)
    _options.deadline(command, REPLAY_SECONDS)
