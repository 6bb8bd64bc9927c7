"""The chain: a fold of the handlers over one value. Pure: no pluggy, logging, host or disk.

`run` first calls the leading light handlers in a tight loop. As soon as one of them does anything
but return None, or a handler needs to be waited for, a `_Fold` takes over from that position.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

from hermes_ext._interrupts import let_through
from hermes_ext.chain.calls import at_work
from hermes_ext.chain.failures import Crash, FailureBook, InvalidResult
from hermes_ext.chain.loans import Loan
from hermes_ext.chain.outcome import (
    Ask,
    ChainOutcome,
    Confine,
    Injection,
    Record,
    Step,
    Trace,
    made_outcome,
    outgoing,
    step_of,
)
from hermes_ext.chain.raised import readable
from hermes_ext.chain.timeouts import Ended, TimedOut, workers
from hermes_ext.hooks.bounds import Bounds
from hermes_ext.hooks.handler import Caller, Handler
from hermes_ext.hooks.isolation import identical, own_copy
from hermes_ext.hooks.payloads import Event, LLMRequest, Scope, ToolCall
from hermes_ext.hooks.results import HookResult
from hermes_ext.hooks.sendable import Unsendable, is_sendable, sendable
from hermes_ext.hooks.settings import named_in
from hermes_ext.hooks.table import ACTIONS, TABLE, Action, HookName, complete

Watch: TypeAlias = Callable[[int, Event, Event], None]
"""Told of each handler that was called: its place, the event it was shown, the one it left."""

_PART: Final = 16  # handlers that are called by one piece of code
_BLOCK: Final = Action.BLOCK  # looking a member up in its class takes as long as a call
_PASSES: Final = Action.PASS.severity
_REWRITES: Final = Action.REWRITE.severity
_CONFINES: Final = Action.CONFINE.severity
_ASKS: Final = Action.ASK.severity


class CompiledChain:
    """The handlers of one hook that match, in their order, made ready to run. Immutable.

    Args:
        hook: the hook.
        handlers: in order, transformers before guards.
        failures: where failures are counted.
    """

    __slots__ = (
        "ailing",
        "complete",
        "failures",
        "handlers",
        "hook",
        "light",
        "members",
        "parts",
        "passed",
        "suspended",
    )

    def __init__(
        self, hook: HookName, handlers: Sequence[Handler], failures: FailureBook | None = None
    ) -> None:
        self.hook = hook
        self.handlers = tuple(handlers)
        self.failures = FailureBook(handlers) if failures is None else failures
        # The book's own sets, which each run looks at.
        self.ailing, self.suspended = self.failures.ailing, self.failures.suspended
        self.members = frozenset(self.handlers)
        self.light = tuple(takewhile(_is_light, self.handlers))
        self.complete = len(self.light) == len(self.handlers)
        self.parts = tuple(
            (Caller(self.light[place : place + _PART]), place)
            for place in range(0, len(self.light), _PART)
        )
        self.passed = ChainOutcome(Action.PASS, trace=_Quiet(self.handlers, len(handlers), None))

    def __bool__(self) -> bool:
        return bool(self.handlers)


def _is_light(handler: Handler) -> bool:
    return handler.inline and not handler.observe


class _Quiet(Trace):
    """The trace of a chain in which everyone passed, up to one that failed if `crash` is given."""

    __slots__ = ("crash", "decided", "handlers", "reached")

    def __init__(self, handlers: tuple[Handler, ...], reached: int, crash: Crash | None) -> None:
        self.handlers = handlers
        self.reached = reached
        self.crash = crash
        self.decided = None if crash is None else reached

    def steps(self) -> tuple[Step, ...]:
        return tuple(map(self.step, range(len(self.handlers))))

    def step(self, place: int) -> Step:
        handler = self.handlers[place]
        if place == self.reached and self.crash is not None:
            return step_of(handler, _record_of_crash(handler, self.crash))
        record = Record(Action.PASS)
        if place > self.reached:
            record.skipped = "ended"
        return step_of(handler, record)


def _record_of_crash(handler: Handler, crash: Crash) -> Record:
    policy = handler.policy(crash[0])
    record = Record(Action(policy))
    record.failure = crash
    record.observed = handler.observe
    if policy != "pass":
        record.reason = f"failed ({type(crash[0]).__name__})"
    return record


# -- running ------------------------------------------------------------------------------------


def run(
    chain: CompiledChain,
    event: Event,
    scope: Scope,
    strict: bool = False,
    timed: bool = False,
    watch: Watch | None = None,
) -> ChainOutcome:
    """Run a chain over an event.

    Args:
        chain: from `HookManager.chain`.
        event: what it is about; handlers get copies of its contents.
        scope: the turn's values.
        strict: also find out whether handlers change their arguments in place (`Step.mutated`).
        timed: also measure each handler (`Step.duration_ns`).
        watch: called after each handler that was called.

    Raises:
        KeyboardInterrupt: a person's Ctrl-C, and nothing else, whatever handlers do.
    """
    began = perf_counter_ns()
    suspended = chain.suspended and not chain.members.isdisjoint(chain.suspended)
    if suspended or strict or timed or watch is not None:
        return _Fold(chain, event, scope, began).examining(strict, timed, watch).finish()
    for caller, place in chain.parts:
        try:
            acted = caller.call_all(event, scope)
        except BaseException as raised:  # noqa: BLE001 - foreign code; one class of failure
            error = readable(raised)
            if error.__context__ is not None or isinstance(error, KeyboardInterrupt):
                let_through(error)
            return _after_crash(chain, event, scope, began, (caller, place), error)
        if acted is not None:
            return _after_result(chain, event, scope, began, place + acted[0], acted[1])
    if chain.ailing:
        chain.failures.worked(chain.light, scope.session_id)
    if chain.complete:
        return chain.passed
    return _Fold(chain, event, scope, began, len(chain.light)).finish()


def _after_result(
    chain: CompiledChain, event: Event, scope: Scope, began: int, place: int, returned: Any
) -> ChainOutcome:
    """What becomes of a chain in which those before `place` passed, and that one returned this."""
    if place and chain.ailing:
        chain.failures.worked(chain.handlers[:place], scope.session_id)
    fold = _Fold(chain, event, scope, began, place)
    fold.returned(chain.handlers[place], returned)
    fold.place += 1
    return fold.finish()


def _after_crash(
    chain: CompiledChain,
    event: Event,
    scope: Scope,
    began: int,
    part: tuple[Caller, int],
    error: BaseException,
) -> ChainOutcome:
    """What becomes of a chain in which one of this part raised, and those before it passed."""
    caller, place = part
    if not caller.alone:
        place += caller.place_of(error)
    handlers, failures = chain.handlers, chain.failures
    handler = handlers[place]
    if place and failures.ailing:
        failures.worked(handlers[:place], scope.session_id)
    if handler.policy(error) != "block":
        fold = _Fold(chain, event, scope, began, place)
        fold.failed(handler, error)
        fold.place += 1
        return fold.finish()
    frames = error.__traceback__ and error.__traceback__.tb_next  # `run` and the caller's are ours
    frames = frames and frames.tb_next
    crash = failures.note(handler, error, frames, began, scope.session_id)
    trace = _Quiet(handlers, place, crash)
    text = f"{handler.name} failed ({type(error).__name__}){TABLE[chain.hook].so}"
    took = perf_counter_ns() - began
    return made_outcome(_BLOCK, text, event, False, handler.extension, took, trace)


async def arun(
    chain: CompiledChain, event: Event, scope: Scope, *, strict: bool = False, timed: bool = False
) -> ChainOutcome:
    """`run`, while the caller's loop goes on as long as handlers are awaited.

    Raises:
        KeyboardInterrupt: a person's Ctrl-C.
        asyncio.CancelledError: the caller's task was cancelled.
    """
    fold = _Fold(chain, event, scope, perf_counter_ns()).examining(strict, timed)
    return await fold.finish_async()


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except BaseException as broken:  # noqa: BLE001 - foreign code
        let_through(broken)
        return f"a {type(value).__name__}"
    text = text if len(text) <= 80 else f"{text[:79]}…"
    return f"{text} ({type(value).__name__})"


class _Fold(Trace):
    """The state of a running chain, and what each handler's result does to it.

    `decided` is the place of the handler that has made the outcome what it is so far, `severity`
    that of what it did. `first` is the value as it came in, `event` as the handlers left it, `view`
    what the next handler is shown: the same with the injections so far.
    """

    # Most chains change few of these: what stays as it is costs nothing.
    blocked_by: str | None = None
    changed = False
    ended = False
    examined = False
    rewrote = False
    severity = 0
    strict = False
    value: Any = None
    watch: Watch | None = None

    def __init__(
        self, chain: CompiledChain, event: Any, scope: Scope, began: int, place: int = 0
    ) -> None:
        self.began = began
        self.chain = chain
        self.first = self.event = self.view = event
        self.scope = scope
        self.place = place
        # Of a failure only the crash is kept; its record is made when somebody reads it.
        self.records: dict[int, Record | Crash] = {}

    def examining(self, strict: bool, timed: bool, watch: Watch | None = None) -> _Fold:
        """The same, finding out more about each handler if so wanted."""
        self.strict, self.examined = strict, strict or timed or watch is not None
        self.watch = watch
        return self

    def finish(self) -> ChainOutcome:
        """Call the handlers from `place` on."""
        handlers = self.chain.handlers
        while not self.ended and self.place < len(handlers):
            self.attempt(handlers[self.place])
            self.place += 1
        return self.outcome()

    async def finish_async(self) -> ChainOutcome:
        """As `finish`, awaiting those that are async or have a timeout."""
        handlers = self.chain.handlers
        while not self.ended and self.place < len(handlers):
            handler = handlers[self.place]
            if handler.inline:
                self.attempt(handler)
            else:
                await self.attempt_async(handler)
            self.place += 1
        return self.outcome()

    def _record(self, action: Action) -> Record:
        record = self.records[self.place] = Record(action)
        return record

    # -- calling --------------------------------------------------------------------------------

    def attempt(self, handler: Handler) -> None:
        """Call a handler and settle what it did, waiting for it where that is needed."""
        if self.chain.failures.is_suspended(handler, self.scope.session_id):
            self._record(Action.PASS).skipped = "suspended"
            return
        began, view = perf_counter_ns() if self.examined else 0, self.view
        values: tuple[Any, ...] | None = None
        taken: _Taken | None = None
        error: BaseException | None = None
        try:
            if handler.inline:
                values = handler.pack(view, self.scope, handler, self.metadata)
                taken = self._taken(handler, handler.call(*values))
            else:
                values, lent = self._lent(handler)
                call = self._within_limit(handler, lent)
                taken, error = _waited_for(handler, call, values, self.scope, lent)
        except BaseException as raised:  # noqa: BLE001 - foreign code; one class of failure
            error = raised
        self._settle(handler, taken, error)
        if self.examined:
            self._examine(handler, values, began, view)

    async def attempt_async(self, handler: Handler) -> None:
        """As `attempt`, awaiting a handler that is async or has a timeout."""
        if self.chain.failures.is_suspended(handler, self.scope.session_id):
            self._record(Action.PASS).skipped = "suspended"
            return
        from asyncio import CancelledError  # for this alone, importing it would take too long

        began, view = perf_counter_ns() if self.examined else 0, self.view
        values: tuple[Any, ...] | None = None
        taken: _Taken | None = None
        error: BaseException | None = None
        try:
            values, lent = self._lent(handler)
            call = self._within_limit(handler, lent)
            taken, error = await _awaited(handler, call, values, self.scope, lent)
        except (CancelledError, GeneratorExit) as raised:
            if values is not None:
                raise  # the caller's task is over; what the handler raised is returned
            error = raised
        except BaseException as raised:  # noqa: BLE001 - the host's state can fail in any way
            error = raised
        self._settle(handler, taken, error)
        if self.examined:
            self._examine(handler, values, began, view)

    def _lent(self, handler: Handler) -> tuple[tuple[Any, ...], Loan]:
        """The arguments of a handler that may be left behind, and its loan of what is shared."""
        loan, scope = Loan(), self.scope
        if "state" in handler.wants or "session_state" in handler.wants:
            scope = scope.lent(loan.of)
        return handler.pack(self.view, scope, handler, self.metadata), loan

    def _within_limit(self, handler: Handler, loan: Loan) -> Callable[..., Any]:
        """The handler, and what is read of its result or its error: that may be code as well, and
        has no time of its own.
        """
        call = handler.call

        async def awaited(*values: Any) -> _Taken | None:
            try:
                returned = call(*values)
                returned = await returned if inspect.isawaitable(returned) else returned
                return self._taken(handler, returned)
            finally:
                loan.let_go()

        def called(*values: Any) -> _Taken | None:
            try:
                return self._taken(handler, call(*values))
            finally:
                loan.let_go()

        return awaited if handler.is_async else called

    def _settle(self, handler: Handler, taken: _Taken | None, error: BaseException | None) -> None:
        if error is None:
            self._worked(handler, taken)
        else:
            error = readable(error)
            let_through(error)
            self.failed(handler, error)

    def _examine(
        self, handler: Handler, values: tuple[Any, ...] | None, began: int, view: Event
    ) -> None:
        record = self.records[self.place] = self._record_at(self.place, handler)
        record.duration_ns = perf_counter_ns() - began
        if self.strict and values is not None:
            record.mutated = record.action is not Action.REWRITE and _touched(
                handler.given(values), view
            )
        if self.watch is not None:
            self.watch(self.place, view, self.view)

    # -- settling -------------------------------------------------------------------------------

    def returned(self, handler: Handler, returned: Any) -> None:
        """Settle what a handler returned."""
        taken: _Taken | None = None
        error: BaseException | None = None
        try:
            taken = self._taken(handler, returned)
        except BaseException as raised:  # noqa: BLE001 - values can be foreign objects
            error = raised
        self._settle(handler, taken, error)

    def _taken(self, handler: Handler, returned: Any) -> _Taken | None:
        """What a handler returned, checked and made ours; raises where that cannot be."""
        if returned is None:
            return None
        result = _own_result(returned)
        event = self._checked(handler, result)
        return result, event, own_copy(dict(result.metadata)) if result.metadata else None

    def _worked(self, handler: Handler, taken: _Taken | None) -> None:
        if handler in self.chain.failures.ailing:
            self.chain.failures.worked((handler,), self.scope.session_id)
        if taken is None:
            return
        returned, event, metadata = taken
        if handler.observe:
            self._observed(returned, event, metadata)
            return
        if metadata is not None:
            self.metadata = {**self.metadata, **metadata}
            self._record(Action.PASS).setting = named_in(metadata)
            if returned.action is Action.PASS and "setting" in metadata:
                self._decides(_PASSES)
        if returned.action is not Action.PASS:
            record = self._recorded(returned, metadata)
            _SETTLE[returned.action](self, handler, returned, record, event)

    def _checked(self, handler: Handler, returned: HookResult[Any]) -> Event | None:
        """The event after a rewrite, None for other actions; raises where it is not allowed."""
        action = returned.action
        wanted = _TYPES.get(action)
        if type(action) is not Action or wanted not in (None, type(returned.value)):
            raise InvalidResult("returned a HookResult that was changed after it was made")
        if action not in handler.allowed:
            kind = "guards of " if handler.guard else ""
            allowed = ", ".join(one.value for one in Action if one in handler.allowed)
            raise InvalidResult(
                f"returned {action.value!r}; {kind}{handler.hook.value} may return {allowed}"
            )
        if action is not Action.REWRITE:
            return None
        problem = self.event.problem(returned.value)
        if problem is not None:
            raise InvalidResult(
                f"returned 'rewrite' with {problem}; expected {self.event.expected}"
            )
        return self._rewritten(returned.value)

    def _rewritten(self, value: Any) -> Event:
        event: Event = self._sendable(self.view.rewritten(value), value)
        check = self.scope.check_tool_args
        if check is not None and isinstance(event, ToolCall):
            problem = check(event.tool_name, own_copy(event.tool_args))
            if problem is not None:
                raise InvalidResult(
                    f"rewrote the arguments of {event.tool_name} to what its schema refuses: "
                    f"{problem}"
                )
        return event

    def _sendable(self, event: Any, value: Any) -> Any:
        """The event after a rewrite to `value`, as a host can send it."""
        if isinstance(value, str):
            return event  # `HookResult` has seen to it
        before, after = outgoing(self.view), outgoing(event)  # copies of ours: nobody changes them
        # Another text in an argument is another file or command, so there it is a failure.
        replace = not isinstance(event, ToolCall)
        known = before if isinstance(event, LLMRequest) else ()
        try:
            clean = sendable(after, known, replace=replace)
        except Unsendable as problem:
            if not is_sendable(before, replace=replace):
                return event  # the host's own value is no better
            raise InvalidResult(f"returned 'rewrite' with {problem}") from None
        return event if clean is after else self.view.rewritten(clean)

    def _observed(
        self, result: HookResult[Any], event: Event | None, metadata: Mapping[str, Any] | None
    ) -> None:
        record = self._recorded(result, metadata)
        record.observed = True
        if event is not None:
            record.changed = not identical(event.value, self.view.value)

    def _recorded(self, result: HookResult[Any], metadata: Mapping[str, Any] | None) -> Record:
        record = self._record(result.action)
        record.setting = named_in(metadata)
        if result.action in _HAVE_REASON:
            record.reason = result.value
        elif result.action is Action.CONFINE:
            record.reason, record.bounds = result.value.reason, result.value
        return record

    def _decides(self, severity: int) -> None:
        """The handler at work decides, unless one before it did something more severe."""
        if severity >= self.severity:
            self.severity, self.decided = severity, self.place

    def _ends(self, action: Action, value: str, blocked_by: str | None = None) -> None:
        """The handler at work ends the chain."""
        self.value, self.blocked_by = value, blocked_by
        self.severity, self.decided = action.severity, self.place
        self.ended = True

    def _block(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        self._ends(_BLOCK, result.value, handler.extension)

    def _answer(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        # A reply of blanks says nothing; what a tool gives is taken as it is.
        is_result = handler.hook is HookName.INTERCEPT_TOOL_CALL
        self._ends(Action.ANSWER, result.value if is_result or result.value.strip() else "")

    def _ask(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        self._asks(handler, result.value, result.key)

    def _asks(self, handler: Handler, reason: str, key: str | None = None) -> None:
        if not self.asks:
            self._decides(_ASKS)
        ask = Ask(handler.extension, handler.name, reason, key, self.place)
        self.asks = (*self.asks, ask)

    def _confine(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        if not self.confines:
            self._decides(_CONFINES)
        confine = Confine(handler.extension, handler.name, result.value, self.place)
        self.confines = (*self.confines, confine)

    def _rewrite(self, _h: Handler, _: HookResult[Any], record: Record, event: Any) -> None:
        record.changed = not identical(event.value, self.view.value)
        if record.changed or not self.rewrote:
            self._decides(_REWRITES)
        self.rewrote = True
        self.changed |= record.changed
        before, self.event, self.view = self.event, event, event
        if self.system or self.user:
            self.event = event.without(self.user, before.system_prompt)
            self.view = self.event.with_injections(self.system, self.user)

    def _inject(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        text = Injection(result.value, handler, result.keep)
        self._decides(result.action.severity)
        if result.action is Action.INJECT_SYSTEM:
            self.system = (*self.system, text)
        else:
            self.user = (*self.user, text)
        self.view = self.event.with_injections(self.system, self.user)

    def failed(self, handler: Handler, error: BaseException) -> None:
        """Settle a handler's failure, by its policy."""
        frames = error.__traceback__ and error.__traceback__.tb_next
        self.records[self.place] = self.chain.failures.note(
            handler, error, frames, self.began, self.scope.session_id
        )
        if handler.observe:
            return
        text = f"{handler.name} failed ({type(error).__name__})"
        policy = handler.policy(error)
        if policy == "block":
            self._ends(_BLOCK, text + TABLE[handler.hook].so, handler.extension)
        elif policy == "ask":
            self._asks(handler, text)
        else:
            self._decides(_PASSES)

    # -- the end --------------------------------------------------------------------------------

    def outcome(self) -> ChainOutcome:
        """What the host gets."""
        if not self.records:
            return self.chain.passed
        if self.rewrote and not self.ended:
            self.value = outgoing(self.event)
        # The outcome may outlive its turn; the turn's state must not.
        self.scope = None  # type: ignore[assignment]
        took = perf_counter_ns() - self.began
        action, by = _RANKED[self.severity], self.blocked_by
        return made_outcome(action, self.value, self.event, self.changed, by, took, self)

    def steps(self) -> tuple[Step, ...]:
        return tuple(map(self.step, range(len(self.chain.handlers))))

    def step(self, place: int) -> Step:
        handler = self.chain.handlers[place]
        record = self._record_at(place, handler)
        if place >= self.place:
            record.skipped = "ended"
        return step_of(handler, record)

    def _record_at(self, place: int, handler: Handler) -> Record:
        record = self.records.get(place)
        if isinstance(record, tuple):
            return _record_of_crash(handler, record)
        return Record(Action.PASS) if record is None else record


