"""Runtime extensions for AI agents: rules of your own in the agent's loop.

The smallest extension, `~/.hermes/extensions/only-urgent/__init__.py`:

    from hermes_ext import CallVerdict, HookResult, register_hook

    @register_hook("intercept_tool_call", guard=True, tools=["send_message"])
    def only_urgent(tool_args) -> CallVerdict:
        if "urgent" not in str(tool_args.get("text", "")).lower():
            return HookResult.block("Only urgent messages are sent by the agent.")
        return None
"""

# Before everything else, `from __future__` included: it decides where all of that is imported from.
from hermes_ext import _search_path

if _search_path.is_own_command() or _search_path.is_in_host():
    _search_path.drop_working_directory()

from hermes_ext.__about__ import __version__

TYPE_CHECKING = False  # `typing` is imported by those who need it: a command may not
if TYPE_CHECKING:
    from typing import Any

    from hermes_ext.chain.outcome import ChainOutcome, Step
    from hermes_ext.exceptions import SkipExtension
    from hermes_ext.hooks.commands import register_command
    from hermes_ext.hooks.payloads import LLMRequest, ToolCall, ToolResult, UserInput
    from hermes_ext.hooks.registration import hookimpl, register_hook
    from hermes_ext.hooks.results import (
        CallResult,
        CallVerdict,
        HookResult,
        InputResult,
        InputVerdict,
        RequestResult,
        RequestVerdict,
        ToolOutputResult,
        ToolOutputVerdict,
    )
    from hermes_ext.hooks.table import Action
    from hermes_ext.runtime import Runtime
    from hermes_ext.turns.approval import Approval, ApprovalRequest
    from hermes_ext.turns.confining import Confiner
    from hermes_ext.turns.notices import Notice
    from hermes_ext.turns.session_state import SessionState
    from hermes_ext.turns.state import TurnState, get_session_state, get_turn_state
    from hermes_ext.turns.turn import Turn

# Imported when it is asked for: a command or a host's start needs little of it.
_LATER = {
    "Action": "hermes_ext.hooks.table",
    "Approval": "hermes_ext.turns.approval",
    "ApprovalRequest": "hermes_ext.turns.approval",
    "CallResult": "hermes_ext.hooks.results",
    "CallVerdict": "hermes_ext.hooks.results",
    "ChainOutcome": "hermes_ext.chain.fold",
    "Confiner": "hermes_ext.turns.confining",
    "HookResult": "hermes_ext.hooks.results",
    "InputResult": "hermes_ext.hooks.results",
    "InputVerdict": "hermes_ext.hooks.results",
    "LLMRequest": "hermes_ext.hooks.payloads",
    "Notice": "hermes_ext.turns.notices",
    "RequestResult": "hermes_ext.hooks.results",
    "RequestVerdict": "hermes_ext.hooks.results",
    "Runtime": "hermes_ext.runtime",
    "SessionState": "hermes_ext.turns.session_state",
    "SkipExtension": "hermes_ext.exceptions",
    "Step": "hermes_ext.chain.fold",
    "ToolCall": "hermes_ext.hooks.payloads",
    "ToolOutputResult": "hermes_ext.hooks.results",
    "ToolOutputVerdict": "hermes_ext.hooks.results",
    "ToolResult": "hermes_ext.hooks.payloads",
    "Turn": "hermes_ext.turns.turn",
    "TurnState": "hermes_ext.turns.state",
    "UserInput": "hermes_ext.hooks.payloads",
    "get_session_state": "hermes_ext.turns.state",
    "get_turn_state": "hermes_ext.turns.state",
    "hookimpl": "hermes_ext.hooks.registration",
    "register_command": "hermes_ext.hooks.commands",
    "register_hook": "hermes_ext.hooks.registration",
}

__all__ = [
    "Action",
    "Approval",
    "ApprovalRequest",
    "CallResult",
    "CallVerdict",
    "ChainOutcome",
    "Confiner",
    "HookResult",
    "InputResult",
    "InputVerdict",
    "LLMRequest",
    "Notice",
    "RequestResult",
    "RequestVerdict",
    "Runtime",
    "SessionState",
    "SkipExtension",
    "Step",
    "ToolCall",
    "ToolOutputResult",
    "ToolOutputVerdict",
    "ToolResult",
    "Turn",
    "TurnState",
    "UserInput",
    "__version__",
    "get_session_state",
    "get_turn_state",
    "hookimpl",
    "register_command",
    "register_hook",
]


def __getattr__(name: str) -> "Any":
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
