"""The commands: `hermes-ext …`, `hermes extensions …` and `/extensions …`. Prints, decides nothing.

Exit codes: 0, 1 (something wrong was found), 2 (wrong usage). With `--json` stdout is one JSON
value and nothing else.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is imported by those who need it: `--version` does not
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from hermes_ext.runtime import Runtime

__all__ = ["add_commands", "main", "run", "slash"]

PROG = "hermes-ext"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hermes-ext` with these arguments (default: the process's) and returns the exit code."""
    if [*(sys.argv[1:] if argv is None else argv)] == ["--version"]:
        from hermes_ext.__about__ import __version__

        sys.stdout.write(f"{PROG} {__version__}\n")
        return 0
    from hermes_ext.cli._parser import parse

    args = parse(argv, PROG)
    return args if isinstance(args, int) else run(args)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Fills a parser with the commands; `run` takes the namespace that it parses."""
    from hermes_ext.cli import _parser

    _parser.add_commands(parser)


def run(args: argparse.Namespace, *, prog: str = PROG) -> int:
    """Runs the command in `args` and returns the exit code; prints to stdout, errors to stderr.

    `prog` is how the user calls these commands, for what is printed about the next step.
    """
    from hermes_ext.cli import _app

    return _app.run(args, prog)


def slash(
    raw_args: str,
    *,
    home: Path | None = None,
    cwd: Path | None = None,
    live: Runtime | None = None,
    session: str | None = None,
) -> str:
    """What `/extensions …` answers in a chat: plain text, and nothing is ever changed.

    home: default `hermes_home()`. cwd: the session's directory, None where it has none. live: the
    runtime of this process, whose extensions are shown; None where none is loaded: the files'.
    session: the only one whose decisions are shown; None where it is not known: none are.
    """
    from hermes_ext.cli import _slash

    return _slash.slash(raw_args, home=home, cwd=cwd, live=live, session=session)