_Taken: TypeAlias = tuple[HookResult[Any], Event | None, dict[str, Any] | None]
"""What a handler returned, the event after it if it is a rewrite, and its metadata."""
_Settle: TypeAlias = Callable[[_Fold, Handler, HookResult[Any], Record, Any], None]
_RANKED: Final = tuple(Action)
_SETTLE: Final[Mapping[Action, _Settle]] = complete(
    "method of the fold",
    {
        Action.BLOCK: _Fold._block,
        Action.ANSWER: _Fold._answer,
        Action.ASK: _Fold._ask,
        Action.CONFINE: _Fold._confine,
        Action.REWRITE: _Fold._rewrite,
        Action.INJECT_SYSTEM: _Fold._inject,
        Action.INJECT_USER: _Fold._inject,
    },
    _RANKED[1:],
)
_TEXTS: Final = frozenset(one for one, row in ACTIONS.items() if row.value in ("text", "reply"))
_TYPES: Final[Mapping[Action, type]] = {Action.CONFINE: Bounds, **dict.fromkeys(_TEXTS, str)}
_HAVE_REASON: Final = frozenset(one for one in _TEXTS if ACTIONS[one].judges)


def _own_result(returned: Any) -> HookResult[Any]:
    """What was returned, if it is a result. Of another class it is made again: what its methods
    say is asked once.
    """
    if type(returned) is HookResult:
        return returned
    if isinstance(returned, HookResult):
        return HookResult(
            returned.action, returned.value, returned.metadata, keep=returned.keep, key=returned.key
        )
    _close(returned)
    raise InvalidResult(f"returned {_shown(returned)}; expected None or a HookResult")


