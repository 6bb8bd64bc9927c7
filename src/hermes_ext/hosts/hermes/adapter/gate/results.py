"""The results of tools, on their way to the model: `transform_tool_result`."""

from __future__ import annotations

import json
import logging
from typing import Any

from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.gate.content import text_of_result, with_text
from hermes_ext.hosts.hermes.adapter.gate.verdicts import Verdict
from hermes_ext.hosts.hermes.adapter.host import hook_is_on
from hermes_ext.turns.turn import Turn

logger = logging.getLogger("hermes_ext")


def error_result(text: str) -> str:
    """A tool result that says what went wrong, in Hermes's own form."""
    return json.dumps({"error": text}, ensure_ascii=False)


def internal_fault(error: BaseException) -> str:
    """Why a call is refused that could not be judged."""
    return (
        f"[hermes-ext] the call could not be judged ({type(error).__name__}), so it is refused; "
        "the Hermes log has the details"
    )


def looked_at(turn: Turn, verdict: Verdict, result: Any, duration_ms: int) -> Any:
    """The result as the hook `transform_tool_result` leaves it."""
    if not hook_is_on(turn, HookName.TRANSFORM_TOOL_RESULT):
        return result
    try:
        text = text_of_result(result)
        outcome = turn.transform_tool_result(
            verdict.tool,
            verdict.arguments,
            text,
            tool_call_id=verdict.call_id,
            status=_status(text),
            duration_ms=duration_ms,
        )
    except Exception as error:  # what nobody could look at is not shown
        logger.exception("hermes-ext could not look at a result of %s", verdict.tool)
        return error_result(internal_fault(error))
    if outcome.blocked:
        return error_result(f"[{outcome.blocked_by}] {outcome.message}")
    return with_text(result, str(outcome.value)) if outcome.changed else result


def _status(text: str) -> str:
    try:
        decoded = json.loads(text)
    except ValueError:
        return "ok"
    return "error" if isinstance(decoded, dict) and decoded.get("error") else "ok"
