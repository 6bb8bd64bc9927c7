"""The chain: a fold of the handlers over one value. Pure: no pluggy, logging, host or disk.

`run` first calls the leading light handlers in a tight loop. As soon as one of them does anything
but return None, or a handler needs to be waited for, a `_Fold` takes over from that position.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

from attrs import frozen

from hermes_ext._failures import Crash, Failure, FailureBook, InvalidResult
from hermes_ext._handler import Handler, Pack
from hermes_ext._isolation import identical, own_copy
from hermes_ext._outcome import (
    Ask,
    ChainOutcome,
    Injection,
    Record,
    Step,
    made_outcome,
    outgoing,
    step_of,
)
from hermes_ext._payloads import (
    NO_METADATA,
    Event,
    LLMRequest,
    Scope,
    ToolCall,
    UserInput,
)
from hermes_ext._results import PASS, Action, HookName, HookResult
from hermes_ext._timeouts import workers

__all__ = [
    "Ask",
    "ChainOutcome",
    "CompiledChain",
    "Failure",
    "FailureBook",
    "Injection",
    "Step",
    "arun",
    "run",
]


class CompiledChain:
    """The handlers of one hook that match, in their order, made ready to run. Immutable.

    Args:
        hook: the hook.
        handlers: in order, transformers before guards.
        failures: where failures are counted.
    """

    __slots__ = ("complete", "failures", "groups", "handlers", "hook", "members", "passed")

    def __init__(
        self, hook: HookName, handlers: Sequence[Handler], failures: FailureBook | None = None
    ) -> None:
        self.hook = hook
        self.handlers = tuple(handlers)
        self.failures = FailureBook(handlers) if failures is None else failures
        self.members = frozenset(self.handlers)
        light = tuple(takewhile(_is_light, self.handlers))
        self.complete = len(light) == len(self.handlers)
        self.groups = _groups(light)
        self.passed = ChainOutcome(Action.PASS, trace=_Passed(self.handlers))

    def __bool__(self) -> bool:
        return bool(self.handlers)


def _is_light(handler: Handler) -> bool:
    return handler.inline and not handler.observe


# Neighbours that can be given the same arguments: their calls, how to make the arguments, the first
# of them and its place in the chain.
_Group: TypeAlias = tuple[tuple[Callable[..., Any], ...], Pack, Handler, int]


def _groups(handlers: Sequence[Handler]) -> tuple[_Group, ...]:
    groups: list[_Group] = []
    for place, handler in enumerate(handlers):
        if groups and handler.shares_arguments and groups[-1][2].signature == handler.signature:
            calls, pack, first, begin = groups[-1]
            groups[-1] = ((*calls, handler.call), pack, first, begin)
        else:
            groups.append(((handler.call,), handler.pack, handler, place))
    return tuple(groups)


@frozen
class _Passed:
    """The trace of a chain in which everyone passed."""

    handlers: tuple[Handler, ...]
    asks: tuple[Ask, ...] = ()
    metadata: Mapping[str, Any] = NO_METADATA
    system: tuple[Injection, ...] = ()
    user: tuple[Injection, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        return tuple(step_of(handler, Record(Action.PASS)) for handler in self.handlers)


# -- running ------------------------------------------------------------------------------------


def run(
    chain: CompiledChain,
    event: Event,
    scope: Scope,
    *,
    strict: bool = False,
    timed: bool = False,
) -> ChainOutcome:
    """Run a chain over an event.

    Args:
        chain: from `HookManager.chain`.
        event: what it is about; handlers get copies of its contents.
        scope: the turn's values.
        strict: also find out whether handlers change their arguments in place (`Step.mutated`).
        timed: also measure each handler (`Step.duration_ns`).

    Raises:
        KeyboardInterrupt: and nothing else, whatever handlers do.
    """
    fold = _begun(chain, event, scope, strict, timed)
    if fold is None:
        return chain.passed
    handlers = chain.handlers
    while not fold.ended and fold.place < len(handlers):
        fold.attempt(handlers[fold.place])
        fold.place += 1
    return fold.outcome()


async def arun(
    chain: CompiledChain,
    event: Event,
    scope: Scope,
    *,
    strict: bool = False,
    timed: bool = False,
) -> ChainOutcome:
    """`run`, awaiting async handlers in the caller's loop.

    Raises:
        KeyboardInterrupt: raised by a handler.
        asyncio.CancelledError: the caller's task was cancelled.
    """
    fold = _begun(chain, event, scope, strict, timed)
    if fold is None:
        return chain.passed
    handlers = chain.handlers
    while not fold.ended and fold.place < len(handlers):
        handler = handlers[fold.place]
        if handler.inline:
            fold.attempt(handler)
        else:
            await fold.attempt_async(handler)
        fold.place += 1
    return fold.outcome()


def _begun(
    chain: CompiledChain, event: Event, scope: Scope, strict: bool, timed: bool
) -> _Fold | None:
    """The chain after its leading light handlers; None if that was all and everyone passed."""
    ailing = chain.failures.ailing
    if strict or timed or (ailing and not chain.members.isdisjoint(ailing)):
        fold = _Fold(chain, event, scope, 0)
        fold.strict, fold.examined = strict, strict or timed
        return fold
    for functions, pack, first, place in chain.groups:
        calls = iter(functions)
        try:
            returned = _first_opinion(calls, pack(event, scope, first, NO_METADATA))
            if returned is None:
                continue
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code; one class of failure
            fold = _Fold(chain, event, scope, place + _last(functions, calls))
            fold.failed(chain.handlers[fold.place], error)
        else:
            fold = _Fold(chain, event, scope, place + _last(functions, calls))
            fold.returned(chain.handlers[fold.place], returned)
        fold.place += 1
        return fold
    if chain.complete:
        return None
    first_heavy = sum(len(functions) for functions, *_ in chain.groups)
    return _Fold(chain, event, scope, first_heavy)


def _first_opinion(calls: Iterator[Callable[..., Any]], values: tuple[Any, ...]) -> Any:
    """Call in turn with the same arguments until one returns something; None if none does."""
    # Measured: f(*values) costs a fifth more than f(a, b), and enumerate() a quarter.
    if len(values) == 1:
        (one,) = values
        for function in calls:
            if (returned := function(one)) is not None and returned is not PASS:
                return returned
    elif len(values) == 2:
        one, two = values
        for function in calls:
            if (returned := function(one, two)) is not None and returned is not PASS:
                return returned
    else:
        for function in calls:
            if (returned := function(*values)) is not None and returned is not PASS:
                return returned
    return None


def _last(functions: tuple[Callable[..., Any], ...], calls: Any) -> int:
    # The first one, if not even its arguments could be made.
    left: int = calls.__length_hint__()
    return max(len(functions) - left - 1, 0)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except BaseException as broken:
        if isinstance(broken, KeyboardInterrupt):
            raise
        return f"a {type(value).__name__}"
    text = text if len(text) <= 80 else f"{text[:79]}…"
    return f"{text} ({type(value).__name__})"


class _Fold:
    """The state of a running chain, and what each handler's result does to it.

    `event` is the value as the handlers left it, `view` what the next handler is shown: the same
    with the injections so far.
    """

    # Most chains change few of these: what stays as it is costs nothing.
    answer: str | None = None
    asks: tuple[Ask, ...] = ()
    block: tuple[str, str] | None = None
    changed = False
    ended = False
    examined = False
    metadata: Mapping[str, Any] = NO_METADATA
    rewrote = False
    strict = False
    system: tuple[Injection, ...] = ()
    user: tuple[Injection, ...] = ()

    def __init__(self, chain: CompiledChain, event: Any, scope: Scope, place: int) -> None:
        self.began = time.perf_counter_ns()
        self.chain = chain
        self.event = self.view = event
        self.scope = scope
        self.place = place
        # Of a failure only the crash is kept; its record is made when somebody reads it.
        self.records: dict[int, Record | Crash] = {}

    def _record(self, action: Action) -> Record:
        record = self.records[self.place] = Record(action)
        return record

    # -- calling --------------------------------------------------------------------------------

    def attempt(self, handler: Handler) -> None:
        """Call a handler and settle what it did, waiting for it where that is needed."""
        if self._is_suspended(handler):
            return
        began, view = time.perf_counter_ns() if self.examined else 0, self.view
        values: tuple[Any, ...] | None = None
        try:
            values = handler.pack(view, self.scope, handler, self.metadata)
            ended = (handler.call(*values), None) if handler.inline else None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code; one class of failure
            self.failed(handler, error)
        else:
            self._settle(handler, *(ended or _waited_for(handler, values)))
        if self.examined:
            self._examine(handler, values, began, view)

    async def attempt_async(self, handler: Handler) -> None:
        """As `attempt`, awaiting a handler that is async or has a timeout."""
        from hermes_ext._aio import awaited

        if self._is_suspended(handler):
            return
        began, view = time.perf_counter_ns() if self.examined else 0, self.view
        values: tuple[Any, ...] | None = None
        try:
            values = handler.pack(view, self.scope, handler, self.metadata)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the host's state can fail in any way
            self.failed(handler, error)
        else:
            # What is raised here concerns the caller's task; the handler's error is returned.
            self._settle(handler, *await awaited(handler, handler.call, values))
        if self.examined:
            self._examine(handler, values, began, view)

    def _is_suspended(self, handler: Handler) -> bool:
        if handler not in self.chain.failures.suspended:
            return False
        self._record(Action.PASS).skipped = "suspended"
        return True

    def _settle(self, handler: Handler, returned: Any, error: BaseException | None) -> None:
        if error is None:
            self.returned(handler, returned)
        elif isinstance(error, KeyboardInterrupt):
            raise error
        else:
            self.failed(handler, error)

    def _examine(
        self, handler: Handler, values: tuple[Any, ...] | None, began: int, view: Event
    ) -> None:
        record = self.records[self.place] = self._record_at(self.place, handler)
        record.duration_ns = time.perf_counter_ns() - began
        if self.strict and values is not None:
            record.mutated = record.action is not Action.REWRITE and _touched(
                handler.given(values), view
            )

    # -- settling -------------------------------------------------------------------------------

    def returned(self, handler: Handler, returned: Any) -> None:
        """Settle what a handler returned."""
        event: Event | None = None
        if returned is not None:
            try:
                event = self._checked(handler, returned)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - values can be foreign objects
                self.failed(handler, error)
                return
        if handler in self.chain.failures.ailing:
            self.chain.failures.worked(handler)
        if returned is None:
            return
        if handler.observe:
            self._observed(returned, event)
            return
        if returned.metadata:
            self.metadata = {**self.metadata, **own_copy(dict(returned.metadata))}
            self._record(Action.PASS)
        if returned.action is not Action.PASS:
            record = self._record(returned.action)
            _SETTLE[returned.action](self, handler, returned, record, event)

    def _checked(self, handler: Handler, returned: Any) -> Event | None:
        """The event after a rewrite, None for other actions; raises where it is not allowed."""
        if not isinstance(returned, HookResult):
            _close(returned)
            raise InvalidResult(f"returned {_shown(returned)}; expected None or a HookResult")
        action = returned.action
        if action not in handler.allowed:
            kind = "guards of " if handler.guard else ""
            allowed = ", ".join(one.value for one in Action if one in handler.allowed)
            raise InvalidResult(
                f"returned {action.value!r}; {kind}{handler.hook.value} may return {allowed}"
            )
        to_the_user = handler.hook is not HookName.INTERCEPT_TOOL_CALL
        if action is Action.ANSWER and to_the_user and not returned.value.strip():
            raise InvalidResult("returned 'answer' without text; expected the reply to the user")
        if action is not Action.REWRITE:
            return None
        problem = self.event.problem(returned.value)
        if problem is not None:
            raise InvalidResult(
                f"returned 'rewrite' with {problem}; expected {self.event.expected}"
            )
        return self._rewritten(returned.value)

    def _rewritten(self, value: Any) -> Event:
        event: Event = self.view.rewritten(value)
        check = self.scope.check_tool_args
        if check is not None and isinstance(event, ToolCall):
            problem = check(event.tool_name, own_copy(event.tool_args))
            if problem is not None:
                raise InvalidResult(
                    f"rewrote the arguments of {event.tool_name} to what its schema refuses: "
                    f"{problem}"
                )
        return event

    def _observed(self, result: HookResult[Any], event: Event | None) -> None:
        record = self._record(result.action)
        record.observed = True
        record.reason = result.value if result.action in _HAVE_REASON else None
        if event is not None:
            record.changed = not identical(event.value, self.view.value)

    def _block(self, handler: Handler, result: HookResult[Any], record: Record, _: Any) -> None:
        self.block = (handler.extension, result.value)
        self.ended = True
        record.reason = result.value

    def _answer(self, _h: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        self.answer = result.value
        self.ended = True

    def _ask(self, handler: Handler, result: HookResult[Any], record: Record, _: Any) -> None:
        ask = Ask(handler.extension, handler.name, result.value, result.key)
        self.asks = (*self.asks, ask)
        record.reason = result.value

    def _rewrite(self, _h: Handler, _: HookResult[Any], record: Record, event: Any) -> None:
        self.rewrote = True
        record.changed = not identical(event.value, self.view.value)
        self.changed |= record.changed
        before, self.event, self.view = self.event, event, event
        if self.system or self.user:
            self.event = event.without(self.user, before.system_prompt)
            self.view = self.event.with_injections(self.system, self.user)

    def _inject(self, handler: Handler, result: HookResult[Any], _r: Record, _: Any) -> None:
        text = Injection(result.value, handler, result.keep)
        if result.action is Action.INJECT_SYSTEM:
            self.system = (*self.system, text)
        else:
            self.user = (*self.user, text)
        self.view = self.event.with_injections(self.system, self.user)

    def failed(self, handler: Handler, error: BaseException) -> None:
        """Settle a handler's failure, by its policy."""
        self.chain.failures.note(handler, error)
        self.records[self.place] = Crash(error)
        if handler.observe:
            return
        if handler.on_error == "block":
            text = f"{handler.name} failed ({type(error).__name__}), {_SO[handler.hook]}"
            self.block = (handler.extension, text)
            self.ended = True
        elif handler.on_error == "ask":
            text = f"{handler.name} failed ({type(error).__name__})"
            self.asks = (*self.asks, Ask(handler.extension, handler.name, text))

    # -- the end --------------------------------------------------------------------------------

    def outcome(self) -> ChainOutcome:
        """What the host gets."""
        if not self.records:
            return self.chain.passed
        action, value = self._decision()
        # The outcome may outlive its turn; the turn's state must not.
        del self.scope
        return made_outcome(
            action,
            value,
            self.event,
            changed=self.changed,
            blocked_by=None if self.block is None else self.block[0],
            duration_ns=time.perf_counter_ns() - self.began,
            trace=self,
        )

    def _decision(self) -> tuple[Action, Any]:
        if self.block is not None:
            return Action.BLOCK, self.block[1]
        if self.answer is not None:
            return Action.ANSWER, self.answer
        value = outgoing(self.event) if self.rewrote else None
        if self.asks:
            return Action.ASK, value
        if self.rewrote:
            return Action.REWRITE, value
        if self.system:
            return Action.INJECT_SYSTEM, None
        return (Action.INJECT_USER if self.user else Action.PASS), None

    def steps(self) -> tuple[Step, ...]:
        """What each handler did, in order."""
        return tuple(map(self._step, range(len(self.chain.handlers)), self.chain.handlers))

    def _step(self, place: int, handler: Handler) -> Step:
        record = self._record_at(place, handler)
        if place >= self.place:
            record.skipped = "ended"
        return step_of(handler, record)

    def _record_at(self, place: int, handler: Handler) -> Record:
        record = self.records.get(place)
        if isinstance(record, Record):
            return record
        made = Record(Action.PASS if record is None else Action(handler.on_error))
        made.failure = record
        made.observed = record is not None and handler.observe
        if record is not None and handler.on_error != "pass":
            made.reason = f"failed ({type(record.error).__name__})"
        return made


