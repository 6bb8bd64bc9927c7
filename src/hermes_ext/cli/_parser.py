"""The parser of the command line: the names of all commands, the arguments of the one that is asked
for.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from hermes_ext.__about__ import __version__
from hermes_ext.cli import _options
from hermes_ext.cli._commands import COMMANDS, command

_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")
_COMPLETING = "_ARGCOMPLETE" in os.environ


def parse(argv: Sequence[str] | None, prog: str) -> argparse.Namespace | int:
    """What is asked for; an exit code where nothing is to be done, or the usage is wrong."""
    parser = Parser(
        prog=prog, description="Runtime extensions: rules of your own in the agent's loop."
    )
    parser.add_argument("--version", action="version", version=f"{prog} {__version__}")
    add_commands(parser)
    if _COMPLETING:
        from hermes_ext.cli import _completion

        _completion.complete(parser)
    try:
        return parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Fills a parser with the commands.

    Every name it leaves in the namespace begins with `ext_`, so that it meets none of a host's.
    """
    parser.set_defaults(ext_help=parser.format_help)
    commands = parser.add_subparsers(
        dest="ext_command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    for name, told in COMMANDS.items():
        commands.add_parser(name, help=told).command = name
    # What parses and completes looks there; `choices` is what lists them.
    commands._name_parser_map = _WithArguments(commands._name_parser_map)


class Parser(argparse.ArgumentParser):
    """Says of which command a usage is wrong, as JSON where that was asked for.

    Attributes:
        command: whose parser it is, while it has none of its arguments yet; else None.
    """

    command: str | None = None
    _as_json = False

    def with_arguments(self) -> Parser:
        """The same, with the arguments of its command."""
        name, self.command = self.command, None
        if name is not None:
            _options.common(self)
            command(name).arguments(self)
            if _COMPLETING:
                from hermes_ext.cli import _completion

                _completion.offer(self)
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        self._as_json = "--json" in given
        parsed, extra = super().parse_known_args(given, namespace)
        if extra:  # the parser of a command would leave them to the one above, which knows no usage
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return parsed, extra

    def error(self, message: str) -> NoReturn:
        from hermes_ext._problems import did_you_mean
        from hermes_ext.cli._request import usage_error

        wrong_choice = _WRONG_CHOICE.search(message)
        if wrong_choice is not None:
            near = did_you_mean(wrong_choice[1], re.findall(r"[\w-]+", wrong_choice[2]))
            message += f". {near}" if near else ""
        if not self._as_json:
            super().error(message)
        usage = " ".join(self.format_usage().split())
        sys.stdout.write(usage_error(self.prog, message, usage))
        self.exit(2)


class _WithArguments(dict[str, Parser]):
    """Parsers by command, each of which gets its arguments when it is asked for."""

    def __getitem__(self, name: str) -> Parser:
        return super().__getitem__(name).with_arguments()
