"""What stands in for the package while it cannot be loaded: every tool call is refused."""

from __future__ import annotations

import os
import sys
from typing import Any

_NOT_SET = {"", "0", "false", "no", "off"}


def refuse(ctx: Any, error: Exception) -> None:
    """Refuse every tool call with the reason, and print it; `HERMES_EXT_OFF` lets them run.

    Args:
        ctx: Hermes's plugin context.
        error: What loading the package raised.
    """
    if os.environ.get("HERMES_EXT_OFF", "").strip().lower() not in _NOT_SET:
        return
    reason = (
        f"hermes-ext cannot be loaded ({error}), so no extension is in force and every tool call is"
        f" refused. Install it for {sys.executable}, or run `hermes plugins disable hermes-ext`."
    )
    ctx.register_hook("pre_tool_call", lambda **call: {"action": "block", "message": reason})
    # Not sys.stderr: Hermes redirects it while it answers a single prompt.
    print(reason, file=sys.__stderr__)