_Settle: TypeAlias = Callable[[_Fold, Handler, HookResult[Any], Record, Any], None]
_SETTLE: Final[Mapping[Action, _Settle]] = {
    Action.BLOCK: _Fold._block,
    Action.ANSWER: _Fold._answer,
    Action.ASK: _Fold._ask,
    Action.REWRITE: _Fold._rewrite,
    Action.INJECT_SYSTEM: _Fold._inject,
    Action.INJECT_USER: _Fold._inject,
}
_HAVE_REASON: Final = frozenset({Action.BLOCK, Action.ASK})
_SO: Final = {
    HookName.TRANSFORM_USER_INPUT: "so this input is refused",
    HookName.BEFORE_LLM_CALL: "so this request is refused",
    HookName.INTERCEPT_TOOL_CALL: "so this call is refused",
    HookName.TRANSFORM_TOOL_RESULT: "so this result is withheld",
}


def _close(returned: Any) -> None:
    # A coroutine that is dropped unawaited warns on stderr; the failure says it better.
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
        returned.close()


def _touched(given: Mapping[str, Any], view: Event) -> bool:
    """Whether a handler changed in place what it was given (its own copies)."""
    lent = _contents(view)
    own_event = given.get("event")
    return any(
        not identical(given[name], value) for name, value in lent.items() if name in given
    ) or (own_event is not None and not identical(_contents(own_event), lent))


def _contents(event: Event) -> dict[str, Any]:
    """By argument name, what handlers get copies of."""
    if isinstance(event, UserInput):
        return {"user_content": event.content}
    if isinstance(event, LLMRequest):
        return {"messages": event.messages}
    return {"tool_args": event.tool_args}


def _waited_for(handler: Handler, values: Any) -> tuple[Any, BaseException | None]:
    if handler.is_async:
        from hermes_ext._aio import call_async

        return call_async(handler, handler.call, values)
    return workers.call(handler, handler.call, values)
