"""Running a slash command: what its function gets, and what comes of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from hermes_ext._log import logger
from hermes_ext._text import printable, printable_lines
from hermes_ext.chain.aio import call_async
from hermes_ext.chain.raised import readable
from hermes_ext.chain.timeouts import TimedOut, workers
from hermes_ext.exceptions import CommandError, StateError
from hermes_ext.hooks.commands import Command
from hermes_ext.hooks.payloads import Scope
from hermes_ext.hooks.signature import did_you_mean


def run_command(command: Command, args: str, scope: Scope) -> str:
    """Call a command's function and return the text for the user, "" for none.

    Control characters in the text are written out; line ends stay.

    Raises:
        CommandError: the function raised, was too late, or returned something that is no text.
    """
    own = {
        "args": args,
        "session_state": scope.session_state_of(command.extension),
        "config": command.config,
        "data_dir": _data_dir(command, scope),
    }
    known = {name: own[name] if name in own else getattr(scope, name) for name in command.wants}
    unknown = {name for name in command.optional if known[name] is None}
    named = {name: value for name, value in known.items() if name not in unknown}
    call = call_async if command.is_async else workers.call
    returned, error = call(command, lambda: command.function(**named), (), scope)
    if error is not None:
        raise _failed(command, readable(error))
    if returned is None:
        return ""
    if not isinstance(returned, str):
        if inspect.iscoroutine(returned):
            returned.close()  # dropped unawaited it warns on stderr; the error says it better
        kind = type(returned).__name__
        raise _error(command, f"returned {kind}, not text", "Return a str, or None")
    # Of a class of its own, what it really holds: its methods are the author's code.
    return printable_lines(str.__str__(returned))


def _data_dir(command: Command, scope: Scope) -> Path | None:
    if "data_dir" not in command.wants:
        return None
    try:
        return scope.data_dir_of(command.extension)
    except StateError as error:
        raise _error(command, str(error)) from None


def _failed(command: Command, error: BaseException) -> CommandError:
    if isinstance(error, TimedOut):
        return _error(command, error.text(command.timeout))
    from hermes_ext._redaction import redacted

    told = redacted(f"{type(error).__name__}: {_text_of(error)}".removesuffix(": "))
    logger.warning("%s: /%s failed: %s", command.extension, command.name, told, exc_info=error)
    failed = _error(command, f"failed: {told}")
    failed.__cause__ = error
    return failed


def _text_of(error: BaseException) -> str:
    try:
        return printable(str.__str__(str(error)))
    except BaseException as broken:  # noqa: BLE001 - an author's own __str__ ends nobody
        return f"(its __str__ raised {type(broken).__name__})"


def _error(command: Command, what: str, hint: str | None = None) -> CommandError:
    return CommandError(
        f"/{command.name} {what}",
        extension=command.extension,
        path=Path(command.file) if command.file else None,
        line=command.line or None,
        hint=hint,
    )


def unknown_command(name: str, known: Iterable[str]) -> CommandError:
    """The error for a name that no extension has."""
    names = [f"/{each}" for each in known]
    hint = did_you_mean(f"/{name}", names) if names else "No extension has registered any"
    return CommandError(f"no extension has a command /{printable(name)}", hint=hint)
