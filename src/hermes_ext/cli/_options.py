"""Options that several commands take."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from hermes_ext.cli._values import action, home, hook, seconds, since

# One import may take 20 s before the loader gives it up; a few of those and their start-up fit in.
LOAD_SECONDS: Final = 90.0


def add(command: argparse._ActionsContainer, typed: str, told: str, **more: Any) -> None:
    """Add an option or an operand.

    Args:
        command: that takes it.
        typed: its names and what it takes: `-n --last N`, `NAME`; a flag takes nothing.
        told: what `--help` says of it.
        more: as argparse has it. `dest` is what follows `ext_`; by default the last name.
    """
    names = [each for each in typed.split() if each.startswith("-")]
    takes = [each for each in typed.split() if each not in names]
    last = (names or takes)[-1].strip("-").replace("-", "_").lower()
    more |= {"metavar": takes[0]} if takes else {"action": more.get("action", "store_true")}
    dest = f"ext_{more.pop('dest', last)}"
    if names:
        command.add_argument(*names, dest=dest, help=told, **more)
    else:
        command.add_argument(dest, help=told, **more)


def common(command: argparse.ArgumentParser) -> None:
    add(command, "--json", "print one JSON value, nothing else")
    told = "the Hermes home (default: $HERMES_HOME, else ~/.hermes)"
    add(command, "--home PATH", told, type=home)


def name(command: argparse.ArgumentParser) -> None:
    add(command, "NAME", "its name, as list has it")


def filters(command: argparse.ArgumentParser, *, actions: bool = True) -> None:
    """Which lines of the decision log."""
    add(command, "--session ID", "only of this; its begin is enough", dest="query_session")
    add(command, "--hook HOOK", "only of this hook", type=hook, dest="query_hook")
    told = "only where this extension took part"
    add(command, "--extension NAME", told, dest="query_extension")
    if actions:
        told = "only what came to this; error: where a handler failed"
        add(command, "--action ACTION", told, type=action, dest="query_action")
    told = "only since then: 30m, 2h, 3d, or a date and time"
    add(command, "--since WHEN", told, type=since, dest="query_since")


def path(command: argparse.ArgumentParser, what: str) -> None:
    """A folder; the working directory where none is named."""
    add(command, "PATH", f"{what} (default: the working directory)", type=Path, nargs="?")


def deadline(command: argparse.ArgumentParser, default: float = LOAD_SECONDS) -> None:
    told = "how long it may take (default: %(default)g)"
    add(command, "--deadline SECONDS", told, type=seconds, default=default)


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
