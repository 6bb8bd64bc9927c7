"""The built-in guard: one handler, which judges each tool call before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_ext.effects import effects_of
from hermes_ext.guard.places import Protected
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import ToolCall
from hermes_ext.hooks.registration import build_handlers, collecting, register_hook
from hermes_ext.hooks.results import CallVerdict, HookResult
from hermes_ext.hooks.source import OWN, Source

if TYPE_CHECKING:
    from hermes_ext.guard.judge import Finding

# Before every other guard, unless one of them says before=["hermes-ext"].
_FIRST: Final = -1_000_000_000

_A_PERSON: Final = "A person can do it, in a terminal or an editor of their own."


def own_guard(protected: Protected) -> Handler:
    """The guard of these places, a handler like any other."""

    def keeps_off_the_rules(event: ToolCall) -> CallVerdict:
        # What judges is of no use before the first call, and every start would wait for it.
        from hermes_ext.guard.judge import finding_in

        cwd = event.machine.resolve(".") if event.machine and event.machine.cwd else None
        found = finding_in(effects_of(event), event.arguments.shared, protected, cwd)
        return None if found is None else HookResult.block(message(found))

    with collecting() as collected:
        register_hook(
            "intercept_tool_call", guard=True, priority=_FIRST, timeout=0, on_error="block"
        )(keeps_off_the_rules)
    (handler,) = build_handlers(OWN, collected, source=Source.BUNDLED)
    return handler


def message(found: Finding) -> str:
    """What the model is told."""
    using = f" ({found.by})" if found.by else ""
    if found.kind == "unread":
        return f"{found.what}."
    if found.kind == "command":
        return f"`{found.what}` could change the rules that hold for this agent. {_A_PERSON}"
    if found.kind == "switch":
        return (
            f"{found.what} decides which rules hold for this agent, and is not to be set by "
            f"it{using}. {_A_PERSON}"
        )
    where = "the Hermes home" if found.kind == "home" else "the rules that hold for this agent"
    return (
        f"{found.what} is part of {where}, which the agent's tools may read and not "
        f"change{using}. {_A_PERSON}"
    )
