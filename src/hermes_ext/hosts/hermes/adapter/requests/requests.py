"""Requests to the model: `before_llm_call`, injections, and answers without the model.

Every provider form starts as one list of chat-completions messages with the system prompt in
front, given to `AIAgent._build_api_kwargs`. There the chain runs, once per request: a retry of the
same messages re-applies what was decided. The execution step then makes sure that what was injected
is still in the request, because other plugins may have rebuilt it in between.
"""

from __future__ import annotations

import json
import marshal
import weakref
from collections.abc import Callable
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._text import text_of
from hermes_ext._values import define
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.host import current_agent_turn, hook_is_on
from hermes_ext.hosts.hermes.adapter.person import notices
from hermes_ext.hosts.hermes.adapter.requests import forms
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.turns.requests import InjectionKind, Kept, Message, compose, split_system
from hermes_ext.turns.state import current_turn
from hermes_ext.turns.turn import Turn

# In an assistant's message: what the provider sent, to be sent back word for word.
_COPIES: Final = ("codex_message_items", "anthropic_content_blocks", "bedrock_content_blocks")

_UNKNOWN_FORM: Final = (
    "[hermes-ext] The request was not sent: it is in the form {mode}, which hermes-ext does not "
    "know, and {who} must be able to refuse. Choose another api_mode, or disable {who}."
)

_UNSEEN: Final = (
    "a request was made past AIAgent._build_api_kwargs, so {who} did not see it. Disable the "
    "plugin that makes it, or disable {who}."
)


@define(eq=False)  # a frozen one takes four times as long to make
class Decided:
    """What the chain decided on one request.

    Attributes:
        request_id: Hermes's id of the request; a retry keeps it.
        sent: the messages and the model it was decided for, as `_form` writes them.
        reply: text that answers the request without the model, or None.
        again: whether the turn's person has been told that reply before.
        system: all texts for the end of the system prompt.
        user: new texts for the end of the request.
        kept: injections of earlier requests that stay in this turn.
        body: the messages as handlers rewrote them, or None for as they were.
    """

    request_id: str
    sent: bytes
    reply: str | None = None
    again: bool = False
    system: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    body: list[Message] | None = None

    @property
    def injects(self) -> bool:
        """Whether any text is put into the request."""
        return bool(self.system or self.user or self.kept)

    def put_into(self, messages: list[Message]) -> list[Message]:
        """The messages with everything that was decided."""
        if self.body is not None:
            head, _ = split_system(messages)
            messages = [head, *self.body] if head is not None else self.body
        if not self.injects:
            return messages
        return compose(messages, system=self.system, user=self.user, kept=self.kept)

    def texts(self, kind: InjectionKind) -> list[str]:
        """Everything of a kind that must stand in the request."""
        if kind == "system":
            return list(self.system)
        return [*(one.text for one in self.kept if one.kind == kind), *self.user]


