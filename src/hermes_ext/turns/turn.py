"""One turn: where a host calls the hooks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence, Set
from functools import partial, wraps
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeAlias

from attrs import evolve

from hermes_ext._log import logger
from hermes_ext._text import text_of
from hermes_ext.chain.calls import DEEPEST, Call, inside
from hermes_ext.chain.fold import CompiledChain, arun, run
from hermes_ext.chain.outcome import Ask, ChainOutcome, Injection, Settled
from hermes_ext.exceptions import TurnEndedError
from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hooks.payloads import (
    Event,
    LLMRequest,
    Scope,
    ToolCall,
    ToolResult,
    UserInput,
    new_call,
    or_unknown,
)
from hermes_ext.hooks.results import Keep
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import ENDING, Action, HookName
from hermes_ext.rules import Rules
from hermes_ext.turns import state
from hermes_ext.turns.approval import (
    ENDED,
    TOO_LATE,
    Approval,
    ApprovalRequest,
    aanswered,
    all_yes,
    answered,
)
from hermes_ext.turns.failures import log_failures
from hermes_ext.turns.notices import Notice, TurnNotices, notice_of, refusal
from hermes_ext.turns.requests import InjectionKind, Kept, Message, compose, split_system
from hermes_ext.turns.services import Services
from hermes_ext.turns.slow import begun_too_deep, too_deep, watchdog
from hermes_ext.turns.state import Running

if TYPE_CHECKING:
    from hermes_ext.chain.outcome import Cause
    from hermes_ext.turns.decisions.log import DecisionLog
    from hermes_ext.turns.session_state import SessionState

# Looking a member up in its class takes as long as a call.
_ANSWER: Final = Action.ANSWER
_ASK: Final = Action.ASK
_BLOCK: Final = Action.BLOCK
_CONFINE: Final = Action.CONFINE
_RESULT: Final = HookName.TRANSFORM_TOOL_RESULT
_TOOL: Final = HookName.INTERCEPT_TOOL_CALL
_around: Final = inside.get  # bound once, which takes as long as the call

_P = ParamSpec("_P")
_Asked: TypeAlias = tuple[Event, Scope, Any]
"""What a hook is run on: its event, the turn's values, and for the log what `before` is."""


def _runs(
    asked: Callable[Concatenate[Turn, _P], _Asked],
) -> Callable[Concatenate[Turn, _P], ChainOutcome]:
    """A method that runs the hook on what `asked` returns."""

    @wraps(asked)
    def run_hook(turn: Turn, /, *args: _P.args, **named: _P.kwargs) -> ChainOutcome:
        event, scope, before = asked(turn, *args, **named)
        return turn._kept(event, turn._sync(event, scope, before))

    return run_hook


def _awaited(
    method: Callable[Concatenate[Turn, _P], ChainOutcome],
) -> Callable[Concatenate[Turn, _P], Coroutine[Any, Any, ChainOutcome]]:
    """The same method, awaited."""
    asked: Callable[..., _Asked] = vars(method)["__wrapped__"]

    @wraps(asked)
    async def run_hook(turn: Turn, /, *args: _P.args, **named: _P.kwargs) -> ChainOutcome:
        event, scope, before = asked(turn, *args, **named)
        return turn._kept(event, await turn._async(event, scope, before))

    return run_hook


