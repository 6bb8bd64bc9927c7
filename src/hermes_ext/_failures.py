"""Failures of handlers: what one was, and how often each handler failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from hermes_ext._handler import Handler
from hermes_ext._timeouts import TimedOut
from hermes_ext.exceptions import FailureKind, HandlerError, ResultError

__all__ = ["Failed", "Failure", "FailureBook", "Invalid"]

SUSPEND_AFTER: Final = 5


class Invalid(Exception):  # noqa: N818 - not an error to callers: it becomes the handler's failure
    """A handler returned what it may not; the text says what, and what is expected."""


class Failed:
    """One failure, as little of it as possible: its text is made when somebody reads it."""

    __slots__ = ("_error", "_text", "kind", "type_name")

    def __init__(self, handler: Handler, error: BaseException) -> None:
        self.kind = _kind_of(error)
        self.type_name = type(error).__name__
        self._error: BaseException | None = error
        self._text = ""
        if isinstance(error, Invalid):
            self.type_name, self._error, self._text = self.kind, None, str(error)
        elif isinstance(error, TimedOut):
            self.type_name, self._error = self.kind, None
            self._text = error.text(handler.timeout)
        elif self.kind == "cancelled":
            self._text = "was cancelled"

    def error(self, handler: Handler) -> HandlerError:
        """The failure as an error that names everything."""
        return HandlerError(
            f"{handler.name} {self._text or _raised(self._error)}",
            kind=self.kind,
            cause=self._error,
            extension=handler.extension,
            hook=handler.hook.value,
            path=Path(handler.file) if handler.file else None,
            line=handler.line or None,
            hint=_HINTS[self.kind],
        )


_HINTS: Final[Mapping[FailureKind, str | None]] = {
    "exception": None,
    "timeout": "Make it faster, or raise timeout= in register_hook",
    "cancelled": None,
    "invalid-result": "Return None or one of HookResult.pass_(), .rewrite(…), .block(…), …",
}


def _raised(cause: BaseException | None) -> str:
    try:
        return f"raised {type(cause).__name__}: {cause}"
    except BaseException as broken:
        if isinstance(broken, KeyboardInterrupt):
            raise
        return f"raised {type(cause).__name__} (its text cannot be read: {type(broken).__name__})"


def _kind_of(error: BaseException) -> FailureKind:
    if isinstance(error, (Invalid, ResultError)):
        return "invalid-result"
    if isinstance(error, TimedOut):
        return "timeout"
    # By name: importing asyncio for its class would double what importing this package costs.
    return "cancelled" if type(error).__name__ == "CancelledError" else "exception"


@frozen
class Failure:
    """How often a handler failed, for programs to read. Holds no text of the errors.

    Attributes:
        extension, hook, handler: who.
        count: failures so far.
        in_a_row: of them, those since it last worked.
        last_kind: `exception`, `timeout`, `cancelled` or `invalid-result`.
        last_type: the exception's class, or the kind.
        last_time: seconds since the epoch.
        suspended: whether it is not called any more (five failures in a row, policy `pass`).
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


class _Health:
    __slots__ = ("count", "in_a_row", "last_kind", "last_time", "last_type", "suspended")

    def __init__(self) -> None:
        self.count = 0
        self.in_a_row = 0
        self.last_kind: FailureKind = "exception"
        self.last_type = ""
        self.last_time = 0.0
        self.suspended = False


class FailureBook:
    """The failures of a set of handlers; shared by their chains, and by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._health: dict[Handler, _Health] = {}
        self.ailing: set[Handler] = set()
        """Handlers whose last call failed; the tight loop keeps off chains that have one."""

    def note(self, handler: Handler, kind: FailureKind, type_name: str) -> None:
        """Count a failure."""
        with self._lock:
            health = self._health.get(handler)
            if health is None:
                health = self._health[handler] = _Health()
            health.count += 1
            health.in_a_row += 1
            health.last_kind = kind
            health.last_type = type_name
            health.last_time = time.time()
            health.suspended |= handler.on_error == "pass" and health.in_a_row >= SUSPEND_AFTER
            self.ailing.add(handler)

    def worked(self, handler: Handler) -> None:
        """A call of an ailing handler went well."""
        with self._lock:
            self._health[handler].in_a_row = 0
            self.ailing.discard(handler)

    def suspended(self, handler: Handler) -> bool:
        """Whether the handler is not to be called."""
        return handler in self.ailing and self._health[handler].suspended

    def inherit(self, other: FailureBook, handlers: Iterable[Handler]) -> None:
        """Take over the counts, not the suspensions, of a book from before a reload."""
        earlier = {_identity(handler): health for handler, health in other._health.items()}
        for handler in handlers:
            health = earlier.get(_identity(handler))
            if health is not None:
                mine = self._health[handler] = _Health()
                mine.count = health.count
                mine.last_kind, mine.last_type = health.last_kind, health.last_type
                mine.last_time = health.last_time

    def read(self) -> tuple[Failure, ...]:
        """All handlers that ever failed, sorted."""
        with self._lock:
            rows = [
                Failure(
                    handler.extension,
                    handler.hook.value,
                    handler.name,
                    health.count,
                    health.in_a_row,
                    health.last_kind,
                    health.last_type,
                    health.last_time,
                    health.suspended,
                )
                for handler, health in self._health.items()
            ]
        return tuple(sorted(rows, key=lambda row: (row.extension, row.hook, row.handler)))


def _identity(handler: Handler) -> tuple[str, str, str]:
    return handler.extension, handler.hook.value, handler.name
