"""Failures of handlers: what one was, and how often each handler failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, TracebackType
from typing import Final, TypeAlias

from hermes_ext._interrupts import let_through
from hermes_ext._text import printable_lines
from hermes_ext._values import Factory, define, frozen
from hermes_ext.chain.raised import forget_frames
from hermes_ext.chain.timeouts import TimedOut
from hermes_ext.exceptions import FailureKind, HandlerError, ResultError
from hermes_ext.hooks.handler import COMPILED, Handler, is_store_error
from hermes_ext.hooks.sendable import sendable_text

SUSPEND_AFTER: Final = 5
SESSIONS_REMEMBERED: Final = 256  # for each handler, of those in which its last call failed

_Identity: TypeAlias = tuple[str, str, str]
_Key: TypeAlias = tuple[_Identity, int]


class InvalidResult(Exception):  # noqa: N818 - not an error to callers: it becomes the handler's failure
    """A handler returned what it may not; the text says what, and what is expected."""


Crash: TypeAlias = tuple[BaseException, list[tuple[CodeType, int]]]
"""A handler's exception without its frames, and where they were: code and instruction."""


def _traceback_of(crash: Crash) -> str:
    """The traceback as text, this package's own frames left out."""
    from traceback import StackSummary, format_exception, format_exception_only

    from hermes_ext._redaction import redacted

    error, places = crash
    frames = [
        (code.co_filename, _line_of(code, place), code.co_name, None)
        for code, place in places[-_FRAMES_SHOWN:]
        if code.co_filename not in _OUR_FILES
    ]
    before = error.__cause__ if error.__cause__ is not None else error.__context__
    try:
        lines = [] if before is None else [*format_exception(before), _WHILE]
        end = format_exception_only(error)
    except BaseException as broken:  # noqa: BLE001 - it reads attributes, which may be code
        let_through(broken)
        lines, end = [], [f"{_type_name(type(error))} (it cannot be read: {_raised(broken)})\n"]
    lines += ["Traceback (most recent call last):\n", *StackSummary.from_list(frames).format()]
    text: str = redacted("".join([*lines, *end]))
    return printable_lines(text)


def _line_of(code: CodeType, place: int) -> int:
    lines = (line for begin, end, line in code.co_lines() if begin <= place < end)
    return next(lines, None) or code.co_firstlineno


_FRAMES_SHOWN: Final = 60
_WHILE: Final = "\nThen, because of it or while handling it:\n\n"
_OUR_FILES: Final = frozenset(
    str(Path(__file__).parents[1] / name)
    for name in ("chain/fold.py", "hooks/handler.py", "chain/timeouts.py", "chain/aio.py")
) | {COMPILED}


def handler_error(handler: Handler, crash: Crash) -> HandlerError:
    """A handler's failure as an error that names everything."""
    # What it says often has in it what the handler was given.
    from hermes_ext._redaction import redacted

    error = crash[0]
    kind = kind_of(type(error))
    return HandlerError(
        f"{handler.name} {redacted(_what_happened(handler, kind, error))}",
        kind=kind,
        cause=None if isinstance(error, (InvalidResult, TimedOut)) else error,
        extension=handler.extension,
        hook=handler.hook.value,
        path=Path(handler.file) if handler.file else None,
        line=handler.line or None,
        hint=_HINTS[kind],
        traceback=(lambda: _traceback_of(crash)) if kind == "exception" else None,
    )


def _what_happened(handler: Handler, kind: FailureKind, error: BaseException) -> str:
    if isinstance(error, InvalidResult):
        return str(error)
    if isinstance(error, TimedOut):
        return error.text(handler.timeout)
    return "was cancelled" if kind == "cancelled" else _raised(error)


def kind_of(error: type[BaseException]) -> FailureKind:
    """What kind of failure an exception class stands for."""
    if issubclass(error, (InvalidResult, ResultError)):
        return "invalid-result"
    if issubclass(error, TimedOut):
        return "timeout"
    # By name: importing asyncio for its class would double what importing this package costs.
    return "cancelled" if error.__name__ == "CancelledError" else "exception"


def _type_name(error: type[BaseException]) -> str:
    kind = kind_of(error)
    return error.__name__ if kind == "exception" else kind


_HINTS: Final[Mapping[FailureKind, str | None]] = {
    "exception": None,
    "timeout": "Make it faster, or raise timeout= in register_hook",
    "cancelled": None,
    "invalid-result": "Return None or one of HookResult.pass_(), .rewrite(…), .block(…), …",
}


def _raised(cause: BaseException | None) -> str:
    try:
        # A log file takes no lone surrogates, such as those of an odd file name.
        return sendable_text(f"raised {type(cause).__name__}: {cause}".removesuffix(": "))
    except BaseException as broken:  # noqa: BLE001 - foreign code
        let_through(broken)
        return f"raised {type(cause).__name__} (its text cannot be read: {type(broken).__name__})"