class Turn(state.TurnCore):
    """One turn of one session: where a host calls the hooks. Made by `Runtime.turn`.

    Attributes:
        rules: what is in force in its directory, fixed for the turn.
        services: what it shares with the other turns of its runtime.
        kept: injections that stay for the rest of the turn.
        host: for the host adapter's own use.
    """

    __slots__ = (
        "_before",
        "_begun_too_deep",
        "_facts",
        "_find_root",
        "_log",
        "_looked_at",
        "_machine",
        "_made",
        "_notices",
        "conversation_id",
        "host",
        "kept",
        "rules",
        "services",
    )

    # How a chain is run; tests have more found out about each handler.
    _run = staticmethod(run)
    _arun = staticmethod(arun)

    def __init__(
        self,
        rules: Rules,
        services: Services,
        *,
        session_id: str,
        conversation_id: str,
        turn_id: str | None,
        task_id: str | None,
        find_root: Callable[[], Path | None] | None = None,
        **scope: Any,
    ) -> None:
        super().__init__(session_id, turn_id, task_id)
        self.rules = rules
        self.services = services
        self.conversation_id = conversation_id
        self.kept: tuple[Kept, ...] = ()
        self.host: Any = None
        self._before: Any = None
        self._notices: TurnNotices | None = None
        self._facts = scope
        self._find_root = find_root
        # Most handlers do not ask for it.
        self._machine = partial(services.machine_for, cwd=scope.get("cwd"))
        self._made: Scope | None = None
        self._log = services.log
        self._looked_at = services.asked_for(rules, "event", "cwd")
        state.begin(self)
        self._begun_too_deep = False
        if rules.manager.handlers:
            self._begun_too_deep = begun_too_deep()
            watchdog.watch()

    @property
    def _scope(self) -> Scope:
        """Made for whoever asks first: a turn without handlers has no use for it."""
        made = self._made
        return made if made is not None else self._make_scope()

    def _make_scope(self) -> Scope:
        services, facts = self.services, {**self._facts, "task_id": self.task_id}
        with self.lock:
            if self._made is None:
                self._made = Scope(
                    session_id=self.session_id,
                    conversation_id=self.conversation_id,
                    turn_id=self.uid,
                    state=self.state,
                    # Not of this turn: one in a circle would not go when its host drops it.
                    session_state_of=partial(
                        services.session_state, self.rules, self.conversation_id
                    ),
                    data_dir_of=partial(services.data_dir, self.rules),
                    check_tool_args=services.schemas.error if services.schemas else None,
                    **{name: value for name, value in facts.items() if value is not None},
                )
            return self._made

    @property
    def looks_at_calls(self) -> bool:
        """Whether anybody may ask for more of a tool call than its name, arguments and id."""
        return self._looked_at or bool(self.services.listeners)

    @property
    def packages(self) -> Set[str]:
        """The packages of the extensions whose handlers it calls."""
        return self.rules.packages

    def session_state_of_module(self, module: str) -> SessionState | None:
        """The session state of the extension that a module belongs to; None for other modules."""
        extension = self.rules.owner_of(module)
        if extension is None:
            return None
        return self.services.session_state(self.rules, self.conversation_id, extension)

    # -- life -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._before = state.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        # A host may end a turn in another context (an async fixture, a thread of a pool): that
        # one never had this turn, and the one that had it finds it closed.
        state.leave(self, self._before)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *exc: Any) -> None:
        self.__exit__(*exc)

    def close(self) -> None:
        """End the turn: its state is gone, and its tool calls are refused from now on."""
        state.end(self)
        if self._notices is not None:
            with self.lock:
                rest = self._notices.rest()
            for notice in rest:
                self._show(notice)

    def _bound(self) -> None:
        made, session_id, task_id = self._made, self.session_id, self.task_id
        if made is not None and (made.session_id, made.task_id) != (session_id, task_id):
            self._made = made.replace(session_id=session_id, task_id=or_unknown(task_id))

    # -- input ------------------------------------------------------------------------------

    @_runs
    def transform_user_input(
        self,
        message: Any,
        *,
        text: str | None = None,
        origin: str | None = None,
        command: str | None = None,
    ) -> _Asked:
        """Run the hook on what the user wrote.

        Args:
            message: the text (`str`), or a list of content parts.
            text: what was typed, where it is not the whole text of the parts.
            origin: where this text came from, if not from where the turn did (`steer`).
            command: the skill whose slash command the text came with.

        Returns:
            The outcome; `final(message)` is what to go on with unless it is blocked or answered.
        """
        content = message if isinstance(message, list) else None
        typed = text_of(message) if text is None else text
        event = UserInput(text=typed, content=content, command=command)
        return event, self._scope.replace(origin=origin) if origin else self._scope, message

    atransform_user_input = _awaited(transform_user_input)

    # -- requests ---------------------------------------------------------------------------

    @_runs
    def before_llm_call(
        self,
        messages: Sequence[Message],
        system_prompt: str = "",
        *,
        api_call_count: int | None = None,
        request_id: str | None = None,
        model: str | None = None,
    ) -> _Asked:
        """Run the hook on a request to the model; `apply` puts the outcome into the request.

        Args:
            messages: chat-completions messages, without the system message.
            system_prompt: the system prompt.
            api_call_count: 1 for the turn's first request; a retry keeps its number.
            request_id: the host's id of the request.
            model: the model asked, if it is not the turn's.
        """
        event = LLMRequest(
            messages=messages if isinstance(messages, list) else list(messages),
            system_prompt=system_prompt,
            api_call_count=or_unknown(api_call_count),
            request_id=request_id,
        )
        scope = self._scope
        if model and model != scope.model:
            scope = scope.replace(model=model)
        # Its own list for the log, which reads it after the host has gone on.
        return event, scope, list(messages)

    abefore_llm_call = _awaited(before_llm_call)

    def _kept(self, event: Event, outcome: ChainOutcome) -> ChainOutcome:
        """Remember injections that are to stay; the same one of the same handler stays once."""
        if isinstance(event, LLMRequest) and _injects(outcome):
            stay = _injected(outcome, len(event.messages), only="turn")
            with self.lock:
                self.kept = tuple(dict.fromkeys((*self.kept, *stay)))
        return outcome

    def system_texts(self, outcome: ChainOutcome, kept: Sequence[Kept]) -> tuple[str, ...]:
        """All texts for the end of the system prompt, in handler order, each once.

        Args:
            outcome: of `before_llm_call`.
            kept: the injections that stood before this request.
        """
        if not (kept or _injects(outcome)):
            return ()
        stay = [one for one in kept if one.kind == "system"]
        new = _new(outcome, "system", kept)
        texts = [*stay, *new]
        if stay and new:
            chain = self.rules.manager.chain(HookName.BEFORE_LLM_CALL, None, self._scope.origin)
            rank = {str(handler): n for n, handler in enumerate(chain.handlers)}
            # What stays may be of a handler that is not there any more.
            texts.sort(key=lambda one: rank.get(one.handler, len(rank)))
        return tuple(str(one.text) for one in texts)

    def user_texts(self, outcome: ChainOutcome, kept: Sequence[Kept]) -> tuple[str, ...]:
        """The new texts for the end of the request; those that are kept stand elsewhere in it."""
        if not _injects(outcome):
            return ()
        return tuple(str(one.text) for one in _new(outcome, "user", kept))

    def apply(
        self, outcome: ChainOutcome, messages: Sequence[Message], system_prompt: str = ""
    ) -> tuple[list[Message], str]:
        """A request as the outcome of its `before_llm_call` wants it.

        Args:
            outcome: neither blocked nor answered.
            messages: what the hook was called with.
            system_prompt: likewise.

        Returns:
            Messages and system prompt to send. The turn's own injections (`keep="turn"`) are in
            them, at the place where they first stood. The arguments are not changed.
        """
        body = outcome.final(list(messages))
        # What this very request was the first to inject is put in as new, and kept for later ones.
        new = {id(one.text) for one in _injected(outcome)}
        kept = [one for one in self.kept if id(one.text) not in new]
        system: list[Message] = [{"role": "system", "content": system_prompt}]
        composed = compose(
            [*(system if system_prompt else []), *body],
            system=self.system_texts(outcome, kept),
            user=self.user_texts(outcome, kept),
            kept=kept,
        )
        head, rest = split_system(composed)
        return rest, text_of(head.get("content")) if head is not None else ""

    # -- tool calls -------------------------------------------------------------------------

    def intercept_tool_call(
        self,
        tool_name: str,
        tool_args: dict[str, Any],
        *,
        tool_call_id: str | None = None,
        read_only: bool = False,
    ) -> ChainOutcome:
        """Run the hook on a tool call, and ask a person where a handler wants it.

        Args:
            tool_name: the tool.
            tool_args: its arguments. They are not changed.
            tool_call_id: the host's id of the call; one is made up where it is None or empty.
            read_only: whether the tool's server says that it only reads (MCP's `readOnlyHint`).

        Returns:
            The outcome: if it is blocked, `as_tool_result()` goes to the model; if it is answered,
            `value` does; else the tool runs with `final(tool_args)`, and where `confinement` is
            not None, confined. A call whose turn ends while the handlers run, or while a person is
            asked, is blocked.

        Raises:
            TurnEndedError: the turn is over.
        """
        call_id = tool_call_id or self.new_call_id()
        call = new_call(ToolCall, tool_name, tool_args, call_id, self._machine, read_only)
        outcome = self._sync(call, self._scope)
        if outcome.action is not _ASK:
            return outcome
        return self.settle(outcome, tool_name, _final(outcome, call))

    async def aintercept_tool_call(
        self,
        tool_name: str,
        tool_args: dict[str, Any],
        *,
        tool_call_id: str | None = None,
        read_only: bool = False,
    ) -> ChainOutcome:
        """`intercept_tool_call`, awaited."""
        call_id = tool_call_id or self.new_call_id()
        call = new_call(ToolCall, tool_name, tool_args, call_id, self._machine, read_only)
        outcome = await self._async(call, self._scope)
        if outcome.action is not _ASK:
            return outcome
        answers: list[Approval] = []
        for ask, request in self._questions(outcome, tool_name, _final(outcome, call)):
            answers.append(await aanswered(self, self.services, request))
            if not answers[-1].approved:
                return self._resolved(outcome, answers[-1], ask)
        return self._resolved(outcome, all_yes(answers), None)

    @property
    def directory(self) -> Path:
        """The session's directory, where the turn began; `/` where the host knows none."""
        return self._scope.cwd or Path("/")

    def judge_tool_call(
        self,
        tool_name: str,
        tool_args: dict[str, Any] | Arguments,
        *,
        tool_call_id: str | None = None,
        cwd: Path | None = None,
        read_only: bool = False,
    ) -> ChainOutcome:
        """`intercept_tool_call` without asking anybody: `settle` does that, later.

        Args:
            tool_name: the tool.
            tool_args: its arguments.
            tool_call_id: the host's id of the call.
            cwd: where the call's relative paths start, if that is not the session's directory.
            read_only: whether the tool's server says that it only reads.
        """
        scope, machine = self._scope, self._machine
        if cwd is not None and cwd != scope.cwd:
            scope, machine = scope.replace(cwd=cwd), partial(self.services.machine_for, cwd=cwd)
        call_id = tool_call_id or self.new_call_id()
        call = new_call(ToolCall, tool_name, tool_args, call_id, machine, read_only)
        return self._sync(call, scope)

    def settle(
        self, outcome: ChainOutcome, tool_name: str, tool_args: dict[str, Any] | Arguments
    ) -> ChainOutcome:
        """Ask a person about a call, where the outcome is `ask`; else return it as it is.

        Args:
            outcome: of `judge_tool_call`.
            tool_name: the tool.
            tool_args: the final arguments: a yes covers these and no others.
        """
        if outcome.action is not _ASK:
            return outcome
        answers: list[Approval] = []
        for ask, request in self._questions(outcome, tool_name, Arguments.of(tool_args)):
            answers.append(answered(self, self.services, request, self._scope))
            if not answers[-1].approved:
                return self._resolved(outcome, answers[-1], ask)
        return self._resolved(outcome, all_yes(answers), None)

    def _questions(
        self, outcome: ChainOutcome, tool_name: str, arguments: Arguments
    ) -> Iterator[tuple[Ask, ApprovalRequest]]:
        from hermes_ext.turns.decisions.canonical import canonical_digest

        unconfined = None if outcome.confined is None else outcome.confined.ask
        for ask in outcome.asks:
            key = ask.key or canonical_digest([tool_name, arguments.shared])
            if ask is unconfined:  # a yes to a question of the handler's own lifts nothing
                key = f"unconfined:{key}"
            # A colon of a project's path is not to be taken for one between the parts.
            asker = self.rules.whole_name(ask.extension).replace("%", "%25").replace(":", "%3A")
            request = ApprovalRequest(
                extension=ask.extension,
                handler=ask.handler,
                tool_name=tool_name,
                tool_args=arguments.copy(),  # what is shown can change nothing of what runs
                reason=ask.reason,
                rule_key=f"{asker}:{ask.handler}:{key}",
                session_id=self.session_id,
                turn_id=self.uid,
            )
            yield ask, request

    def _resolved(
        self, outcome: ChainOutcome, answer: Approval, refused: Ask | None
    ) -> ChainOutcome:
        if self.closed:  # a yes that comes after the end grants nothing
            answer = TOO_LATE
        settled = outcome.resolved(answer.approved, answer.message, answer.by, refused)
        if answer is TOO_LATE:
            settled = evolve(settled, blocked_by=OWN, settled=Settled(None))
        call = settled.first or settled.event
        machine = getattr(call, "machine", None)
        where = self._scope.cwd if machine is None or machine.cwd is None else machine.cwd
        scope = self._scope if where == self._scope.cwd else self._scope.replace(cwd=where)
        self._write(HookName.INTERCEPT_TOOL_CALL, call, scope, None, settled)
        if isinstance(call, ToolCall):
            self._note(call, settled)
        by_person = refused is not None and answer.by == "person"
        why = f"not approved: {refused.reason}" if refused is not None and by_person else None
        self._notify(HookName.INTERCEPT_TOOL_CALL, call, settled, why)
        return settled

    # -- results ----------------------------------------------------------------------------

    @_runs
    def transform_tool_result(
        self,
        tool_name: str,
        tool_args: dict[str, Any] | Arguments,
        result: str,
        *,
        tool_call_id: str | None = None,
        status: str = "ok",
        duration_ms: int | None = None,
    ) -> _Asked:
        """Run the hook on a tool's result, before the model sees it.

        Args:
            tool_name: the tool that ran.
            tool_args: with these arguments.
            result: what it gave.
            tool_call_id: the id that `intercept_tool_call` was given.
            status: `ok` or `error`.
            duration_ms: how long it ran, in milliseconds.
        """
        event = ToolResult(
            tool_name=tool_name,
            tool_args=tool_args,
            tool_call_id=tool_call_id or self.new_call_id(),
            result=result,
            status=status,
            duration_ms=or_unknown(duration_ms),
            machine=self._machine,
        )
        return event, self._scope, None

    atransform_tool_result = _awaited(transform_tool_result)

    # -- running a chain --------------------------------------------------------------------

    def fire(self, event: Event) -> ChainOutcome:
        """Run the hook of an event, for hooks that have no method of their own here."""
        return self._sync(event, self._scope)

    async def afire(self, event: Event) -> ChainOutcome:
        """`fire`, awaited."""
        return await self._async(event, self._scope)

    def _sync(self, event: Event, scope: Scope, before: Any = None) -> ChainOutcome:
        """Run the hook of an event.

        before: the value that goes in, for the log, where it is not the event's own.
        """
        running = self._begun(event, scope, before)
        if type(running) is not Running:  # `isinstance` takes as long as a handler's call
            return running
        try:
            outcome = self._run(running.chain, event, running.scope)
        finally:
            running.end()
        return self._done(running.chain, running.scope, event, before, outcome)

    async def _async(self, event: Event, scope: Scope, before: Any = None) -> ChainOutcome:
        running = self._begun(event, scope, before)
        if type(running) is not Running:  # `isinstance` takes as long as a handler's call
            return running
        try:
            outcome = await self._arun(running.chain, event, running.scope)
        finally:
            running.end()
        if outcome.confines and outcome.action not in ENDING:
            import asyncio

            # It looks at the disk, and the loop has other turns.
            outcome = await asyncio.to_thread(self._confined, event, outcome)
        return self._done(running.chain, running.scope, event, before, outcome)

    def _begun(self, event: Event, scope: Scope, before: Any) -> Running | ChainOutcome:
        """The chain of an event, about to run; an outcome where nothing is to run."""
        rules = self.rules
        if (self.closed or rules.refusal is not None) and isinstance(event, ToolCall):
            if self.closed:
                raise TurnEndedError(
                    f"{event.tool_name} was called after its turn had ended",
                    hint="Open a turn for it with Runtime.turn(...)",
                )
            return self._refuse(event, scope, before, str(rules.refusal), rules.cause)
        chain = rules.manager.chains[event.hook, event.tool_name, scope.origin]
        self.used_at = monotonic()  # before it runs: a turn that was left is at work again
        if not chain.handlers:
            return self._done(chain, scope, event, before, chain.passed)
        outer = _around() or self.outer
        if outer is not None or self._begun_too_deep or len(self.chains) > DEEPEST:
            refused = self._too_deep(event, scope, before, outer)
            if refused is not None:
                return refused
            scope = _lent(scope, outer)
        running = Running()
        running.turn = self
        running.chain = chain
        running.scope = scope
        running.outer = outer
        return running.begin()

    def _done(
        self, chain: CompiledChain, scope: Scope, event: Any, before: Any, outcome: ChainOutcome
    ) -> ChainOutcome:
        hook, passed = chain.hook, outcome is chain.passed
        if hook is _TOOL:
            if self.closed and outcome.action is not _BLOCK:
                outcome = ChainOutcome.refused(ENDED, OWN, event)  # its turn has ended meanwhile
                passed = False
            if passed:  # the usual case, without a call
                self.running.add(event.tool_call_id)
            else:
                if outcome.action is _CONFINE or outcome.action is _ASK:
                    outcome = self._confined(event, outcome)
                self._note(event, outcome)
        elif hook is _RESULT:
            self.running.discard(event.tool_call_id)
        if self.services.listeners:
            self._trace(event, outcome)
        if not passed:
            log_failures(chain, outcome, self.services.on_failure)
        if self._log is not None and self._is_recorded(self._log, chain, outcome):
            self._write(hook, event, scope, before, outcome)
        if not passed:
            self._notify(hook, event, outcome)
        return outcome

    def _confined(self, event: Any, outcome: ChainOutcome) -> ChainOutcome:
        """What becomes of a call; the same where nobody confines it, or that is known."""
        if not outcome.confines or outcome.confined is not None:
            return outcome
        from hermes_ext.turns.confining import confined

        services, call = self.services, outcome.event
        found = confined(
            call if isinstance(call, ToolCall) else event,
            outcome,
            root=self._root(),
            confiner=services.confiner,
            unavailable=services.confine_unavailable,
        )
        return ChainOutcome.refused(ENDED, OWN, event) if self.closed else found

    def _root(self) -> Path | None:
        """The project's directory; where there is none, the session's."""
        scope = self._scope
        if scope.project_root is not None:
            return scope.project_root
        found = None if self._find_root is None else self._find_root()
        return scope.cwd if found is None else found

    def _trace(self, event: Event, outcome: ChainOutcome) -> None:
        hook = event.hook.value
        for listener in tuple(self.services.listeners):
            self._tell(listener, hook, event, outcome, failed=f"a listener of {hook} failed")

    def _too_deep(
        self, event: Event, scope: Scope, before: Any, outer: Call | None
    ) -> ChainOutcome | None:
        """The refusal of what handlers call that were called by handlers, and so on."""
        text = too_deep(outer)
        if text is None:
            return None
        logger.warning("%s", text)
        return self._refuse(event, scope, before, text)

    def _refuse(
        self, event: Event, scope: Scope, before: Any, why: str, cause: Cause | None = None
    ) -> ChainOutcome:
        """What the runtime refuses without asking the handlers."""
        outcome = ChainOutcome.refused(why, OWN, event, cause)
        self._write(event.hook, event, scope, before, outcome)
        self._notify(event.hook, event, outcome)
        return outcome

    def report_slow(self, text: str) -> None:
        self._tell(self.services.on_slow, text, failed=f"a line could not be shown: {text}")

    def _tell(self, listener: Callable[..., None] | None, *what: object, failed: str) -> None:
        """Call a listener of the host's; what it raises changes no verdict."""
        if listener is None:
            return
        try:
            with state.entered(self):
                listener(*what)
        except Exception:  # the host's own; the log has the line
            logger.warning("%s", failed, exc_info=True)

    def _note(self, call: ToolCall, outcome: ChainOutcome) -> None:
        """Keep in mind which tool calls run: from what lets one run to its result."""
        if outcome.action is _BLOCK:
            self.running.discard(call.tool_call_id)
        elif outcome.action is not _ANSWER:
            self.running.add(call.tool_call_id)

    def _is_recorded(self, log: DecisionLog, chain: CompiledChain, outcome: ChainOutcome) -> bool:
        """Whether the log gets a line: asks are settled later, and what no extension has a say in
        is written for a rule that is still to come, where payloads are.
        """
        if outcome.action is _ASK:
            return False
        if log.level == "payloads" and not self.rules.idle:
            return True
        decided = chain.handlers and outcome is not chain.passed
        return bool(decided) or any(one.extension != OWN for one in chain.handlers)

    # -- what the person is shown ---------------------------------------------------------------

    def notify_refusal(
        self,
        extension: str,
        tool_name: str,
        reason: str,
        *,
        tool_args: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
    ) -> None:
        """Report a call that the host itself refuses: in the decision log, and as
        `Runtime.on_notice` gets those of rules.

        Args:
            extension: in whose name.
            tool_name: the tool.
            reason: why.
            tool_args: its arguments, where they are known.
            tool_call_id: the id of the call; the same refusal of one call is shown once.
        """
        call = ToolCall(tool_name, tool_args or {}, tool_call_id or "")
        self.log_refusal(HookName.INTERCEPT_TOOL_CALL, extension, reason, call)
        if self.services.on_notice is not None and self.services.notify != "off":
            self._show_once(refusal(extension, tool_name, reason), tool_call_id)

    def log_refusal(
        self,
        hook: HookName,
        extension: str,
        reason: str,
        call: ToolCall | None = None,
        cause: Cause | None = None,
    ) -> None:
        """Write what the host itself refuses into the decision log; nothing of an input.

        Args:
            hook: where it is refused.
            extension: in whose name.
            reason: why.
            call: the tool call, where it is one.
            cause: what is lacking, as `Rules.cause` has it.
        """
        outcome = ChainOutcome.refused(reason, extension, call, cause)
        self._write(hook, call, self._scope, None, outcome, again=False)

    def _notify(
        self, hook: HookName, event: Any, outcome: ChainOutcome, why: str | None = None
    ) -> None:
        """Report an outcome; a question is reported once it is answered."""
        if self.services.on_notice is None or outcome.action is _ASK:
            return
        tool = getattr(event, "tool_name", None)
        notice = notice_of(hook, tool, outcome, self.services.notify, why)
        if notice is not None:
            self._show_once(notice, getattr(event, "tool_call_id", None))

    def _show_once(self, notice: Notice, call_id: str | None) -> None:
        with self.lock:
            if self._notices is None:
                self._notices = TurnNotices()
            new = self._notices.is_new(notice, call_id)
        if new:
            self._show(notice)

    def _show(self, notice: Notice) -> None:
        shown = evolve(notice, session_id=self.session_id, turn_id=self.uid)
        failed = f"a line could not be shown: {shown}"
        self._tell(self.services.on_notice, shown, failed=failed)

    # -- the decision log -----------------------------------------------------------------------

    def _write(
        self,
        hook: HookName,
        event: Event | None,
        scope: Scope,
        before: Any,
        outcome: ChainOutcome,
        *,
        again: bool = True,
    ) -> None:
        """again: with what is needed to run the chain once more, where payloads are written."""
        log = self._log
        if log is None or not log.on:
            return
        from hermes_ext.turns.decisions.line import DecisionEvent

        log.write(
            DecisionEvent(
                hook=str(hook),
                before=event.value if before is None and event is not None else before,
                outcome=partial(as_logged, outcome),
                turn=self.uid,
                session=self.session_id,
                conversation=self.conversation_id,
                tool=getattr(event, "tool_name", None),
                tool_call_id=getattr(event, "tool_call_id", None),
                event=event if again else None,
                scope=scope if again else None,
                directory=self._scope.cwd,
            )
        )


