"""Hermes's own question about a dangerous command, put into a handler's question about it.

A handler's question comes first, before the tool runs. Its text also holds the reason for which
Hermes would ask once the tool checks the command; a person's yes to that text is then Hermes's
answer `once`, for this execution and for exactly this command and reason. Hermes still evaluates
the command: what it blocks or asks for another reason stays blocked or is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._values import define, field
from hermes_ext.hosts.hermes.adapter.state import state

_SCRIPT_KEY: Final = "execute_code"
_SCRIPT_REASON: Final = (
    "execute_code script execution: commands that the script starts are not checked one by one"
)
_ONCE: Final = "once"


@define(eq=False)
class HostQuestion:
    """What Hermes would ask about one call.

    Attributes:
        command: the text that it checks.
        reason: why it would ask, as people read it.
        keys: the keys under which Hermes stores an answer that is to last.
    """

    command: str
    reason: str
    keys: tuple[str, ...]
    _used: bool = False
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def used(self) -> bool:
        """Whether it has been answered already; from now on it has."""
        with self._lock:
            before, self._used = self._used, True
            return before


def of_call(tool: str, args: Any) -> HostQuestion | None:
    """What Hermes would ask a person about a call, or None: nothing, or it cannot be foreseen.

    What it allows for this session or always is not asked.
    """
    from tools import approval

    try:
        if tool == "terminal":
            return _about_command(approval, args.get("command"))
        if tool == "execute_code":
            return _about_script(approval, args.get("code"))
    except Exception:  # another Hermes: it asks its own question, behind ours
        logger.debug("cannot foresee what Hermes asks about %s", tool, exc_info=True)
    return None


def _about_command(approval: Any, command: Any) -> HostQuestion | None:
    if not isinstance(command, str):
        return None
    session = approval.get_current_session_key()
    found = [*_scanned(approval, command)]
    dangerous, key, reason = approval.detect_dangerous_command(command)
    if dangerous:
        found.append((key, reason))
    asked = [each for each in found if not approval.is_approved(session, each[0])]
    if not asked:
        return None
    keys, reasons = zip(*asked, strict=True)
    return HostQuestion(command, "; ".join(reasons), keys)


def _scanned(approval: Any, command: str) -> Iterator[tuple[str, str]]:
    """What Hermes's scanner finds, under the key that Hermes gives it; nothing without one."""
    try:
        from tools.tirith_security import check_command_security
    except ImportError:
        return
    found = check_command_security(command)
    if found["action"] in {"block", "warn"}:
        findings = found.get("findings") or [{}]
        key = f"tirith:{findings[0].get('rule_id', 'unknown')}"
        yield key, approval._format_tirith_description(found)


def _about_script(approval: Any, code: Any) -> HostQuestion | None:
    asks = approval._is_gateway_approval_context() or approval.env_var_enabled("HERMES_EXEC_ASK")
    approved = approval.is_approved(approval.get_current_session_key(), _SCRIPT_KEY)
    if not isinstance(code, str) or not asks or approved:
        return None
    return HostQuestion(f"execute_code <<'PY'\n{code}\nPY", _SCRIPT_REASON, (_SCRIPT_KEY,))


# -- from the answer to the call --------------------------------------------------------------


def person_answered(question: HostQuestion) -> None:
    """A person has just said yes to a text that holds this question."""
    answered = state.answered.get()
    if answered is not None:
        answered.append(question)


# -- where Hermes asks ------------------------------------------------------------------------


def prompt(
    original: Callable[..., Any], command: str, description: str, *args: Any, **options: Any
) -> Any:
    """Wraps `tools.approval.prompt_dangerous_approval`, by which Hermes asks at a terminal.

    Where its model advises against the command, Hermes says so to the person: that is asked.
    """
    question = state.agreed.get()()
    if (
        question is not None
        and (command, description) == (question.command, question.reason)
        and not options.get("smart_denied")
        and not question.used()
    ):
        return _ONCE
    return original(command, description, *args, **options)


def chat_decision(data: Any) -> dict[str, Any] | None:
    """The answer to what `tools.approval._await_gateway_decision` would ask, if there is one."""
    question = state.agreed.get()()
    if question is None or not isinstance(data, dict) or data.get("smart_denied"):
        return None
    if not _is_about(question, data) or question.used():
        return None
    return {"resolved": True, "choice": _ONCE, "reason": None}


def _is_about(question: HostQuestion, data: dict[str, Any]) -> bool:
    """Whether Hermes asks this very question; it hides secrets in the texts that it sends."""
    from agent.redact import redact_sensitive_text

    reason = data.get("description")
    if question.keys == (_SCRIPT_KEY,):
        same = isinstance(reason, str) and reason.startswith(_SCRIPT_REASON.partition(":")[0])
    else:
        same = reason == redact_sensitive_text(question.reason)
    command = redact_sensitive_text(question.command)
    keys = tuple(data.get("pattern_keys") or ())
    return same and data.get("command") == command and keys == question.keys
