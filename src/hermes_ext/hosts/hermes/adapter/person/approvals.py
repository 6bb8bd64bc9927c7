"""A handler's question as Hermes's own approval: the prompt of the CLI, the buttons of a chat."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._text import printable
from hermes_ext.hosts.hermes.adapter.person import host_questions
from hermes_ext.hosts.hermes.adapter.person.full_texts import kept_in_full
from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.turns.approval import Approval, ApprovalRequest, nobody_there

_YES: Final = frozenset({"once", "session", "always"})
_ANSWER_ALONE: Final = frozenset(
    {"_subagent_auto_approve", "_subagent_auto_deny", "_bg_review_auto_deny"}
)
_CUT_IN_CHATS: Final = 160
_END: Final = 100  # characters of a call, shown once more


def approver(approve_without_human: Callable[[], bool]) -> Callable[[ApprovalRequest], Approval]:
    """An approver that asks through Hermes; the setting decides where nobody is there to ask."""

    def ask(request: ApprovalRequest) -> Approval:
        gate = _gate()
        if gate is None or not _someone_there():
            return nobody_there(request, approve=approve_without_human())
        with kept_in_full(request) as place:
            person = Person(request, place)
            with held(state.question, person):
                answer = gate(
                    person.call,
                    person.question,
                    rule_key=request.rule_key,
                    approval_callback=person.answers,
                )
        if not isinstance(answer, dict):
            return Approval(approved=False)
        if answer.get("approved") is True:
            person.tell_yes()
            return Approval(approved=True)
        if person.absent or answer.get("status") == "approval_required":
            return nobody_there(request, approve=approve_without_human())
        message = str(answer.get("message") or "")
        return Approval(approved=False, message=message.replace(person.question, person.reason))

    return ask


class Person:
    """Who answers one question, and what they are shown.

    Attributes:
        call: tool and arguments, in one line.
        reason: extension and reason, and why Hermes would ask about the same call, in one line.
        absent: whether it turned out that Hermes has nobody to ask at the terminal.
        said_yes: whether they were asked, and not only earlier, and said yes.
    """

    def __init__(self, request: ApprovalRequest, full_text: Path | None) -> None:
        self.call = request.call_text
        self._of_hermes = host_questions.of_call(request.tool_name, request.tool_args)
        parts = [request.reason_text]
        if self._of_hermes is not None:
            parts.append(f"Hermes asks too: {printable(self._of_hermes.reason)}")
        if full_text is not None:
            parts.append(f"all of it: {printable(full_text)}")
        self.reason = " · ".join(parts)
        self.absent = False
        self.said_yes = False

    def tell_yes(self) -> None:
        """A yes that they have just given is one to Hermes's question too."""
        if self.said_yes and self._of_hermes is not None:
            host_questions.person_answered(self._of_hermes)

    @property
    def question(self) -> str:
        """The reason, and the call once more where a chat may cut the other text short."""
        if len(self.call) <= _CUT_IN_CHATS:
            return self.reason
        return f"{self.reason} · {self.call}"

    @property
    def _in_panel(self) -> str:
        """The reason, and the end of the call, of which the panel shows the beginning only."""
        if len(self.call) <= _CUT_IN_CHATS:
            return self.reason
        return f"{self.reason} · it ends with: …{self.call[-_END:]}"

    def answers(self, command: str, _description: str, **options: Any) -> str:
        """A callback for Hermes, which takes whatever is not "deny" for a yes."""
        from tools import approval
        from tools.terminal_tool import _get_approval_callback

        callback = _get_approval_callback()
        if not _asks_a_person(callback):
            self.absent = True
            return "deny"
        choice = approval.prompt_dangerous_approval(
            command,
            self._in_panel,
            allow_permanent=options.get("allow_permanent") is not False,
            approval_callback=callback,
        )
        self.said_yes = _is_yes(choice)
        return choice if self.said_yes else "deny"


def gateway_decision(
    original: Callable[..., Any], session: Any, notify: Any, data: Any, *args: Any, **kwargs: Any
) -> Any:
    """Wraps `tools.approval._await_gateway_decision`, which waits for an answer from a chat.

    Hermes takes whatever is not "deny" for a yes, and the backend of its terminal interface hands
    on what a client sends. To a question of ours that is a no. A question of Hermes's that was
    answered with ours is not asked.
    """
    person = state.question.get()
    if person is None:
        given = host_questions.chat_decision(data)
        return given or original(session, notify, data, *args, **kwargs)
    decision = original(session, notify, data, *args, **kwargs)
    if not isinstance(decision, dict):
        return decision
    person.said_yes = _is_yes(decision.get("choice")) and decision.get("resolved") is True
    return decision if _is_yes(decision.get("choice")) else {**decision, "choice": "deny"}


def _is_yes(choice: Any) -> bool:
    return isinstance(choice, str) and choice in _YES


def _asks_a_person(callback: Any) -> bool:
    """Whether this is not one of Hermes's callbacks that answer by themselves, or never."""
    if callback is None:  # Hermes reads a line from its input
        return sys.stdin is not None and sys.stdin.isatty()
    if getattr(callback, "__name__", "") in _ANSWER_ALONE:
        return False
    # `hermes chat -q` has a panel to ask in, and never shows it.
    owner = getattr(callback, "__self__", None)
    return getattr(owner, "_app", owner) is not None or owner is None


def _gate() -> Callable[..., Any] | None:
    """Hermes's approval gate for tools; None before it had one (0.17)."""
    from tools import approval

    gate = getattr(approval, "request_tool_approval", None)
    return gate if callable(gate) else None


# Newer Hermes has them in the session, and settings by which it says yes itself there.
_UNATTENDED: Final = ("HERMES_CRON_SESSION", "HERMES_SINGLE_QUERY_SESSION")


def _someone_there() -> bool:
    """Whether a person will be asked: not in cron, scripts or modes that approve everything."""
    from tools import approval

    try:
        if any(map(_says, _UNATTENDED)):
            return False
        if _approves_everything(approval):
            return False
        return is_interactive(approval)
    except Exception:  # a newer Hermes without these names: nobody is asked, so nothing runs
        logger.warning("cannot tell whether a person is there to approve", exc_info=True)
        return False


def _says(variable: str) -> bool:
    """Whether the process's environment, or the session's own, has this variable."""
    from gateway.session_context import get_session_env

    return bool(os.environ.get(variable) or get_session_env(variable, ""))


def is_interactive(approval: Any) -> bool:
    """Whether a person sits at this session, as `tools.approval` tells.

    Raises:
        AttributeError: that module has other names in this Hermes.
    """
    return bool(
        approval._is_interactive_cli()
        or approval._is_gateway_approval_context()
        or _a_client_answers(approval)
    )


def _a_client_answers(approval: Any) -> bool:
    """Whether a client of the API server has been promised this session's questions.

    From 0.21 on Hermes does not take the API server for a gateway with people behind it.
    """
    presence = getattr(approval, "_presence", None)
    if not callable(presence):
        return False
    session = approval.get_current_session_key()
    return bool(presence()[-1]) and approval._gateway_notify_cb(session) is not None


def _approves_everything(approval: Any) -> bool:
    bypass = getattr(approval, "is_approval_bypass_active", None)
    if callable(bypass):
        return bool(bypass())
    return bool(
        approval._YOLO_MODE_FROZEN
        or approval.is_current_session_yolo_enabled()
        or approval._get_approval_mode() == "off"
    )