def _lent(scope: Scope, outer: Call | None) -> Scope:
    """A scope for handlers that are called inside of a call that may be left behind."""
    if outer is None or all(call.loan is None for call in outer.around()):
        return scope
    return scope.lent(outer.lent)


def _injects(outcome: ChainOutcome) -> bool:
    if outcome.event is None:  # all passed, as most do
        return False
    return bool(outcome.system_injections or outcome.user_injections)


def _injected(outcome: ChainOutcome, after: int = 0, only: Keep | None = None) -> Iterator[Kept]:
    """What an outcome injects, behind so many messages; only: for how long."""
    found: dict[InjectionKind, tuple[Injection, ...]] = {
        "system": outcome.system_injections,
        "user": outcome.user_injections,
    }
    for kind, texts in found.items():
        for text in texts:
            if only in (None, text.keep):
                yield Kept(kind, text, f"{text.extension}/{text.handler}", after)


def _new(outcome: ChainOutcome, kind: InjectionKind, kept: Sequence[Kept]) -> list[Kept]:
    """What an outcome injects that `kept` does not already hold."""
    return [one for one in _injected(outcome) if one.kind == kind and one not in kept]


def as_logged(outcome: ChainOutcome) -> dict[str, Any]:
    """An outcome as the decision log wants it; the log keeps a digest of the value."""
    return {
        **outcome.to_json(),
        "value": outcome.final(outcome.value),
        "metadata": dict(outcome.metadata),
    }


def _final(outcome: ChainOutcome, call: ToolCall) -> Arguments:
    """The arguments of a call, as its handlers left them."""
    left = outcome.event if outcome.changed else call
    return left.arguments if isinstance(left, ToolCall) else call.arguments
