"""The turn: `AIAgent.run_conversation` opens one, whatever surface called it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._text import text_of
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.gate.starting import unconfined
from hermes_ext.hosts.hermes.adapter.host import hook_is_on, origin_of
from hermes_ext.hosts.hermes.adapter.requests import forms
from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.hosts.hermes.adapter.turns import api_store, pastes, silence, titles
from hermes_ext.hosts.hermes.adapter.turns.inputs import Typed, put_back, take_apart
from hermes_ext.turns.turn import Turn

_OUT_OF_SIGHT: Final = (
    "This session runs in {mode}, where tools run outside of Hermes and cannot be judged. "
    "Because {who} must be able to refuse tool calls, the turn was not started. "
    "Choose another api_mode, or disable {who}."
)

_UNKNOWN_FORM: Final = (
    "This session runs in {mode}, a form of requests that hermes-ext does not know, so nobody can "
    "tell whether what it adds is sent. Because {who} must be able to refuse, the turn was not "
    "started. Choose another api_mode, or disable {who}."
)


def run_conversation(original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `AIAgent.run_conversation`."""
    if state.confined.get() is None:
        return _in_turn(original, agent, *args, **kwargs)
    with unconfined():  # its calls are judged on their own
        return _in_turn(original, agent, *args, **kwargs)


