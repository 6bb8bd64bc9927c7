"""The built-in guard: one handler, which judges each tool call before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hermes_ext._guard.commands import Refused
from hermes_ext._guard.mentions import Mention
from hermes_ext._guard.places import Protected
from hermes_ext._guard.tools import HARMLESS, ToolCall
from hermes_ext._hooks.handler import Handler
from hermes_ext._hooks.registration import build_handlers, collecting, register_hook
from hermes_ext._hooks.results import CallVerdict, HookResult
from hermes_ext._hooks.source import OWN, Source

# Before every other guard, unless one of them says before=["hermes-ext"].
_FIRST: Final = -1_000_000_000

_A_PERSON: Final = "A person can do it, in a terminal or an editor of their own."


def own_guard(protected: Protected) -> Handler:
    """The guard of these places, a handler like any other."""

    def keeps_off_the_rules(
        tool_name: str, tool_args: dict[str, Any], cwd: Path | None
    ) -> CallVerdict:
        if tool_name in HARMLESS:
            return None
        try:
            ToolCall(protected, str(cwd or "/")).judge(tool_name, tool_args)
        except Refused as refused:
            return HookResult.block(message(refused.mention, refused.by))
        return None

    with collecting() as collected:
        register_hook(
            "intercept_tool_call", guard=True, priority=_FIRST, timeout=0, on_error="block"
        )(keeps_off_the_rules)
    (handler,) = build_handlers(OWN, collected, source=Source.BUNDLED)
    return handler


def message(mention: Mention, by: str) -> str:
    """What the model is told."""
    using = f" ({by})" if by else ""
    if mention.kind == "command":
        return f"`{mention.what}` could change the rules that hold for this agent. {_A_PERSON}"
    if mention.kind == "switch":
        return (
            f"{mention.what} decides which rules hold for this agent, and is not to be set by "
            f"it{using}. {_A_PERSON}"
        )
    where = "the Hermes home" if mention.kind == "home" else "the rules that hold for this agent"
    return (
        f"{mention.what} is part of {where}, which the agent's tools may read and not "
        f"change{using}. {_A_PERSON}"
    )
