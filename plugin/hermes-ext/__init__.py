# ruff: noqa: N999 - the folder is named as the plugin, which holds a hyphen
"""The Hermes plugin `hermes-ext` as a folder: all of it is in the installed package.

Where the package cannot be loaded, the rules are missing. Then every tool call is refused.
"""

from __future__ import annotations

from typing import Any

from .absent import refuse


def register(ctx: Any) -> None:
    """Have the package attach to this Hermes, or refuse every tool call.

    Args:
        ctx: Hermes's plugin context.
    """
    try:
        from hermes_ext.hosts.hermes import plugin

        plugin.register(ctx)
    except Exception as error:  # noqa: BLE001 - a package that is broken in any way holds no rule
        refuse(ctx, error)