class SummaryAnswered(BaseException):
    """Carries an answer out of Hermes's summary request, past its `except Exception`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def build_api_kwargs(
    original: Callable[..., Any], agent: Any, api_messages: list[Message], *args: Any, **kwargs: Any
) -> Any:
    """Wraps `AIAgent._build_api_kwargs`."""
    state.asking.set(weakref.ref(agent))
    turn = current_agent_turn(agent)
    if turn is None:
        return original(agent, api_messages, *args, **kwargs)
    turn.bind(
        session_id=getattr(agent, "session_id", None) or None,
        turn_id=getattr(agent, "_current_turn_id", None) or None,
        task_id=getattr(agent, "_current_task_id", None) or None,
    )
    if turn.host.summary or not _concerned(turn):
        return original(agent, api_messages, *args, **kwargs)
    decided = _decide(turn, agent, api_messages)
    request = original(agent, decided.put_into(api_messages), *args, **kwargs)
    if decided.system:
        forms.keep_cache_key(request, decided.system, agent)
    return request


def _concerned(turn: Turn) -> bool:
    return not turn.rules.idle and (
        hook_is_on(turn, HookName.BEFORE_LLM_CALL) or turn.host.stopped is not None
    )


def _decide(turn: Turn, agent: Any, api_messages: list[Message]) -> Decided:
    data = turn.host
    request_id = str(getattr(agent, "_current_api_request_id", "") or "")
    sent = _form(api_messages, str(getattr(agent, "model", "")))
    known = data.request
    if known is not None and (known.request_id, known.sent) == (request_id, sent):
        return known  # type: ignore[no-any-return]
    if data.stopped is not None:
        data.request = Decided(request_id, sent, reply=data.stopped, again=True)
    else:
        data.request = _ask_the_chain(turn, agent, api_messages, request_id, sent)
    return data.request  # type: ignore[no-any-return]


def _ask_the_chain(
    turn: Turn, agent: Any, api_messages: list[Message], request_id: str, sent: bytes
) -> Decided:
    head, body = split_system(api_messages)
    kept = turn.kept
    outcome = turn.before_llm_call(
        body,
        text_of(head.get("content")) if head is not None else "",
        api_call_count=_number_of(turn, agent),
        request_id=request_id,
        model=getattr(agent, "model", None),
    )
    if outcome.blocked:
        turn.host.stopped = f"[{outcome.blocked_by}] {outcome.message}"
        return Decided(request_id, sent, reply=turn.host.stopped)
    if outcome.answered:
        # It ends the turn. Hermes may take an announcement for unfinished and ask once more.
        turn.host.stopped = str(outcome.value)
        return Decided(request_id, sent, reply=turn.host.stopped)
    rewritten = outcome.final(None)
    if rewritten is not None:
        rewritten = _without_old_copies(rewritten, body)
    return Decided(
        request_id,
        sent,
        system=turn.system_texts(outcome, kept),
        user=turn.user_texts(outcome, kept),
        kept=kept,
        body=agent._sanitize_api_messages(rewritten) if rewritten is not None else None,
    )


def _without_old_copies(rewritten: list[Message], before: list[Message]) -> list[Message]:
    """Without the provider's own copy of an assistant's message that is not the same any more.

    Hermes would send the copy in its place, for Responses, Anthropic's thinking models and Bedrock.
    """
    same = {_said(message) for message in before}
    return [
        {key: value for key, value in message.items() if key not in _COPIES}
        if any(message.get(key) for key in _COPIES) and _said(message) not in same
        else message
        for message in rewritten
    ]


def _said(message: Message) -> str:
    keys = ("content", "tool_calls", *_COPIES)
    return json.dumps([message.get(key) for key in keys], sort_keys=True, default=repr)


def _number_of(turn: Turn, agent: Any) -> int | None:
    count = getattr(agent, "_api_call_count", None)
    if not isinstance(count, int):
        return None
    # Hermes does not count the summary's request; it is the one after the last that it counted.
    return count + 1 if turn.host.summary else count


def _form(messages: list[Message], model: str) -> bytes:
    """Equal for what is equal. No digest, which takes as long again; it goes with its turn."""
    try:
        return marshal.dumps([model, messages], 2)  # many times as fast; plain values only
    except ValueError:
        text = json.dumps([model, messages], ensure_ascii=False, default=repr, check_circular=False)
        return text.encode("utf-8", "surrogatepass")


def run_llm_execution(
    original: Callable[..., Any], request: Any, next_call: Callable[[Any], Any], **context: Any
) -> Any:
    """Wraps `hermes_cli.middleware.run_llm_execution_middleware`."""
    turn = host.find_turn(context)
    if turn is not None and turn.rules.idle and not turn.rules.who_must_see_tools():
        return original(request, next_call, **context)
    mode, model = context.get("api_mode"), str(context.get("model") or "")
    form = forms.form_of(mode)

    def answer(reply: str) -> Any:
        _stream(reply)
        return form.answer(reply, model)

    if turn is None:
        refusal = host.refusal_of_request(context.get("task_id"), context.get("session_id"))
        if refusal is not None:
            return answer(f"[hermes-ext] {refusal}")
    if turn is not None and not forms.is_known(mode):
        # A fallback in mid-turn: the turn's own look was at another form.
        who = ", ".join(turn.rules.who_must_see_tools())
        if who:
            return form.answer(_UNKNOWN_FORM.format(mode=mode, who=who), model)

    def send(final: Any) -> Any:
        return next_call(final if turn is None else _only_judged_tools(turn, form, final))

    decided = turn.host.request if turn is not None else None
    if decided is None or decided.request_id != context.get("api_request_id"):
        unseen = _unseen(turn) if turn is not None else None
        return original(request, send, **context) if unseen is None else answer(unseen)
    if decided.reply is not None:
        return form.answer(decided.reply, model) if decided.again else answer(decided.reply)

    def checked(final: Any) -> Any:
        complete = _complete(final, decided, form)
        if complete is None:
            lost = "what an extension put into this request was taken out by another plugin"
            return answer(f"[hermes-ext] The request was not sent: {lost}.")
        return send(complete)

    return original(request, checked, **context)


def _unseen(turn: Turn) -> str | None:
    """Why a request that no chain has seen is not sent; None where it may be."""
    if turn.host.stopped is not None:
        return str(turn.host.stopped)
    relying, there = turn.rules.who_wait_for(HookName.BEFORE_LLM_CALL)
    if relying:
        return f"[hermes-ext] The request was not sent: {_UNSEEN.format(who=', '.join(relying))}"
    if there:
        notices.say(f"not in force: {_UNSEEN.format(who=', '.join(there))}")
    return None


def _only_judged_tools(turn: Turn, form: forms.Form, request: Any) -> Any:
    """The request without tools of the provider's own that a guard would have to judge."""
    if not (turn.rules.refusal is not None or turn.rules.who_must_see_tools()):
        return request
    offered = form.run_elsewhere(request) if isinstance(request, dict) else []
    hidden = [name for name in offered if _must_be_judged(turn, name)]
    if not hidden:
        return request
    notices.say(
        f"the provider's own {', '.join(hidden)} is not offered to the model: it would run where "
        "no guard sees it"
    )
    return form.without_tools(request, hidden)


