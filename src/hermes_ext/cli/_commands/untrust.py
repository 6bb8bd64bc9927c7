"""`untrust`: stops trusting the extensions of a project."""

from __future__ import annotations

from argparse import ArgumentParser

from hermes_ext.cli import _options
from hermes_ext.cli._commands.trust import untrust as work
from hermes_ext.cli._trust_pages import untrust as page

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    _options.path(command, "the project, or where it was")
