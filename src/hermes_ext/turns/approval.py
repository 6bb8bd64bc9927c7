"""Asking a person about a tool call, bound to exactly what they were shown."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from hermes_ext._interrupts import let_through
from hermes_ext._log import logger
from hermes_ext._text import printable, printable_lines
from hermes_ext._values import evolve, field, frozen
from hermes_ext.hooks.payloads import Scope
from hermes_ext.turns import state

_SHOWN_ARGS: Final = 1200
_SHOWN_ARG: Final = 80
_SHOWN_REASON: Final = 400
_LEFT_OUT: Final = "characters left out"


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

        Control characters are escaped. Of what is long, beginning and end are shown and how much
        lies between them; a yes covers the whole.
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

    @property
    def is_cut(self) -> bool:
        """Whether `describe` leaves out anything."""
        # A call that holds these words itself gets a file that it does not need.
        return _LEFT_OUT in self.describe()

    @property
    def full_text(self) -> str:
        """Reason, tool and arguments, for a file. Line ends stay, the rest is escaped."""
        parts = [f"[{printable(self.extension)}] {self.reason}", printable(self.tool_name)]
        for name, value in self._sorted():
            text = value if isinstance(value, str) else _json(value)
            parts.append(f"{printable(name)}:\n{text}")
        return "".join(f"{printable_lines(part)}\n\n" for part in parts)[:-1]

    def _sorted(self) -> list[tuple[Any, Any]]:
        """The arguments, long ones last."""
        return sorted(self.tool_args.items(), key=lambda each: len(_json(each)) > _SHOWN_ARG)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _shown(value: Any, room: int) -> str:
    return _cut(printable(_json(value)), room)


def _cut(text: str, room: int) -> str:
    """Beginning and end of what is too long: what matters in a command may be its last word."""
    left_out = len(text) - room
    if left_out <= 0:
        return text
    head = room - room // 2
    told = f"… ({left_out:,} of {len(text):,} {_LEFT_OUT}) …"
    return f"{text[:head]}{told}{text[head + left_out :]}"


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


class HasApprover(Protocol):
    """Who is asked, and `ask_without_human`: what holds where nobody is there."""

    approver: Approver | None
    approve_without_human: bool


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
    end = "" if request.reason.endswith((".", "!", "?")) else "."
    return Approval(
        approved=False,
        by="nobody",
        message=(
            f"{request.reason}{end} This needs a person's approval, and nobody is there to give "
            "it; extensions.ask_without_human decides what happens then."
        ),
    )


ENDED: Final = "the turn that this call belongs to has ended, so the call is refused"
TOO_LATE: Final = Approval(approved=False, message=ENDED, by="nobody")


def answered(
    turn: state.TurnCore, by: HasApprover, request: ApprovalRequest, scope: Scope
) -> Approval:
    """The answer to a question of a turn.

    Args:
        turn: the turn; a yes that comes after its end grants nothing.
        by: who is asked.
        request: the question.
        scope: of the session, whose loop an async approver runs in.
    """
    approver = by.approver
    if turn.closed:
        return TOO_LATE
    if approver is None:
        return nobody_there(request, approve=by.approve_without_human)
    try:
        with state.entered(turn):
            answer = approver(request)
            if inspect.isawaitable(answer):
                from hermes_ext.chain.aio import wait_for

                answer = wait_for(answer, scope)
    except BaseException as error:  # noqa: BLE001 - the host's; if broken, it has not said yes
        let_through(error)
        return _approver_failed(request)
    return as_approval(answer, request)


async def aanswered(turn: state.TurnCore, by: HasApprover, request: ApprovalRequest) -> Approval:
    """`answered`, awaited."""
    approver = by.approver
    if turn.closed:
        return TOO_LATE
    if approver is None:
        return nobody_there(request, approve=by.approve_without_human)
    import asyncio

    try:
        with state.entered(turn):
            answer = await asyncio.to_thread(approver, request)
            if inspect.isawaitable(answer):
                answer = await answer
    except BaseException as error:  # the host's; if broken, it has not said yes
        let_through(error)
        task = asyncio.current_task()
        is_ours = isinstance(error, asyncio.CancelledError) and task and task.cancelling()
        if is_ours or isinstance(error, GeneratorExit):  # the caller's task is over
            raise
        return _approver_failed(request)
    return as_approval(answer, request)


def all_yes(answers: Sequence[Approval]) -> Approval:
    """All said yes; if the user's setting said one of them, that is what is to be known."""
    by = next((answer.by for answer in answers if answer.by != "person"), "person")
    return Approval(approved=True, by=by)


def _approver_failed(request: ApprovalRequest) -> Approval:
    logger.exception("the approver failed; the call is refused")
    return Approval(
        approved=False, by="nobody", message=f"Approval failed, so it is refused: {request.reason}"
    )
