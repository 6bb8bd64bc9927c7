"""Every error that hermes_ext raises. All of them derive from `HermesExtError`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "CommandError",
    "ConfigError",
    "ConfinementError",
    "HandlerError",
    "HermesExtError",
    "LoadError",
    "ManifestError",
    "OrderCycleError",
    "RegistrationError",
    "ResultError",
    "SkipExtension",
    "StateError",
    "TurnEndedError",
]

FailureKind = Literal["exception", "timeout", "cancelled", "invalid-result"]


class HermesExtError(Exception):
    """Base of all errors of this package.

    `extension` and `hook` name who is concerned, `path` and `line` (1-based) where to look,
    `key` the dotted configuration key, `hint` what to do next. Each is None where it does
    not apply. `str(error)` is one line that holds all of them.
    """

    def __init__(
        self,
        message: str,
        *,
        extension: str | None = None,
        hook: str | None = None,
        path: Path | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.extension = extension
        self.hook = hook
        self.path = path
        self.line = line
        self.key = key
        self.hint = hint

    def __str__(self) -> str:
        who = ", ".join(part for part in (self.extension, self.hook, self.key) if part)
        where = _place(self.path, self.line)
        text = f"{who}: {self.message}" if who else self.message
        text = f"{text} ({where})" if where else text
        return f"{text}. {self.hint}" if self.hint else text


def _place(path: Path | None, line: int | None) -> str:
    if path is None:
        return ""
    return str(path) if line is None else f"{path}:{line}"


class ResultError(HermesExtError, ValueError):
    """A `HookResult` that cannot be right; raised where it is made."""


class RegistrationError(HermesExtError):
    """A handler that cannot be registered: unknown hook, argument or option, or a bad value."""


class OrderCycleError(RegistrationError):
    """`before=`/`after=` contradict each other; `members` names the extensions of the cycle."""

    def __init__(
        self, message: str, *, members: tuple[str, ...] = (), hook: str | None = None
    ) -> None:
        super().__init__(message, hook=hook, hint="Remove one of the before=/after= named above")
        self.members = members


class HandlerError(HermesExtError):
    """A handler that failed in a chain.

    `kind` is `exception`, `timeout`, `cancelled` or `invalid-result`. `cause` is what the handler
    raised, if it raised, without its frames; `traceback` is the text of where it was raised, and
    empty for the other kinds.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind = "exception",
        cause: BaseException | None = None,
        extension: str | None = None,
        hook: str | None = None,
        path: Path | None = None,
        line: int | None = None,
        hint: str | None = None,
        traceback: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(message, extension=extension, hook=hook, path=path, line=line, hint=hint)
        self.kind: FailureKind = kind
        self.cause = cause
        self.__cause__ = cause
        self._traceback = traceback

    @property
    def traceback(self) -> str:
        """The traceback of `cause` as text, made when read; empty where nothing was raised."""
        return "" if self._traceback is None else self._traceback()


class ConfigError(HermesExtError):
    """The user's or a project's configuration is wrong."""


class ConfinementError(HermesExtError):
    """A process could not be confined, so it was not started."""


class ManifestError(HermesExtError):
    """An `extension.yaml` is wrong."""


class LoadError(HermesExtError):
    """An extension could not be loaded."""


class CommandError(HermesExtError):
    """A slash command of an extension that failed, was too late, or that no extension has."""


class TurnEndedError(HermesExtError):
    """Something was asked of a turn that is over."""


class StateError(HermesExtError):
    """The state of a turn or of a conversation could not be used.

    `unavailable` is True where session state cannot be read or stored at the moment (a disk that is
    full, a file that is read-only, locked or damaged), and False where it was used wrongly.
    """

    def __init__(self, message: str, *, unavailable: bool = False, **details: Any) -> None:
        super().__init__(message, **details)
        self.unavailable = unavailable


class SkipExtension(Exception):  # noqa: N818 - it is a request, like pytest's Skipped
    """Raised by an extension while it loads: "not here", with the reason. Not an error."""
