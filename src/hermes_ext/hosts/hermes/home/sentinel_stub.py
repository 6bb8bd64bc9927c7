"""Refuses tool calls in a Hermes whose rules are gone. Written by `hermes-ext install`.

A plugin of Hermes that uses nothing but Python. While the package hermes-ext is attached to this
Hermes, it does nothing. When the package is gone from the environment, or Hermes does not load it,
it refuses every tool call and prints one line at the start.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
PLUGIN = "hermes_ext.hosts.hermes.plugin"


def register(ctx: Any) -> None:
    """Have Hermes ask before each turn and each tool call.

    Args:
        ctx: Hermes's plugin context.
    """
    ctx.register_hook("pre_tool_call", refuse)
    ctx.register_hook("pre_llm_call", tell)
    if not _is_installed():  # else Hermes may load the package after this
        tell()


def refuse(**_: Any) -> dict[str, str] | None:
    """Block a tool call while the rules are gone."""
    reason = why()
    return None if reason is None else {"action": "block", "message": f"[hermes-ext] {reason}"}


def tell(**_: Any) -> None:
    """Print the reason, once per process."""
    reason = why()
    # In `sys`: Hermes runs this file again whenever it discovers its plugins anew.
    said: set[str] = vars(sys).setdefault("_hermes_ext_sentinel_said", set())
    if reason is None or reason in said:
        return
    said.add(reason)
    if sys.__stderr__ is not None:
        print(f"hermes-ext: {reason}", file=sys.__stderr__, flush=True)


def why() -> str | None:
    """Why tool calls are refused; None while the rules are in force or the user turned them off."""
    off = os.environ.get("HERMES_EXT_OFF", "").strip().lower()
    if off not in {"", "0", "false", "no", "off"}:
        return None
    if getattr(sys.modules.get(PLUGIN), "is_attached", False):
        return None
    if _is_installed():
        gone = "Hermes has not loaded hermes-ext, which is installed"
        back = "Run hermes-ext doctor"
    else:
        gone = f"the package hermes-ext is gone from {sys.prefix}, and your rules with it"
        back = "Install it there again"
    return (
        f"Tool calls are refused because {gone}. {back}. To go on without rules, delete the folder "
        f"{FOLDER}"
    )


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("hermes_ext") is not None
    except (ImportError, ValueError):  # ValueError: a module without a spec
        return False
