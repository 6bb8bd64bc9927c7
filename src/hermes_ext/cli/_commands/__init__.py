"""The commands: a name and a sentence here, and a module of that name with all the rest.

`--help` and completion read the names and sentences; only the command that is asked for is
imported.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

if TYPE_CHECKING:
    from hermes_ext.cli._page import Page
    from hermes_ext.cli._request import Request, Result

COMMANDS: Final[Mapping[str, str]] = {
    "list": "what is installed, and whether it is on",
    "enable": "turn an extension on in config.yaml",
    "disable": "turn an extension off in config.yaml",
    "info": "one extension: its requirements, hooks and settings",
    "doctor": "load everything in a child process and check it; try the hooks in the real Hermes",
    "trust": "let the extensions of a project run, exactly as they are now; shows them first",
    "untrust": "stop trusting the extensions of a project",
    "why": "who decided what and why: the last decision, or all of a turn",
    "log": "the newest lines of the decision log",
    "new": "write an extension to begin with, and its test",
    "test": "run an extension's handlers on sample or recorded events; no model, no tool",
    "replay": "run recorded events through today's extensions: which verdicts changed",
    "install": "put the plugin into a Hermes home's plugins.enabled",
    "uninstall": "take the plugin out; extensions stay where they are",
    "completion": 'print what turns completion on: eval "$(hermes-ext completion bash)"',
}


class Command(Protocol):
    """What the module of a command has."""

    def arguments(self, command: ArgumentParser, /) -> None:
        """Adds what it takes, beside what all take. Each `dest` is `ext_` and a `Request` field."""

    def work(self, request: Request, /) -> Result:
        """Does what was asked: an exit code, and the value that `--json` prints."""

    def page(self, payload: Mapping[str, Any], page: Page, /) -> None:
        """Writes that value for a person."""


def command(name: str) -> Command:
    """The module of a command."""
    return cast(Command, import_module(f"{__name__}.{name}"))
