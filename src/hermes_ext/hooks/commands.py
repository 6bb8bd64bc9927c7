"""Slash commands: marking functions as commands, collecting the marks, building them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

from hermes_ext._values import field, frozen
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks.payloads import NAMED_ONLY
from hermes_ext.hooks.signature import did_you_mean, is_async_function, name_of, place_of, refused

COMMAND_ARGUMENTS: Final = (
    "args",
    "session_id",
    "conversation_id",
    "session_state",
    "config",
    "data_dir",
    "cwd",
    "platform",
)
COMMAND_SECONDS: Final = 30.0
"""How long a command may take; Hermes waits as long for a plugin's."""

_MARKS: Final = "__hermes_ext_commands__"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")

_T = TypeVar("_T", bound=Callable[..., Any])


@frozen
class CommandMark:
    """What `register_command` notes on a function."""

    name: str
    args_hint: str = ""
    help: str = ""


@frozen
class CommandRegistration:
    """A function and one of its marks."""

    function: Callable[..., Any]
    mark: CommandMark


@frozen(eq=False)
class Command:
    """One slash command, ready to be called. Made by `build_commands`.

    Attributes:
        name: without the slash.
        extension: whose it is.
        function: what is called, with the arguments in `wants` by name.
        wants: the arguments that it gets; optional: those that have a default and are left out
            where nothing is known.
        args_hint: what may stand behind the name, for people.
        help: one line for lists of commands.
        is_async: whether its result is awaited.
        config: its extension's settings.
        file, line: where the function is defined.
        timeout: seconds that it may take.
    """

    name: str
    extension: str
    function: Callable[..., Any]
    wants: tuple[str, ...]
    optional: frozenset[str] = frozenset()
    args_hint: str = ""
    help: str = ""
    is_async: bool = False
    config: Any = field(default=None, repr=False)
    file: str = ""
    line: int = 0
    timeout: float | None = COMMAND_SECONDS


_collected: ContextVar[list[CommandRegistration] | None] = ContextVar(
    "hermes_ext_collected_commands", default=None
)


@contextmanager
def collecting_commands() -> Iterator[list[CommandRegistration]]:
    """While an extension is being loaded: the commands that it registers, in any module of it."""
    found: list[CommandRegistration] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def register_command(name: str, *, args_hint: str = "", help: str = "") -> Callable[[_T], _T]:  # noqa: A002
    """Mark a function as a slash command, and return it unchanged.

    The function names the arguments that it wants of `args` (the text behind the name),
    `session_id`, `conversation_id`, `session_state`, `config`, `data_dir` and `cwd` (a `Path` each)
    and `platform`; one that has a default is left out where the host does not know it, else it is
    None. It returns the text for the user, or None for none. It may be `async`, and has 30 seconds.
    The model sees nothing of it: what is to have an effect on the agent goes through
    `session_state`.

    Args:
        name: what is typed behind the slash: letters, digits and hyphens, as in `plan`.
        args_hint: what may stand behind it, as in `on|off`.
        help: one line for lists of commands; the first line of the docstring by default.

    Raises:
        RegistrationError: a name that cannot be typed, an argument that commands do not have, a
            generator, or something that is not a function.
    """
    if not isinstance(name, str):
        raise RegistrationError(
            "register_command needs the command's name",
            hint="Write @register_command('plan') above the def",
        )
    if not _NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        hint = f"Write {near!r}" if _NAME.fullmatch(near) else "Begin with a letter from a to z"
        raise RegistrationError(
            f"{name!r} cannot be a command's name, which has small letters, digits and hyphens",
            hint=hint,
        )
    for option, text in (("args_hint", args_hint), ("help", help)):
        if not isinstance(text, str) or not text.isprintable():
            raise RegistrationError(f"/{name}: {option}={text!r} is not one line of text")

    def decorate(function: _T) -> _T:
        _mark(function, CommandMark(name, args_hint.strip(), help.strip()))
        return function

    return decorate


def _mark(function: Any, mark: CommandMark) -> None:
    if not isinstance(function, FunctionType):
        raise RegistrationError(
            f"/{mark.name}: {type(function).__name__} is not a function",
            hint="Put @register_command above a def at the top of a module",
        )
    _refuse_generators(mark.name, function)
    _wanted(mark.name, function)
    marks = getattr(function, _MARKS, ())
    if mark not in marks:
        setattr(function, _MARKS, (*marks, mark))
    collected = _collected.get()
    if collected is not None:
        collected.append(CommandRegistration(function, mark))


def _refuse_generators(name: str, function: FunctionType) -> None:
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise refused(
            function,
            f"{name_of(function)}, for /{name}, is a generator: it contains yield, so calling it "
            "does nothing",
            hint="Return the text instead of yielding it",
        )


def _wanted(name: str, function: FunctionType) -> tuple[tuple[str, ...], frozenset[str]]:
    """The arguments that a command's function gets, and those of them that may be left out."""
    wants: list[str] = []
    optional: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        told = f"{name_of(function)}, for /{name}, "
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = [each for each in COMMAND_ARGUMENTS if each not in {*wants, *NAMED_ONLY}]
            return (*wants, *rest), frozenset({*optional, *rest})
        if parameter.name in COMMAND_ARGUMENTS and parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            wants.append(parameter.name)
            if parameter.default is not parameter.empty:
                optional.add(parameter.name)
        elif parameter.name in COMMAND_ARGUMENTS:
            raise refused(
                function,
                f"{told}takes {parameter.name!r} by position only",
                hint="Arguments are passed by name: remove the '/' or '*'",
            )
        elif parameter.default is parameter.empty or not parameter.name.startswith("_"):
            raise refused(
                function,
                f"{told}wants {parameter.name!r}, which commands do not have",
                hint=did_you_mean(parameter.name, COMMAND_ARGUMENTS),
            )
    return tuple(wants), frozenset(optional)


def commands_of(thing: Any) -> tuple[CommandRegistration, ...]:
    """What `register_command` marked: a function, or the functions that a module defines."""
    if isinstance(thing, ModuleType):
        own = [each for each in vars(thing).values() if isinstance(each, FunctionType)]
        return tuple(
            registration
            for each in own
            if f"{each.__module__}.".startswith(f"{thing.__name__}.")
            for registration in commands_of(each)
        )
    marks = getattr(thing, _MARKS, ()) if isinstance(thing, FunctionType) else ()
    return tuple(CommandRegistration(thing, mark) for mark in marks)


def build_commands(
    extension: str, registrations: Iterable[CommandRegistration], *, config: Any = None
) -> tuple[Command, ...]:
    """The commands of an extension.

    Raises:
        RegistrationError: two of its functions have one name.
    """
    built: dict[str, Command] = {}
    for each in registrations:
        function, mark = each.function, each.mark
        assert isinstance(function, FunctionType)
        file, line = place_of(function)
        taken = built.get(mark.name)
        if taken is not None and taken.function is not function:
            raise refused(
                function,
                f"/{mark.name} is registered twice, for {name_of(taken.function)} "
                f"(line {taken.line}) and for {name_of(function)}",
                extension=extension,
                hint="Rename one of them",
            )
        wants, optional = _wanted(mark.name, function)
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        built[mark.name] = Command(
            name=mark.name,
            extension=extension,
            function=function,
            wants=wants,
            optional=optional,
            args_hint=mark.args_hint,
            help=mark.help or summary,
            is_async=is_async_function(function),
            config=config,
            file=file,
            line=line,
        )
    return tuple(built.values())