def _in_turn(original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
    call = _Call(original, agent, args, kwargs)
    turn = host.open_turn(agent, call.get("conversation_history"), call.get("task_id"))
    rules, log = turn.rules, turn.services.log
    try:
        with turn:
            if rules.idle:
                return original(agent, *args, **kwargs)
            try:
                return _held_to_the_rules(turn, call)
            finally:
                if not call.get("task_id"):  # else it is the caller's, for turns to come, too
                    host.task_ends(turn.task_id)
    finally:
        if log is not None:
            # One-shot mode leaves by os._exit, which would lose what waits to be written.
            log.flush(timeout=1.0)


def _held_to_the_rules(turn: Turn, call: _Call) -> Any:
    refusal = host.refusal(turn.rules) or _out_of_sight(turn, call.agent)
    if refusal is not None:
        turn.log_refusal(HookName.TRANSFORM_USER_INPUT, OWN, refusal)
        return call.finish_without_model(refusal, turn, blocked_by=OWN, stored=None)
    return _with_input(turn, call)


@functools.lru_cache(maxsize=8)
def _places(function: Callable[..., Any]) -> dict[str, int]:
    """Where each argument stands that is passed without its name, the agent not counted."""
    return {name: place for place, name in enumerate(_signature(function).parameters, -1)}


@functools.lru_cache(maxsize=8)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(inspect.unwrap(function))


class _Call:
    """One call of `run_conversation`, whichever way its arguments were passed."""

    def __init__(
        self,
        original: Callable[..., Any],
        agent: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.original = original
        self.agent = agent
        self._args = args
        self._kwargs = kwargs

    @functools.cached_property
    def bound(self) -> inspect.BoundArguments:
        return _signature(self.original).bind(self.agent, *self._args, **self._kwargs)

    def get(self, name: str) -> Any:
        if "bound" in vars(self):
            return self.bound.arguments.get(name)
        # Binding takes long, and is for nothing where nothing is changed.
        if name in self._kwargs:
            return self._kwargs[name]
        place = _places(self.original).get(name)
        return None if place is None or place >= len(self._args) else self._args[place]

    def set(self, name: str, value: Any) -> None:
        self.bound.arguments[name] = value

    def run(self) -> Any:
        if "bound" in vars(self):
            return self.original(*self.bound.args, **self.bound.kwargs)
        return self.original(self.agent, *self._args, **self._kwargs)

    def unwrap_marked_input(self) -> None:
        """Decode a mixture-of-agents marker, as Hermes would later.

        Anybody who can send text can send one: what it hides must not pass unseen.
        """
        if "moa_config" not in _signature(self.original).parameters or self.get("moa_config"):
            return
        from hermes_cli.moa_config import decode_moa_turn

        message, config = decode_moa_turn(self.get("user_message"))
        if config is not None:
            self.set("user_message", message)
            self.set("moa_config", config)
            if self.get("persist_user_message") is None:
                self.set("persist_user_message", message)

    def rewrite_copies(self, old: str, new: str) -> None:
        """Change what else the call was given of the text, for a title say."""
        for name, value in self.bound.arguments.items():
            if isinstance(value, str) and name != "user_message" and value.strip() == old.strip():
                self.set(name, new)
        metadata = self.get("persist_user_display_metadata")
        if isinstance(metadata, dict):
            self.set("persist_user_display_metadata", {**metadata, "title_preview": None})

    def restage(self, content: Any) -> None:
        """Change the message that the CLI has already put into its history."""
        staged = getattr(self.agent, "_pending_cli_user_message", None)
        if isinstance(staged, dict):
            staged["content"] = content

    def finish_without_model(
        self, reply: str, turn: Turn, *, blocked_by: str | None, stored: Any
    ) -> dict[str, Any]:
        """End the turn with `reply`: stored, shown, no request made. None keeps what was typed."""
        agent = self.agent
        typed = take_apart(self.get("user_message"), self.get("persist_user_message"))
        content = typed.stored if stored is None else stored
        self.restage(content)
        history = list(self.get("conversation_history") or [])
        staged = getattr(agent, "_pending_cli_user_message", None)
        asked = staged if isinstance(staged, dict) else {"role": "user", "content": content}
        messages = [*history, asked, {"role": "assistant", "content": reply}]
        self._store(messages, history)
        self._show(reply)
        return _ended(agent, messages, reply, blocked_by)

    def _store(self, messages: list[Any], history: list[Any]) -> None:
        agent = self.agent
        # What an earlier turn left behind must not be applied to this message.
        agent._persist_user_message_idx = None
        agent._persist_user_message_override = None
        agent._persist_user_message_timestamp = None
        try:
            if getattr(agent, "_cached_system_prompt", None) is None:
                from agent.conversation_loop import _restore_or_build_system_prompt

                _restore_or_build_system_prompt(agent, self.get("system_message"), history)
            agent._ensure_db_session()
            agent._persist_session(messages, history)
        except Exception:  # the answer must reach the person all the same
            logger.exception("hermes-ext could not store a turn that it ended")
        finally:
            agent._pending_cli_user_message = None

    def _show(self, reply: str) -> None:
        """Hand the reply to whoever shows text as it streams in."""
        if not reply:
            return
        callback = self.get("stream_callback")
        for show in (callback, getattr(self.agent, "stream_delta_callback", None)):
            if callable(show):
                try:
                    show(reply)
                except Exception:
                    logger.debug("a stream consumer failed", exc_info=True)


def _ended(agent: Any, messages: list[Any], reply: str, blocked_by: str | None) -> dict[str, Any]:
    """What `run_conversation` returns for a turn that `reply` ended without the model."""
    result = {
        "final_response": reply,
        "last_reasoning": None,
        "messages": messages,
        "api_calls": 0,
        "completed": True,
        "failed": False,
        "partial": False,
        "interrupted": False,
        "response_previewed": False,
        "turn_exit_reason": "extension_blocked" if blocked_by else "extension_answered",
        "model": getattr(agent, "model", None),
        "provider": getattr(agent, "provider", None),
        "base_url": getattr(agent, "base_url", None),
        "session_id": str(getattr(agent, "session_id", "") or ""),
        "blocked": blocked_by is not None,
    }
    if not reply:
        silence.mark(result, agent)
    return result if blocked_by is None else {**result, "blocked_by": blocked_by}


def _with_input(turn: Turn, call: _Call) -> Any:
    if not hook_is_on(turn, HookName.TRANSFORM_USER_INPUT):
        return _run(turn, call)
    call.unwrap_marked_input()
    if origin_of(call.agent) != "background":  # a review runs beside the turn that it reviews
        titles.forget(turn.session_id)
    typed = take_apart(call.get("user_message"), call.get("persist_user_message"))
    outcome = turn.transform_user_input(typed.value, text=typed.text, command=typed.command)
    if outcome.blocked:
        withheld = f"[withheld by {outcome.blocked_by}]"
        titles.replace(turn.session_id, withheld)
        pastes.withhold(typed.text, "", withheld)
        ended = call.finish_without_model(
            outcome.message or "", turn, blocked_by=outcome.blocked_by, stored=withheld
        )
        return {**ended, api_store.CHANGED: True}
    if outcome.changed:
        _rewrite(turn, call, typed, outcome.final(typed.value))
    if outcome.answered:
        reply = str(outcome.value)
        result = call.finish_without_model(reply, turn, blocked_by=None, stored=None)
    else:
        result = _run(turn, call)
    if outcome.changed and isinstance(result, dict):
        result[api_store.CHANGED] = True
    return result


def _run(turn: Turn, call: _Call) -> Any:
    result = call.run()
    if turn.host.stopped == "" and isinstance(result, dict):
        silence.mark(result, call.agent)
    return result


def _rewrite(turn: Turn, call: _Call, typed: Typed, value: Any) -> None:
    message, clean = put_back(typed, value, task_id=call.get("task_id"))
    call.set("user_message", message)
    if "persist_user_message" in call.bound.signature.parameters:
        call.set("persist_user_message", clean)
    stored = message if clean is None else clean
    call.rewrite_copies(typed.text, text_of(stored))
    call.restage(stored)
    titles.replace(turn.session_id, stored)
    pastes.withhold(typed.text, text_of(stored), "[rewritten by an extension]")


def codex_turn(original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `AIAgent._run_codex_app_server_turn`.

    The first look at `api_mode` comes before Hermes returns from a fallback to its primary
    provider, so this one decides.
    """
    turn = host.turn_of_agent(agent)
    refusal = _out_of_sight(turn, agent) if turn is not None else None
    if turn is None or refusal is None:
        return original(agent, *args, **kwargs)
    turn.log_refusal(HookName.BEFORE_LLM_CALL, OWN, refusal)
    messages = [*(kwargs.get("messages") or ()), {"role": "assistant", "content": refusal}]
    agent._persist_session(messages, None)
    return _ended(agent, messages, refusal, "hermes-ext")


def _out_of_sight(turn: Turn, agent: Any) -> str | None:
    """Why a turn cannot be held to the rules, or None."""
    mode, why = _mode_without_us(agent), _OUT_OF_SIGHT
    if mode is None:
        mode, why = str(getattr(agent, "api_mode", "") or ""), _UNKNOWN_FORM
        if forms.is_known(mode):
            return None
    who = turn.rules.who_must_see_tools()
    return why.format(mode=mode, who=", ".join(who)) if who else None


def _mode_without_us(agent: Any) -> str | None:
    """The name of a mode in which another program runs the tools; None for all others."""
    if str(getattr(agent, "api_mode", "") or "") == "codex_app_server":
        return "codex_app_server"
    address = str(getattr(agent, "base_url", "") or "").lower()
    copilot = str(getattr(agent, "provider", "") or "") == "copilot-acp"
    return "copilot-acp" if copilot or address.startswith(("acp://", "acp+tcp://")) else None


def copilot_prompt(original: Callable[..., Any], client: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `CopilotACPClient._run_prompt`: its program writes files and runs tools by itself."""
    who = host.rules_for().who_must_see_tools()
    if who:
        raise RuntimeError(_OUT_OF_SIGHT.format(mode="copilot-acp", who=", ".join(who)))
    return original(client, *args, **kwargs)


def build_child_agent(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Wraps `tools.delegate_tool._build_child_agent`: the child works in its parent's project."""
    child = original(*args, **kwargs)
    try:
        bound = inspect.signature(original).bind(*args, **kwargs)
        host.child_of(bound.arguments.get("parent_agent"), child)
    except Exception:
        logger.exception("hermes-ext could not tell in which directory a subagent works")
    return child


def steer(original: Callable[..., Any], agent: Any, text: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `AIAgent.steer` and `AIAgent.redirect`: text for a running turn is input too."""
    return _said_meanwhile(agent, text, lambda final: original(agent, final, *args, **kwargs))


def _said_meanwhile(agent: Any, text: Any, take: Callable[[Any], Any]) -> Any:
    # While a tool runs, Hermes makes a `steer` of a `redirect`.
    if state.taking.get() or not isinstance(text, str) or not text.strip():
        return take(text)
    with held(state.taking, True):
        turn = host.turn_of_agent(agent)
        if turn is not None:
            return _transformed(turn, agent, text, take)
        # The turn has just ended, or not begun: Hermes keeps the text for the next one.
        with host.open_turn(agent, None, None) as own:
            return _transformed(own, agent, text, take)


def _transformed(turn: Turn, agent: Any, text: str, take: Callable[[Any], Any]) -> Any:
    if not hook_is_on(turn, HookName.TRANSFORM_USER_INPUT):
        return take(text)
    outcome = turn.transform_user_input(text, origin="steer")
    if outcome.blocked or outcome.answered:
        reply = outcome.message if outcome.blocked else str(outcome.value)
        if outcome.blocked:
            pastes.withhold(text, "", f"[withheld by {outcome.blocked_by}]")
        if reply:
            agent._emit_status(f"[{outcome.blocked_by or 'extension'}] {reply}")
        return True  # taken: it is dealt with, and must not come back as the next message
    value = outcome.final(text)
    if outcome.changed:
        pastes.withhold(text, text_of(value), "[rewritten by an extension]")
    return take(value if isinstance(value, str) else text)
