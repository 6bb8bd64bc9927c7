"""Options that several commands take."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from hermes_ext.cli._values import action, home, hook, seconds, since

# One import may take 20 s before the loader gives it up; a few of those and their start-up fit in.
LOAD_SECONDS: Final = 90.0


def common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json", action="store_true", dest="ext_json", help="print one JSON value, nothing else"
    )
    command.add_argument(
        "--home", metavar="PATH", type=home, dest="ext_home",
        help="the Hermes home (default: $HERMES_HOME, else ~/.hermes)",
    )  # fmt: skip


def name(command: argparse.ArgumentParser) -> None:
    command.add_argument("ext_name", metavar="NAME", help="its name, as list has it")


def filters(command: argparse.ArgumentParser, *, actions: bool = True) -> None:
    """Which lines of the decision log."""
    add = command.add_argument
    add(
        "--session",
        metavar="ID",
        dest="ext_query_session",
        help="only of this; its begin is enough",
    )
    add("--hook", metavar="HOOK", type=hook, dest="ext_query_hook", help="only of this hook")
    add(
        "--extension", metavar="NAME", dest="ext_query_extension",
        help="only where this extension took part",
    )  # fmt: skip
    if actions:
        add(
            "--action", metavar="ACTION", type=action, dest="ext_query_action",
            help="only what came to this; error: where a handler failed",
        )  # fmt: skip
    add(
        "--since", metavar="WHEN", type=since, dest="ext_query_since",
        help="only since then: 30m, 2h, 3d, or a date and time",
    )  # fmt: skip


def path(command: argparse.ArgumentParser, what: str) -> None:
    """A folder; the working directory where none is named."""
    command.add_argument(
        "ext_path", metavar="PATH", type=Path, nargs="?",
        help=f"{what} (default: the working directory)",
    )  # fmt: skip


def deadline(command: argparse.ArgumentParser, default: float = LOAD_SECONDS) -> None:
    command.add_argument(
        "--deadline", metavar="SECONDS", type=seconds, default=default, dest="ext_deadline",
        help="how long it may take (default: %(default)g)",
    )  # fmt: skip


def home_of(args: argparse.Namespace) -> Path:
    """The Hermes home that is named, else the host's."""
    named: Path | None = getattr(args, "ext_home", None)
    if named:
        return named.expanduser().absolute()
    from hermes_ext.hosts.default import default_host

    return default_host().home()


def working_directory() -> Path | None:
    """None where it was removed under us."""
    try:
        return Path.cwd()
    except OSError:
        return None
