"""`trust`: lets the extensions of a project run, exactly as they are now."""

from __future__ import annotations

from argparse import ArgumentParser

from hermes_ext.cli import _options
from hermes_ext.cli._trust_pages import trust as page
from hermes_ext.cli._trusting import trust as work
from hermes_ext.cli._values import digest

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    """What it takes."""
    _options.path(command, "a folder of the project")
    command.add_argument(
        "-y", "--yes", action="store_true", dest="ext_yes", help="do not ask, even in a terminal"
    )
    command.add_argument(
        "--full", action="store_true", dest="ext_full",
        help="cut nothing; of a project that was never trusted, show all files",
    )  # fmt: skip
    command.add_argument(
        "--expect", metavar="DIGEST", type=digest, dest="ext_expect",
        help="record it only if this is its digest",
    )  # fmt: skip
    only = command.add_mutually_exclusive_group()
    for look, told in (
        ("diff", "only show it; exit code 0 if it is trusted as it is, else 1"),
        ("digest", "only print the digest, for HERMES_EXT_TRUST"),
        ("list", "only list the projects that are trusted"),
    ):
        only.add_argument(f"--{look}", action="store_const", const=look, dest="ext_look", help=told)
