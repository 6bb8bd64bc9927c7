"""Which handlers are at work right now, and since when, told from the stacks of the threads.

Nothing is written down while chains run: that would cost each call more than all of its handlers.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, Final

from hermes_ext._forks import has_locks
from hermes_ext._values import frozen
from hermes_ext.chain import fold
from hermes_ext.chain.calls import Call, waiting
from hermes_ext.chain.timeouts import made
from hermes_ext.hooks.handler import COMPILED, Caller, Handler
from hermes_ext.hooks.payloads import Scope


class _NoCollection:
    """While open, no thread collects garbage, because the frames of others are read.

    CPython 3.11 may collect wherever something is made, and a finalizer lets other threads go on:
    `sys._current_frames()` then waits for ever (python/cpython#106883), and in place of a frame
    that has ended stands something else.
    """

    def __init__(self) -> None:
        self._was_on: list[bool] = []
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """After a fork: who had it open is in the parent."""
        self._lock = threading.RLock()
        if any(self._was_on):
            gc.enable()
        self._was_on = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._was_on.append(gc.isenabled())
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on.pop():
            gc.enable()
        self._lock.release()


_no_collection: Final = _NoCollection()


@frozen
class AtWork:
    """A handler without a limit that has been called and has not returned.

    Attributes:
        handler: which.
        scope: the turn's values.
        handlers: those of its chain; () where it is waited for.
        key: equal for the same call only.
    """

    handler: Handler
    scope: Scope
    handlers: tuple[Handler, ...]
    key: tuple[Any, ...]


def everyone() -> list[AtWork]:
    """All handlers without a limit that are at work in this process."""
    with _no_collection:
        tops = sys._current_frames()
        found = [each for top in tops.values() for each in _in_stack(top)]
    found += (
        AtWork(entry.handler, entry.scope, (), (id(entry), entry.began)) for entry in list(waiting)
    )
    return found


def culprits(call: Call) -> list[Handler]:
    """The handlers that a call was made in, and in those around it, each once."""
    found: dict[Handler, None] = {}
    with _no_collection:
        tops = sys._current_frames()
        for each in call.around():
            handlers = each.handlers
            if len(handlers) > 1:
                stack = _in_stack(tops.get(each.thread))
                here = [one.handler for one in stack if one.handlers is handlers]
                handlers = tuple(here) or handlers
            found |= dict.fromkeys(handlers)
    return list(found)


def awaiting() -> list[Handler]:
    """The handlers that wait for this thread, from the inside out, as far as the stacks say.

    For threads that a handler has started without its context. It waits in `join`, or for a future
    whose work is done here; so does, further out, who waits for that handler.
    """
    threads = {thread.ident: thread for thread in threading.enumerate()}
    found: list[Handler] = []
    ident: int | None = threading.get_ident()
    with _no_collection:
        stacks = {ident: tuple(_frames(top)) for ident, top in sys._current_frames().items()}
        while ident is not None:
            wanted = {id(threads.get(ident)), *map(id, _work_of(stacks.pop(ident)))}
            ident = next((one for one, stack in stacks.items() if _holds(stack, wanted)), None)
            if ident is not None:
                found += (one.handler for one in _in_frames(stacks[ident], inline=False))
    return found


def _work_of(stack: Iterable[FrameType]) -> Iterator[object]:
    """What is waited for by those who wait for what this thread is doing."""
    for frame in stack:
        if frame.f_code is made.__code__:
            yield frame.f_locals.get("job")
        elif frame.f_code.co_name == "run" and "futures" in frame.f_code.co_filename:
            yield getattr(frame.f_locals.get("self"), "future", None)


def _holds(stack: Sequence[FrameType], wanted: set[int]) -> bool:
    """Whether a handler of this thread has one of these; what is outside of it does not matter.

    Other frames than a handler's are not looked into: until a frame ends, Python keeps what it has
    shown of it, and those of other threads may never end.
    """
    ends = (place for place, frame in enumerate(stack) if frame.f_code in _OUTERMOST)
    inner = stack[: next(ends, -1) + 1]
    return any(not wanted.isdisjoint(map(id, frame.f_locals.values())) for frame in inner)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A thread's frames, from the inside out."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _in_stack(frame: FrameType | None) -> Iterator[AtWork]:
    return _in_frames(_frames(frame))


def _in_frames(stack: Iterable[FrameType], inline: bool = True) -> Iterator[AtWork]:
    """The handlers that a thread is in; inline: only those that run in it."""
    called: FrameType | None = None
    for frame in stack:
        read = _READERS.get(frame.f_code)
        if read is not None and called is not None:
            found = read(frame.f_locals, called)
            if found is not None and (found.handler.inline or not inline):
                yield found
        called = frame


def _of_run(names: dict[str, Any], called: FrameType) -> AtWork | None:
    chain: fold.CompiledChain | None = names.get("chain")
    caller: Caller | None = names.get("caller")
    if chain is None or caller is None or called.f_code.co_filename != COMPILED:
        return None
    place = names["place"] + caller.place_at(called.f_lasti)
    key = (names["began"], id(names["event"]), place)
    return AtWork(chain.handlers[place], names["scope"], chain.handlers, key)


def _of_attempt(names: dict[str, Any], _: FrameType) -> AtWork | None:
    running, handler = names.get("self"), names.get("handler")
    if running is None or handler is None or running.scope is None:
        return None
    key = (running.began, id(running), running.place)
    return AtWork(handler, running.scope, running.chain.handlers, key)


_READERS = {fold.run.__code__: _of_run, fold._Fold.attempt.__code__: _of_attempt}
# What a handler's frames end with.
_OUTERMOST = {*_READERS, made.__code__}
