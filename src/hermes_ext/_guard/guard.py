"""The built-in guard: one handler, which judges each tool call before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hermes_ext._guard.places import Protected
from hermes_ext._hooks.handler import Handler
from hermes_ext._hooks.registration import build_handlers, collecting, register_hook
from hermes_ext._hooks.results import CallVerdict
from hermes_ext._hooks.source import Source

OWN: Final = "hermes-ext"
"""The extension name that the guard bears; no extension has it."""

# Before every other guard, unless one of them says before=["hermes-ext"].
_FIRST: Final = -1_000_000_000


def own_guard(protected: Protected) -> Handler:
    """The guard of these places, a handler like any other."""

    def keeps_off_the_rules(
        tool_name: str, tool_args: dict[str, Any], cwd: Path | None
    ) -> CallVerdict:
        return None

    with collecting() as collected:
        register_hook(
            "intercept_tool_call", guard=True, priority=_FIRST, timeout=0, on_error="block"
        )(keeps_off_the_rules)
    (handler,) = build_handlers(OWN, collected, source=Source.BUNDLED)
    return handler
