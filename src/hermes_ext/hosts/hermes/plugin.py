"""The plugin that Hermes loads: entry point `hermes-ext` of the group `hermes_agent.plugins`.

Hermes calls `register` while it discovers plugins, which happens half-way through its own imports
and again with `force=True` in mid-session. So nothing of the agent is imported here, no extension
is loaded (the first turn does that), and everything may be done twice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._log import logger
from hermes_ext.hosts.hermes.adapter import plugin_host
from hermes_ext.loading.imports import import_name
from hermes_ext.settings.config import switched_off

if TYPE_CHECKING:
    import argparse


def __getattr__(name: str) -> bool:
    """`is_attached`, for which `home.sentinel_stub` asks: whether the rules are attached."""
    if name == "is_attached":
        from hermes_ext.hosts.hermes.adapter.state import state

        return state.attached
    raise AttributeError(name)


def register(ctx: Any) -> None:
    """Attach to this Hermes, then add `hermes extensions` and `/extensions`.

    The rules come first: a context without one of the commands must not keep them out.

    Args:
        ctx: Hermes's plugin context.
    """
    if not switched_off():
        if plugin_host.is_remote(ctx):
            plugin_host.refuse(ctx)
            return
        import_name.install()
        from hermes_ext.hosts.hermes.adapter import standard_output
        from hermes_ext.hosts.hermes.adapter.state import state
        from hermes_ext.hosts.hermes.adapter.wraps import attaching, lacking

        attaching.attach()
        _try("a protocol of its own output", standard_output.keep_protocols_clean)
        state.attached = True
        _try("a last look before each turn", lambda: lacking.watch(ctx))
    _try("`hermes extensions`", lambda: ctx.register_cli_command(**_IN_TERMINAL))
    _in_chats(lambda: _try("`/extensions`", lambda: ctx.register_command(**_IN_CHAT)))


def _in_chats(add: Callable[[], None]) -> None:
    """Wait for a chat: to add a command Hermes imports all that draws one, a third of a start."""
    if switched_off():  # then nothing is watched
        add()
        return
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    for chat in _CHATS:
        when_imported(chat, lambda _: add())


def _try(what: str, add: Callable[[], object]) -> None:
    try:
        add()
    except Exception:  # of another Hermes; the rules hold without it
        logger.info("this Hermes does not take %s from a plugin", what, exc_info=True)


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
    from hermes_ext.hosts.hermes.adapter.person.commands import session_of_typed
    from hermes_ext.hosts.hermes.adapter.places import session_directory

    # Not imported: without it no turn has begun, and nothing is loaded.
    host = sys.modules.get("hermes_ext.hosts.hermes.adapter.host")
    live = None if host is None else host.loaded()
    home = Path(get_hermes_home())
    return slash(
        raw_args, home=home, cwd=session_directory(), live=live, session=session_of_typed()
    )


_IN_TERMINAL: Final = {
    "name": "extensions",
    "help": "List, enable, disable and check runtime extensions",
    "setup_fn": _setup,
    "handler_fn": _run,
    "description": "Runtime extensions: rules of your own in the agent's loop.",
}
_CHATS: Final = ("hermes_cli.commands", "gateway.run", "tui_gateway.server")
_IN_CHAT: Final = {
    "name": "extensions",
    "handler": _slash,
    "description": "Show runtime extensions",
    "args_hint": "list | info NAME | why | log",
}