@frozen
class Failure:
    """How often a handler failed, for programs to read. Holds no text of the errors.

    Attributes:
        extension, hook, handler: who.
        count: failures so far.
        in_a_row: of them, those since it last worked, in the session that has most of them.
        last_kind: `exception`, `timeout`, `cancelled` or `invalid-result`.
        last_type: the exception's class, or the kind.
        last_time: seconds since the epoch.
        suspended: whether it is not called any more in some session (five failures in a row there,
            policy `pass`).
    """

    extension: str
    hook: str
    handler: str
    count: int
    in_a_row: int
    last_kind: FailureKind
    last_type: str
    last_time: float
    suspended: bool


@define
class _Tally:
    """The failures of a handler, over reloads."""

    count: int = 0
    last: type[BaseException] = Exception
    last_at: int = 0


@define
class _Health:
    tally: _Tally
    in_a_row: dict[str | None, int] = Factory(dict)


class FailureBook:
    """The failures of a set of handlers; shared by their chains, and by threads.

    Args:
        handlers: the handlers.
        before: the book from before a reload. Both go on with the same counts, since turns that
            are open go on with the old handlers. Failures in a row begin anew, and no handler is
            suspended: its code may be another.
    """

    def __init__(self, handlers: Iterable[Handler] = (), before: FailureBook | None = None) -> None:
        self._tallies: dict[_Key, _Tally] = {} if before is None else before._tallies
        self._health: dict[Handler, _Health] = {}
        alike: Counter[_Identity] = Counter()
        for handler in handlers:
            identity = _identity(handler)
            # Several lambdas of one extension have one name.
            tally = self._tallies.setdefault((identity, alike[identity]), _Tally())
            alike[identity] += 1
            self._health[handler] = _Health(tally)
        self.ailing: set[Handler] = set()
        """Handlers whose last call failed in at least one session."""
        self.suspended: set[Handler] = set()
        """Handlers that are not to be called any more in at least one session."""

    # No lock: it would cost as much as raising the exception did. Adding to an int attribute and to
    # a set are not interrupted by another thread in CPython; without the GIL a count may be lost.

    def note(
        self,
        handler: Handler,
        error: BaseException,
        trace: TracebackType | None,
        began: int,
        session: str | None = None,
    ) -> Crash:
        """Count a failure of a chain that began at `began` (`time.perf_counter_ns`).

        The error's frames are taken away. They would keep the turn's objects alive, and in a cycle
        for each crash; where they were is enough to write the traceback when somebody reads it.

        trace: the error's traceback from the first frame that is not ours.
        session: where it failed. Failures in a row are those of one session: what somebody makes
            a handler fail with keeps it from nobody else.
        """
        health = self._health[handler]
        tally = health.tally
        tally.count += 1
        tally.last = type(error)
        tally.last_at = began
        in_a_row = health.in_a_row.pop(session, 0) + 1
        health.in_a_row[session] = in_a_row
        if len(health.in_a_row) > SESSIONS_REMEMBERED:
            self._forget_one(health)
        self.ailing.add(handler)
        passes = handler.on_error == "pass"
        if in_a_row >= SUSPEND_AFTER and passes and not is_store_error(error):
            self.suspended.add(handler)
        forget_frames(error)
        places = []
        while trace is not None:
            # Not tb_lineno: it walks the code's line table, which costs more than the exception.
            places.append((trace.tb_frame.f_code, trace.tb_lasti))
            trace = trace.tb_next
        return error, places

    @staticmethod
    def _forget_one(health: _Health) -> None:
        """Forget the session whose last failure is the oldest."""
        with suppress(StopIteration, RuntimeError):  # another thread does so as well
            health.in_a_row.pop(next(iter(health.in_a_row)), None)

    def worked(self, handlers: Iterable[Handler], session: str | None = None) -> None:
        """Calls of these went well in a session."""
        for handler in handlers:
            if handler in self.ailing:
                in_a_row = self._health[handler].in_a_row
                in_a_row.pop(session, None)
                if not in_a_row:
                    self.ailing.discard(handler)

    def is_suspended(self, handler: Handler, session: str | None) -> bool:
        """Whether a handler is not to be called any more in a session."""
        if handler not in self.suspended:
            return False
        return self._health[handler].in_a_row.get(session, 0) >= SUSPEND_AFTER

    def read(self) -> tuple[Failure, ...]:
        """All handlers that ever failed, sorted."""
        rows = [
            Failure(
                *_identity(handler),
                health.tally.count,
                max(list(health.in_a_row.values()), default=0),
                kind_of(health.tally.last),
                _type_name(health.tally.last),
                time.time() - (time.perf_counter_ns() - health.tally.last_at) / 1e9,
                handler in self.suspended,
            )
            for handler, health in self._health.items()
            if health.tally.count
        ]
        return tuple(sorted(rows, key=lambda row: (row.extension, row.hook, row.handler)))


def _identity(handler: Handler) -> _Identity:
    return handler.extension, handler.hook.value, handler.name
