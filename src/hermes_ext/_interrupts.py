"""Telling a person's Ctrl-C from a `KeyboardInterrupt` that code raised by itself.

Python delivers signals in the main thread only, between two instructions or out of a function
written in C. So a typed Ctrl-C leaves the innermost entry of its traceback at an instruction that
raises nothing by itself, or in a signal handler that the host installed. A `raise` statement, or an
exception thrown into a generator, leaves it at an instruction of its own kind.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from opcode import opmap
from types import CodeType, TracebackType
from typing import Any, Final, cast

# The attributes as Python has them: a class may put code of its own in their place.
_CONTEXT: Any = BaseException.__dict__["__context__"].__get__
_TRACEBACK: Any = BaseException.__dict__["__traceback__"].__get__


def let_through(error: BaseException) -> None:
    """Raise the KeyboardInterrupt of a person that is behind `error`; do nothing without one."""
    if _CONTEXT(error) is None and not issubclass(type(error), KeyboardInterrupt):
        return
    interrupt = typed(error)
    if interrupt is not None:
        raise interrupt


def typed(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C of a person that `error` is, or was raised because of; None for all others.

    A signal that the process sends to itself counts as a person's: nothing tells the two apart.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return None
    interrupts = (one for one in _chain_of(error) if issubclass(type(one), KeyboardInterrupt))
    found = next((one for one in interrupts if _was_delivered(_TRACEBACK(one))), None)
    return cast("KeyboardInterrupt | None", found)


def _chain_of(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that were being handled when it was raised."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = _CONTEXT(found)


def _was_delivered(trace: TracebackType | None) -> bool:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    codes = [entry.tb_frame.f_code for entry in entries]
    if not _signal_handlers().isdisjoint(codes):
        return True
    if not entries or entries[-1].tb_lasti < 0:
        return False
    code = codes[-1]
    instruction = code.co_code[entries[-1].tb_lasti]
    if instruction in _RAISING or not _ON_PURPOSE.isdisjoint(code.co_names):
        return False
    # From 3.13 on, what is thrown into a generator looks like what arrives when it goes on.
    unclear = sys.version_info >= (3, 13) and instruction in _GOING_ON and len(entries) > 1
    return not (unclear and _throws(entries[-2]))


def _throws(entry: TracebackType) -> bool:
    """Whether the line of an entry calls `throw` of something."""
    import dis  # late, because authors' modules wait for this one

    line = entry.tb_lineno
    return any(
        each.argval == "throw" and each.positions is not None and each.positions.lineno == line
        for each in dis.get_instructions(entry.tb_frame.f_code)
    )


def _signal_handlers() -> frozenset[CodeType]:
    """The code of the functions that raise because a signal has arrived."""
    import signal  # late, because authors' modules wait for this one

    called = [signal.getsignal(number) for number in signal.valid_signals()]
    # What asyncio.run raises after its own signal handler has cancelled the task that it runs.
    runner = getattr(sys.modules.get("asyncio.runners"), "Runner", None)
    called.append(getattr(runner, "run", None))
    return frozenset(code for code in map(_code_of, called) if code is not None)


def _code_of(function: Any) -> CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


_RAISING: Final = frozenset(
    opmap[name]
    for name in ("RAISE_VARARGS", "RERAISE", "YIELD_VALUE", "SEND", "RETURN_GENERATOR", "POP_TOP")
)
_GOING_ON: Final = frozenset({opmap["RESUME"]})
_ON_PURPOSE: Final = frozenset({"default_int_handler", "interrupt_main", "raise_signal"})
