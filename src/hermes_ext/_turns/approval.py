"""Asking a person about a tool call, bound to exactly what they were shown."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from attrs import evolve, field, frozen

from hermes_ext._hooks.text import printable

_SHOWN_ARGS: Final = 1200
_SHOWN_ARG: Final = 80
_SHOWN_REASON: Final = 400


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
            arguments where the handler gave no key: arguments that change need a new yes. An
            extension of a project is `name of /path`, for another project may have one of its name.
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
        """Extension and reason in one line, tool and arguments in another: what a person needs.

        Control characters are escaped. What is long is cut, and says so; a yes covers the whole.
        """
        return f"{self.reason_text}\n{self.call_text}"

    @property
    def reason_text(self) -> str:
        """Extension and reason in one line."""
        reason = printable(self.reason)
        return f"[{printable(self.extension)}] {_cut(reason, _SHOWN_REASON)}"

    @property
    def call_text(self) -> str:
        """Tool and arguments in one line.

        Each argument is cut by itself, so that a long one does not hide those behind it.
        """
        room = max(_SHOWN_ARG, _SHOWN_ARGS // max(1, len(self.tool_args)))
        args = ", ".join(f"{_shown(k, _SHOWN_ARG)}: {_shown(v, room)}" for k, v in self._sorted())
        return f"{printable(self.tool_name)} {{{_cut(args, 2 * _SHOWN_ARGS)}}}"

    def _sorted(self) -> list[tuple[Any, Any]]:
        """The arguments, long ones last."""
        return sorted(self.tool_args.items(), key=lambda each: len(_json(each)) > _SHOWN_ARG)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _shown(value: Any, room: int) -> str:
    return _cut(printable(_json(value)), room)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]}… ({len(text)} characters in all)"


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
