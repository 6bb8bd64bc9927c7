"""Which handlers are at work right now, and since when, told from the stacks of the threads.

Nothing is written down while chains run: that would cost each call more than all of its handlers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from attrs import frozen

from hermes_ext._chain import fold
from hermes_ext._chain.calls import Call, waiting
from hermes_ext._hooks.handler import COMPILED, Caller, Handler
from hermes_ext._hooks.payloads import Scope

__all__ = ["AtWork", "culprits", "everyone"]


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


def everyone() -> Iterator[AtWork]:
    """All handlers without a limit that are at work in this process."""
    for frame in sys._current_frames().values():
        yield from _in_stack(frame)
    for entry in list(waiting):
        yield AtWork(entry.handler, entry.scope, (), (id(entry), entry.began))


def culprits(call: Call) -> list[Handler]:
    """The handlers that a call was made in, and in those around it, each once."""
    found: dict[Handler, None] = {}
    for each in call.around():
        handlers = each.handlers
        if len(handlers) > 1:
            frame = sys._current_frames().get(each.thread)
            here = [one.handler for one in _in_stack(frame) if one.handlers is handlers]
            handlers = tuple(here) or handlers
        found |= dict.fromkeys(handlers)
    return list(found)


def _in_stack(frame: FrameType | None) -> Iterator[AtWork]:
    called: FrameType | None = None
    while frame is not None:
        read = _READERS.get(frame.f_code)
        if read is not None and called is not None:
            found = read(frame.f_locals, called)
            if found is not None:
                yield found
        called, frame = frame, frame.f_back


def _of_run(names: dict[str, Any], called: FrameType) -> AtWork | None:
    chain: fold.CompiledChain | None = names.get("chain")
    if chain is None or not chain.parts:
        return None
    caller, place = names.get("caller"), names.get("place", 0)
    return _of_part(chain, caller or chain.parts[0][0], place, names, called)


def _of_part(
    chain: fold.CompiledChain, caller: Caller, place: int, names: dict[str, Any], called: FrameType
) -> AtWork | None:
    if called.f_code.co_filename != COMPILED:
        return None
    place += caller.place_at(called.f_lasti)
    key = (names["began"], id(names["event"]), place)
    return AtWork(chain.handlers[place], names["scope"], chain.handlers, key)


def _of_attempt(names: dict[str, Any], _: FrameType) -> AtWork | None:
    running, handler = names.get("self"), names.get("handler")
    if running is None or handler is None or not handler.inline or running.scope is None:
        return None
    key = (running.began, id(running), running.place)
    return AtWork(handler, running.scope, running.chain.handlers, key)


_READERS = {
    fold.run.__code__: _of_run,
    fold._with_care.__code__: _of_run,
    fold._Fold.attempt.__code__: _of_attempt,
}
