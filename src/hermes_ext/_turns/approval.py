"""Asking a person about a tool call, bound to exactly what they were shown."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from hermes_ext._hooks.text import printable

_SHOWN_ARGS = 2000


@frozen
class ApprovalRequest:
    """One question to a person: may this very call run?

    Attributes:
        extension: who asks.
        handler: its handler.
        tool_name: the tool that would run.
        tool_args: the final arguments.
        reason: why it is asked.
        rule_key: what a yes covers: `extension:handler:key`, with the digest of tool and final
            arguments where the handler gave no key: arguments that change need a new yes.
        session_id: the session of the call.
        turn_id: the turn of the call.
    """

    extension: str
    handler: str
    tool_name: str
    tool_args: Mapping[str, Any]
    reason: str
    rule_key: str
    session_id: str = ""
    turn_id: str = ""

    def describe(self) -> str:
        """Extension, reason, tool and arguments in one line each, control characters escaped."""
        args = json.dumps(dict(self.tool_args), ensure_ascii=False, default=repr)
        if len(args) > _SHOWN_ARGS:
            args = f"{args[:_SHOWN_ARGS]}… ({len(args)} characters in all)"
        return (
            f"[{printable(self.extension)}] {printable(self.reason)}\n"
            f"{printable(self.tool_name)} {printable(args)}"
        )


@frozen
class Approval:
    """A person's answer.

    Attributes:
        approved: whether the call may run.
        message: what the model is told when it may not.
        by: who answered: `person`, `setting` (`ask_without_human: approve`) or `nobody`.
    """

    approved: bool
    message: str = ""
    by: str = field(default="person")


Approver = Callable[[ApprovalRequest], "bool | Approval | Awaitable[bool | Approval]"]


def as_approval(answer: Any, request: ApprovalRequest) -> Approval:
    """An approver's answer as an `Approval`; anything but a plain yes is a no."""
    if answer is True:
        return Approval(approved=True)
    if isinstance(answer, Approval):
        if answer.approved is True:
            return answer
        return evolve(answer, approved=False, message=answer.message or _no(request))
    return Approval(approved=False, message=_no(request))


def _no(request: ApprovalRequest) -> str:
    return f"Not approved: {request.reason}"


def nobody_there(request: ApprovalRequest, *, approve: bool) -> Approval:
    """The answer where no person can be asked, by the setting `ask_without_human`."""
    if approve:
        return Approval(approved=True, by="setting")
    return Approval(
        approved=False,
        by="nobody",
        message=(
            f"{request.reason} (this needs a person's approval, and nobody is there to give it; "
            "extensions.ask_without_human decides what happens then)"
        ),
    )
