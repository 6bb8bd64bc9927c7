"""A handler's question as Hermes's own approval: the prompt of the CLI, the buttons of a chat."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from hermes_ext._turns.approval import Approval, ApprovalRequest, nobody_there

logger = logging.getLogger("hermes_ext")


def approver(approve_without_human: bool) -> Callable[[ApprovalRequest], Approval]:
    """An approver that asks through Hermes.

    Args:
        approve_without_human: the setting `ask_without_human: approve`, for cron, scripts and
            modes that approve everything.
    """

    def ask(request: ApprovalRequest) -> Approval:
        gate = _gate()
        if gate is None or not _someone_there():
            return nobody_there(request, approve=approve_without_human)
        # Hermes draws a box around the text and does not expect a line to end in it.
        shown = request.describe().replace("\n", " · ")
        answer = gate(request.tool_name, shown, rule_key=request.rule_key)
        if isinstance(answer, dict) and answer.get("approved") is True:
            return Approval(approved=True)
        message = answer.get("message") if isinstance(answer, dict) else None
        return Approval(approved=False, message=str(message or f"Not approved: {request.reason}"))

    return ask


def _gate() -> Callable[..., Any] | None:
    """Hermes's approval gate for tools; None before it had one (0.17)."""
    from tools import approval

    gate = getattr(approval, "request_tool_approval", None)
    return gate if callable(gate) else None


def _someone_there() -> bool:
    """Whether a person will be asked: not in cron, scripts or modes that approve everything."""
    if os.environ.get("HERMES_CRON_SESSION"):
        return False
    from tools import approval

    try:
        if _approves_everything(approval):
            return False
        return is_interactive(approval)
    except Exception:  # a newer Hermes without these names: nobody is asked, so nothing runs
        logger.warning("cannot tell whether a person is there to approve", exc_info=True)
        return False


def is_interactive(approval: Any) -> bool:
    """Whether a person sits at this session, as `tools.approval` tells.

    Raises:
        AttributeError: that module has other names in this Hermes.
    """
    return bool(approval._is_interactive_cli() or approval._is_gateway_approval_context())


def _approves_everything(approval: Any) -> bool:
    bypass = getattr(approval, "is_approval_bypass_active", None)
    if callable(bypass):
        return bool(bypass())
    return bool(
        approval._YOLO_MODE_FROZEN
        or approval.is_current_session_yolo_enabled()
        or approval._get_approval_mode() == "off"
    )