def _must_be_judged(turn: Turn, tool: str) -> bool:
    rules = turn.rules
    must_see = rules.who_must_see_tools()
    judges = rules.manager.chain(HookName.INTERCEPT_TOOL_CALL, tool).handlers
    return rules.refusal is not None or any(one.extension in must_see for one in judges)


def _stream(reply: str) -> None:
    """Show a reply to whoever watches the stream: some show nothing else (the API server's SSE)."""
    agent = state.asking.get()()
    show = getattr(agent, "_fire_stream_delta", None)
    if reply and callable(show):
        try:
            show(reply)
        except Exception:  # the reply is still the turn's final response
            logger.debug("a stream consumer failed", exc_info=True)


def _complete(request: Any, decided: Decided, form: forms.Form) -> Any:
    """The request if all injected text is in it; else with it put back; else None."""
    if not decided.injects:
        return request
    system, user = decided.texts("system"), decided.texts("user")
    lost_system, lost_user = form.missing(request, system, user)
    if not lost_system and not lost_user:
        return request
    restored = form.restore(request, lost_system, lost_user)
    if restored is None or form.missing(restored, system, user) != ([], []):
        return None
    return restored


def handle_max_iterations(
    original: Callable[..., Any], agent: Any, messages: list[Message], *args: Any, **kwargs: Any
) -> Any:
    """Wraps `AIAgent._handle_max_iterations`: its request goes past every middleware."""
    turn = current_agent_turn(agent)
    if turn is None or not _concerned(turn):
        return original(agent, messages, *args, **kwargs)
    turn.host.summary = True
    try:
        return original(agent, messages, *args, **kwargs)
    except SummaryAnswered as answer:
        messages.append({"role": "assistant", "content": answer.text})
        return answer.text
    finally:
        turn.host.summary = False


def last_look_at_messages(
    original: Callable[..., Any], messages: list[Message], *args: Any, **kwargs: Any
) -> Any:
    """Wraps `AIAgent._drop_thinking_only_and_merge_users`, a static method.

    It is the last step that the summary request's messages go through, whatever the provider form.
    """
    final = original(messages, *args, **kwargs)
    turn = current_turn()
    if not isinstance(turn, Turn) or turn.host is None or not turn.host.summary:
        return final
    agent = turn.host.agent()
    agent._current_api_request_id = f"{getattr(agent, '_current_turn_id', '')}:summary"
    decided = _decide(turn, agent, final)
    if decided.reply is not None:
        raise SummaryAnswered(decided.reply)
    return decided.put_into(final)
