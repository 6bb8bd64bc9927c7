"""The chain: a fold of the handlers over one value. Pure: no pluggy, logging, host or disk.

`run` first calls the leading light handlers in a tight loop. As soon as one of them does anything
but return None, or a handler needs to be waited for, a `_Fold` takes over from that position.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from hermes_ext._failures import Failed, Failure, FailureBook, Invalid
from hermes_ext._handler import Call, Frame, Handler
from hermes_ext._isolation import identical, own_copy
from hermes_ext._outcome import Ask, ChainOutcome, Injection, Record, Step, Trace, outgoing
from hermes_ext._payloads import (
    NO_METADATA,
    Event,
    LLMRequest,
    Scope,
    ToolCall,
    ToolResult,
    UserInput,
)
from hermes_ext._results import PASS, Action, HookName, HookResult
from hermes_ext._timeouts import call_in_worker

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

    __slots__ = (
        "complete",
        "failures",
        "handlers",
        "hook",
        "members",
        "optional",
        "packs",
        "passed",
        "sprint",
    )

    def __init__(
        self, hook: HookName, handlers: Sequence[Handler], failures: FailureBook | None = None
    ) -> None:
        self.hook = hook
        self.handlers = tuple(handlers)
        self.failures = FailureBook() if failures is None else failures
        self.members = frozenset(self.handlers)
        light = _leading_light(self.handlers)
        self.complete = len(light) == len(self.handlers)
        self.optional = frozenset[str]().union(*(h.signature.optional for h in light))
        self.packs, self.sprint = _compiled(light)
        self.passed = ChainOutcome(Action.PASS, trace=Trace(self.handlers))

    def __bool__(self) -> bool:
        return bool(self.handlers)


def _leading_light(handlers: Sequence[Handler]) -> tuple[Handler, ...]:
    count = next(
        (place for place, handler in enumerate(handlers) if not handler.light), len(handlers)
    )
    return tuple(handlers[:count])


_Pack: TypeAlias = tuple[Handler, Callable[[Frame], tuple[Any, ...]]]
_Sprinter: TypeAlias = tuple[Callable[..., Any], int]


def _compiled(handlers: Sequence[Handler]) -> tuple[tuple[_Pack, ...], tuple[_Sprinter, ...]]:
    """Argument packs, shared where handlers want the same unchangeable values; and the calls."""
    packs: list[_Pack] = []
    shared: dict[tuple[str, ...], int] = {}
    sprint: list[_Sprinter] = []
    for handler in handlers:
        slot = shared.get(handler.wants) if handler.shares_arguments else None
        if slot is None:
            slot = len(packs)
            packs.append((handler, handler.pack))
            if handler.shares_arguments:
                shared[handler.wants] = slot
        sprint.append((handler.call, slot))
    return tuple(packs), tuple(sprint)


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
    fold = _sprint(chain, event, scope, strict or timed)
    if fold is None:
        return chain.passed
    fold.strict, fold.timed = strict, timed
    for handler in fold:
        fold.attempt(handler)
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
    fold = _sprint(chain, event, scope, strict or timed)
    if fold is None:
        return chain.passed
    fold.strict, fold.timed = strict, timed
    for handler in fold:
        if handler.inline:
            fold.attempt(handler)
        else:
            await fold.attempt_async(handler)
    return fold.outcome()


def _sprint(chain: CompiledChain, event: Event, scope: Scope, slow: bool) -> _Fold | None:
    """Call the leading light handlers; None if that was all and everyone passed."""
    ailing = chain.failures.ailing
    if (
        slow
        or (ailing and not chain.members.isdisjoint(ailing))
        or (chain.optional and not chain.optional.isdisjoint(scope.unknown))
    ):
        return _Fold(chain, event, scope, 0)
    frame = Frame(event, scope)
    packs = []
    for frame.handler, pack in chain.packs:
        packs.append(pack(frame))
    place = -1
    try:
        for place, (function, slot) in enumerate(chain.sprint):  # noqa: B007 - used after the loop
            returned = function(*packs[slot])
            if returned is not None and returned is not PASS:
                break
        else:
            return None if chain.complete else _Fold(chain, event, scope, place + 1)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code; one class of failure
        fold = _Fold(chain, event, scope, place)
        fold.failed(chain.handlers[place], error)
    else:
        fold = _Fold(chain, event, scope, place)
        fold.returned(chain.handlers[place], returned)
    fold.place += 1
    return fold


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
    """The state of a running chain, and what each handler's result does to it."""

    __slots__ = (
        "answer",
        "asks",
        "began",
        "block",
        "chain",
        "changed",
        "ended",
        "event",
        "frame",
        "metadata",
        "place",
        "records",
        "rewrote",
        "strict",
        "system",
        "timed",
        "user",
    )

    def __init__(self, chain: CompiledChain, event: Event, scope: Scope, place: int) -> None:
        self.began = time.perf_counter_ns()
        self.chain = chain
        self.event = event
        self.frame = Frame(event, scope)
        self.place = place
        self.ended = False
        self.strict = self.timed = False
        self.records: dict[int, Record] = {}
        self.metadata: dict[str, Any] | None = None
        self.asks: list[Ask] = []
        self.system: list[Injection] = []
        self.user: list[Injection] = []
        self.block: tuple[str, str] | None = None
        self.answer: str | None = None
        self.rewrote = self.changed = False

    def __iter__(self) -> Iterator[Handler]:
        """The handlers still to be called; the caller settles each before it takes the next."""
        handlers = self.chain.handlers
        while not self.ended and self.place < len(handlers):
            handler = handlers[self.place]
            if self.chain.failures.suspended(handler):
                record = self.records[self.place] = Record(Action.PASS)
                record.skipped = "suspended"
            else:
                yield handler
            self.place += 1

    # -- calling --------------------------------------------------------------------------------

    def attempt(self, handler: Handler) -> None:
        """Call a handler and settle what it did, waiting for it where that is needed."""
        began, before = time.perf_counter_ns() if self.timed else 0, self.frame.event
        call = self._bound(handler)
        if call is not None and handler.inline:
            self._call(handler, call)
        elif call is not None:
            self._settle(handler, *_waited_for(handler, call))
        self._examine(handler, call, began, before)

    async def attempt_async(self, handler: Handler) -> None:
        """As `attempt`, awaiting a handler that is async or has a timeout."""
        from hermes_ext._aio import awaited

        began, before = time.perf_counter_ns() if self.timed else 0, self.frame.event
        call = self._bound(handler)
        if call is not None:
            # What is raised here concerns the caller's task; the handler's error is returned.
            self._settle(handler, *await awaited(handler, *call))
        self._examine(handler, call, began, before)

    def _bound(self, handler: Handler) -> Call | None:
        try:
            return handler.bind(self.frame)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the host's state can fail in any way
            self.failed(handler, error)
            return None

    def _call(self, handler: Handler, call: Call) -> None:
        function, args, named = call
        try:
            returned = function(*args, **named)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code; one class of failure
            self.failed(handler, error)
        else:
            self.returned(handler, returned)

    def _settle(self, handler: Handler, returned: Any, error: BaseException | None) -> None:
        if error is None:
            self.returned(handler, returned)
        elif isinstance(error, KeyboardInterrupt):
            raise error
        else:
            self.failed(handler, error)

    def _examine(self, handler: Handler, call: Call | None, began: int, before: Event) -> None:
        if not (self.timed or self.strict):
            return
        record = self.records.get(self.place)
        if record is None:
            record = self.records[self.place] = Record(Action.PASS)
        if self.timed:
            record.duration_ns = time.perf_counter_ns() - began
        if self.strict and call is not None:
            record.mutated = record.action is not Action.REWRITE and _touched(handler, call, before)

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
            self._add_metadata(returned.metadata)
        if returned.action is not Action.PASS:
            _SETTLE[returned.action](self, handler, returned, event)

    def _checked(self, handler: Handler, returned: Any) -> Event | None:
        """The event after a rewrite, None for other actions; raises where it is not allowed."""
        if not isinstance(returned, HookResult):
            _close(returned)
            raise Invalid(f"returned {_shown(returned)}; expected None or a HookResult")
        action = returned.action
        if action not in handler.allowed:
            kind = "guards of " if handler.guard else ""
            allowed = ", ".join(one.value for one in Action if one in handler.allowed)
            raise Invalid(
                f"returned {action.value!r}; {kind}{handler.hook.value} may return {allowed}"
            )
        to_the_user = handler.hook is not HookName.INTERCEPT_TOOL_CALL
        if action is Action.ANSWER and to_the_user and not returned.value.strip():
            raise Invalid("returned 'answer' without text; expected the reply to the user")
        if action is not Action.REWRITE:
            return None
        problem = self.event.problem(returned.value)
        if problem is not None:
            raise Invalid(f"returned 'rewrite' with {problem}; expected {self.event.expected}")
        return self._rewritten(returned.value)

    def _rewritten(self, value: Any) -> Event:
        event = self.frame.event.rewritten(value)
        check = self.frame.scope.check_tool_args
        if check is not None and isinstance(event, ToolCall):
            problem = check(event.tool_name, own_copy(event.tool_args))
            if problem is not None:
                raise Invalid(
                    f"rewrote the arguments of {event.tool_name} to what its schema refuses: "
                    f"{problem}"
                )
        return event  # type: ignore[no-any-return]

    def _observed(self, result: HookResult[Any], event: Event | None) -> None:
        reason = result.value if result.action in _HAVE_REASON else None
        record = self.records[self.place] = Record(result.action, reason=reason)
        record.observed = True
        if event is not None:
            record.changed = not identical(event.value, self.frame.event.value)

    def _add_metadata(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = {**(self.metadata or {}), **own_copy(dict(metadata))}
        self.frame.metadata = self.metadata
        self.records.setdefault(self.place, Record(Action.PASS))

    def _block(self, handler: Handler, result: HookResult[Any], _event: Event | None) -> None:
        self.block = (handler.extension, result.value)
        self.ended = True
        self.records[self.place] = Record(Action.BLOCK, reason=result.value)

    def _answer(self, _handler: Handler, result: HookResult[Any], _event: Event | None) -> None:
        self.answer = result.value
        self.ended = True
        self.records[self.place] = Record(Action.ANSWER)

    def _ask(self, handler: Handler, result: HookResult[Any], _event: Event | None) -> None:
        self.asks.append(Ask(handler.extension, handler.name, result.value, result.key))
        self.records[self.place] = Record(Action.ASK, reason=result.value)

    def _rewrite(self, _handler: Handler, _result: HookResult[Any], event: Event | None) -> None:
        assert event is not None
        changed = not identical(event.value, self.frame.event.value)
        self.rewrote = True
        self.changed |= changed
        self.records[self.place] = Record(Action.REWRITE, changed=changed)
        if (self.system or self.user) and isinstance(event, LLMRequest):
            assert isinstance(self.event, LLMRequest)
            self.event = event.without(self.user, self.event.system_prompt)
            self.frame.event = self.event.with_injections(self.system, self.user)
        else:
            self.event = self.frame.event = event

    def _inject(self, handler: Handler, result: HookResult[Any], _event: Event | None) -> None:
        text = Injection(result.value, handler, result.keep)
        (self.system if result.action is Action.INJECT_SYSTEM else self.user).append(text)
        self.records[self.place] = Record(result.action)
        if isinstance(self.event, LLMRequest):
            self.frame.event = self.event.with_injections(self.system, self.user)

    def failed(self, handler: Handler, error: BaseException) -> None:
        """Settle a handler's failure, by its policy."""
        failure = Failed(handler, error)
        name = failure.type_name
        self.chain.failures.note(handler, failure.kind, name)
        action = _POLICY[handler.on_error]
        record = self.records[self.place] = Record(action)
        record.failure = failure
        if handler.observe:
            record.observed = True
        elif action is Action.BLOCK:
            record.reason = f"{handler.name} failed ({name}), so this {_NOUN[handler.hook]}"
            self.block = (handler.extension, record.reason)
            self.ended = True
        elif action is Action.ASK:
            record.reason = f"{handler.name} failed ({name})"
            self.asks.append(Ask(handler.extension, handler.name, record.reason))

    def outcome(self) -> ChainOutcome:
        """What the host gets."""
        if not self.records:
            return self.chain.passed
        action, value = self._decision()
        reached = self.place if self.ended else len(self.chain.handlers)
        trace = Trace(
            self.chain.handlers,
            self.records,
            reached,
            metadata=MappingProxyType(self.metadata) if self.metadata else NO_METADATA,
            asks=tuple(self.asks),
            system=tuple(self.system),
            user=tuple(self.user),
        )
        return ChainOutcome(
            action,
            value,
            self.event,
            self.changed,
            None if self.block is None else self.block[0],
            time.perf_counter_ns() - self.began,
            trace=trace,
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


_SETTLE: Final[Mapping[Action, Callable[[_Fold, Handler, HookResult[Any], Event | None], None]]] = {
    Action.BLOCK: _Fold._block,
    Action.ANSWER: _Fold._answer,
    Action.ASK: _Fold._ask,
    Action.REWRITE: _Fold._rewrite,
    Action.INJECT_SYSTEM: _Fold._inject,
    Action.INJECT_USER: _Fold._inject,
}
_POLICY: Final = {"pass": Action.PASS, "block": Action.BLOCK, "ask": Action.ASK}
_HAVE_REASON: Final = frozenset({Action.BLOCK, Action.ASK})
_NOUN: Final = {
    HookName.TRANSFORM_USER_INPUT: "input is refused",
    HookName.BEFORE_LLM_CALL: "request is refused",
    HookName.INTERCEPT_TOOL_CALL: "call is refused",
    HookName.TRANSFORM_TOOL_RESULT: "result is withheld",
}


def _close(returned: Any) -> None:
    # A coroutine that is dropped unawaited warns on stderr; the failure says it better.
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
        returned.close()


def _touched(handler: Handler, call: Call, before: Event) -> bool:
    """Whether a handler changed in place what it was given (its own copies)."""
    _function, values, named = call
    given = named or dict(zip(handler.wants, values, strict=True))
    return any(
        not identical(_plain(given[name]), _plain(fresh))
        for name, fresh in _lent(before).items()
        if name in given
    )


def _lent(event: Event) -> dict[str, Any]:
    """By argument name, what handlers get copies of."""
    if isinstance(event, UserInput):
        return {"event": event, "user_content": event.content}
    if isinstance(event, LLMRequest):
        return {"event": event, "messages": event.messages}
    return {"event": event, "tool_args": event.tool_args}


def _plain(value: Any) -> Any:
    return _lent(value) | {"event": None} if isinstance(value, _EVENTS) else value


_EVENTS: Final = (UserInput, LLMRequest, ToolCall, ToolResult)


def _waited_for(handler: Handler, call: Call) -> tuple[Any, BaseException | None]:
    if handler.is_async:
        from hermes_ext._aio import call_async

        return call_async(handler, *call)
    return call_in_worker(handler, *call)
