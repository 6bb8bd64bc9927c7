"""Calls inside calls: a handler may call a tool, or start an agent, whose handlers run as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hermes_ext.chain.loans import Loan
    from hermes_ext.hooks.handler import Handler
    from hermes_ext.hooks.payloads import Scope

DEEPEST: Final = 3
"""How deep the calls that handlers make themselves may be nested."""


class Call:
    """A chain that runs, or one handler of it, as the calls see it that are made inside.

    Whoever makes one fills it in: an `__init__` would take as long as a handler's call.

    Attributes:
        handlers: the handlers that may be at work: those of the chain, or the one.
        outer: the call that this one was made inside of.
        thread: the thread that the chain runs in.
        loan: what the handler has of shared state, where it may be left behind.
    """

    __slots__ = ("handlers", "loan", "outer", "thread")

    handlers: tuple[Handler, ...]
    loan: Loan | None
    outer: Call | None
    thread: int

    @property
    def depth(self) -> int:
        """How many calls of handlers are around it."""
        return sum(1 for _ in self.around()) - 1

    def around(self) -> Iterator[Call]:
        """This call and those around it, from the inside out."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.outer

    def lent(self, state: Any) -> Any:
        """Some state as this call has it, which may be inside of calls that are left behind."""
        for call in reversed(list(self.around())):
            if call.loan is not None:
                state = call.loan.of(state)
        return state


inside: Final[ContextVar[Call | None]] = ContextVar("hermes_ext_inside", default=None)
"""The call that this context is in; copies of the context have it too."""


class _Waiting:
    """A handler that is waited for as long as it takes."""

    __slots__ = ("began", "handler", "scope")

    def __init__(self, handler: Handler, scope: Scope) -> None:
        self.handler = handler
        self.scope = scope
        self.began = monotonic()


waiting: Final[set[_Waiting]] = set()
"""The handlers without a limit that somebody waits for, in whatever thread or task."""


@contextmanager
def at_work(handler: Handler, scope: Scope, loan: Loan) -> Iterator[Context]:
    """While open, a handler runs elsewhere: in a copy of this context, which is returned."""
    here = inside.get()
    call = Call()
    call.handlers = (handler,)
    call.loan = loan
    call.outer = None if here is None else here.outer
    call.thread = 0 if here is None else here.thread
    context = copy_context()
    context.run(inside.set, call)
    entry = _Waiting(handler, scope) if handler.timeout is None else None
    if entry is not None:
        waiting.add(entry)
    try:
        yield context
    except BaseException:
        loan.take_back()
        raise
    finally:
        if entry is not None:
            waiting.discard(entry)
