"""The plugin that Hermes loads: entry point `hermes-ext` of the group `hermes_agent.plugins`.

Hermes calls `register` while it discovers plugins, which happens half-way through its own imports
and again with `force=True` in mid-session. So nothing of the agent is imported here, no extension
is loaded (the first turn does that), and everything may be done twice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._install import import_name
from hermes_ext._install.config import switched_off

if TYPE_CHECKING:
    import argparse


def register(ctx: Any) -> None:
    """Attach to this Hermes, and add `hermes extensions` and `/extensions`.

    Args:
        ctx: Hermes's plugin context.
    """
    ctx.register_cli_command(
        name="extensions",
        help="List, enable, disable and check runtime extensions",
        setup_fn=_setup,
        handler_fn=_run,
        description="Runtime extensions: rules of your own in the agent's loop.",
    )
    ctx.register_command(
        "extensions",
        handler=_slash,
        description="Show runtime extensions",
        args_hint="list | info NAME | why | log",
    )
    if switched_off():
        return
    import_name.install()
    from hermes_ext.hosts.hermes.seams import attach

    attach()


def _setup(parser: argparse.ArgumentParser) -> None:
    from hermes_ext.cli import add_commands

    add_commands(parser)


def _run(args: argparse.Namespace) -> None:
    from hermes_ext.cli import run

    # Hermes ignores what a command's handler returns.
    raise SystemExit(run(args, prog="hermes extensions"))


def _slash(raw_args: str) -> str:
    from hermes_constants import get_hermes_home

    from hermes_ext.cli import slash
    from hermes_ext.hosts.hermes.commands import session_of_typed
    from hermes_ext.hosts.hermes.places import session_directory

    # Not imported: without it no turn has begun, and nothing is loaded.
    host = sys.modules.get("hermes_ext.hosts.hermes.host")
    live = None if host is None else host.the_host.loaded()
    home = Path(get_hermes_home())
    return slash(
        raw_args, home=home, cwd=session_directory(), live=live, session=session_of_typed()
    )
