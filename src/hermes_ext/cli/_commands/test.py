"""`test`: runs an extension's handlers on events, without a model and without a tool."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from hermes_ext.cli import _options
from hermes_ext.cli._trying import test as work
from hermes_ext.cli._trying_pages import test as page
from hermes_ext.cli._values import hook

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "ext_name", metavar="NAME", help="its name, or the path of its folder or file"
    )
    events = command.add_mutually_exclusive_group()
    events.add_argument(
        "--event", metavar="FILE", type=Path, dest="ext_event",
        help="on the events of a JSON or YAML file instead of samples; - is standard input",
    )  # fmt: skip
    events.add_argument(
        "--last", action="store_true", dest="ext_last",
        help="on the newest event of the decision log that it is called for",
    )  # fmt: skip
    command.add_argument(
        "--hook", metavar="HOOK", type=hook, dest="ext_hook", help="only its handlers for this hook"
    )
    command.add_argument(
        "--chain", action="store_true", dest="ext_chain",
        help="as part of the whole chain, with everything else that is on",
    )  # fmt: skip
    _options.deadline(command)