def _close(returned: Any) -> None:
    # A coroutine that is dropped unawaited warns on stderr; the failure says it better.
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
        returned.close()


def _touched(given: Mapping[str, Any], view: Event) -> bool:
    """Whether a handler changed in place what it was given (its own copies)."""
    lent = view.contents
    own_event = given.get("event")
    return any(
        not identical(given[name], value) for name, value in lent.items() if name in given
    ) or (own_event is not None and not identical(own_event.contents, lent))


def _waited_for(
    handler: Handler, function: Callable[..., Any], values: Any, scope: Scope, loan: Loan
) -> Ended:
    """What a handler came to that runs elsewhere, while this thread waits."""
    call = workers.call
    if handler.is_async:
        from hermes_ext.chain.aio import call_async as call
    with at_work(handler, scope, loan) as context:
        return _or_left(call(handler, function, values, scope, context), loan)


async def _awaited(
    handler: Handler, function: Callable[..., Any], values: Any, scope: Scope, loan: Loan
) -> Ended:
    """The same, while the running loop goes on."""
    from hermes_ext.chain.aio import awaited

    with at_work(handler, scope, loan) as context:
        return _or_left(await awaited(handler, function, values, scope, context), loan)


def _or_left(ended: Ended, loan: Loan) -> Ended:
    """What a handler came to; one that ran out of time is cut from what others share."""
    error = ended[1]
    if isinstance(error, TimedOut):
        error.held = loan.take_back()
    return ended
