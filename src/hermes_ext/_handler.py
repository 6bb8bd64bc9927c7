"""`Handler`: one function for one hook, with its signature checked and compiled to a call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from operator import attrgetter
from pathlib import Path
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

from hermes_ext._isolation import Messages, own_copy
from hermes_ext._payloads import ARGUMENTS, NO_METADATA, Event, Scope
from hermes_ext._records import Source
from hermes_ext._results import ALLOWED, VERDICTS, Action, HookName
from hermes_ext.exceptions import RegistrationError

__all__ = [
    "Call",
    "Frame",
    "Handler",
    "OnError",
    "Signature",
    "did_you_mean",
    "place_of",
    "signature_of",
]

OnError: TypeAlias = Literal["pass", "block", "ask"]
Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Frame:
    """What one run of a chain can hand to a handler; the `own_…` are copies made when asked for."""

    __slots__ = ("event", "handler", "metadata", "scope")

    handler: Handler

    def __init__(self, event: Any, scope: Scope) -> None:
        self.event = event
        self.scope = scope
        self.metadata: Mapping[str, Any] = NO_METADATA

    @property
    def own_event(self) -> Event:
        return self.event.lend()  # type: ignore[no-any-return]

    @property
    def own_tool_args(self) -> dict[str, Any]:
        return own_copy(self.event.tool_args)  # type: ignore[no-any-return]

    @property
    def own_messages(self) -> list[Any]:
        return Messages(self.event.messages)

    @property
    def own_user_content(self) -> list[Any] | None:
        return own_copy(self.event.content)  # type: ignore[no-any-return]

    @property
    def own_metadata(self) -> Mapping[str, Any]:
        return MappingProxyType(own_copy(dict(self.metadata))) if self.metadata else NO_METADATA

    @property
    def session_state(self) -> MutableMapping[str, Any]:
        return self.scope.session_state_of(self.handler.extension)


_OF_EVENT: Final = (
    "tool_name",
    "tool_call_id",
    "result",
    "status",
    "duration_ms",
    "system_prompt",
    "api_call_count",
    "request_id",
    "command",
)
_SPECIAL: Final = {
    "event": "own_event",
    "metadata": "own_metadata",
    "config": "handler.config",
    "session_state": "session_state",
    "user_message": "event.text",
    "user_content": "own_user_content",
    "messages": "own_messages",
    "tool_args": "own_tool_args",
    **{name: f"event.{name}" for name in _OF_EVENT},
}
_MAY_BE_UNKNOWN: Final = frozenset(
    {"status", "duration_ms", "api_call_count", "request_id", "command", "user_content"}
)
_COPIED: Final = frozenset({"event", "messages", "tool_args", "user_content"})


def _path(name: str) -> str:
    return _SPECIAL.get(name, f"scope.{name}")


def _packer(names: tuple[str, ...]) -> Callable[[Frame], tuple[Any, ...]]:
    if not names:
        return lambda _frame: ()
    get: Callable[[Frame], Any] = attrgetter(*map(_path, names))
    if len(names) == 1:
        return lambda frame: (get(frame),)
    return get


@frozen
class Signature:
    """What a function wants of a hook's arguments.

    Attributes:
        wants: the names, in the function's own order.
        positional: whether they can be passed by position (the fastest way).
        optional: those that are left out where the runtime does not know them.
    """

    wants: tuple[str, ...]
    positional: bool
    optional: frozenset[str]


@frozen(eq=False)
class Handler:
    """One function for one hook, ready to be called. Made by `build_handlers`.

    Attributes:
        extension, name: who it is; `str(handler)` is `extension/name`.
        hook, function, priority, before, after, guard, tools, origins: as registered.
        on_error: what its failure does: `pass`, `block` or `ask`.
        timeout: seconds that it may take, None for no limit.
        source: where its extension comes from.
        sequence: its place in the order of registration.
        file, line: where the function is defined.
        wants: the arguments that it gets.
        is_async: whether its result is awaited.
        config: its extension's settings.
        observe: whether its verdicts are only recorded.
    """

    extension: str
    name: str
    hook: HookName
    function: Callable[..., Any]
    signature: Signature
    priority: int = 100
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    guard: bool = False
    tools: tuple[str, ...] | None = None
    origins: tuple[str, ...] | None = None
    on_error: OnError = "pass"
    timeout: float | None = None
    source: Source = Source.GLOBAL
    sequence: int = 0
    file: str = ""
    line: int = 0
    is_async: bool = False
    config: Any = field(default=None, repr=False)
    observe: bool = False

    allowed: frozenset[Action] = field(init=False, repr=False)
    call: Callable[..., Any] = field(init=False, repr=False)
    pack: Callable[[Frame], tuple[Any, ...]] = field(init=False, repr=False)

    @allowed.default
    def _allowed(self) -> frozenset[Action]:
        return (VERDICTS if self.guard else ALLOWED)[self.hook]

    @call.default
    def _call(self) -> Callable[..., Any]:
        if self.signature.positional:
            return self.function
        function, wants = self.function, self.signature.wants
        return lambda *values: function(**dict(zip(wants, values, strict=True)))

    @pack.default
    def _pack(self) -> Callable[[Frame], tuple[Any, ...]]:
        return _packer(self.signature.wants)

    def __str__(self) -> str:
        return f"{self.extension}/{self.name}"

    @property
    def wants(self) -> tuple[str, ...]:
        """The arguments that it gets."""
        return self.signature.wants

    @property
    def inline(self) -> bool:
        """Whether it runs in the caller's thread, without waiting for anything."""
        return not self.is_async and self.timeout is None

    @property
    def light(self) -> bool:
        """Whether the chain's tight loop may call it."""
        return (
            self.inline
            and not self.observe
            and "session_state" not in self.wants
            and self.signature.optional.isdisjoint(_MAY_BE_UNKNOWN)
        )

    @property
    def shares_arguments(self) -> bool:
        """Whether nothing it gets is a copy made for it."""
        return _COPIED.isdisjoint(self.wants) and "config" not in self.wants

    def bind(self, frame: Frame) -> Call:
        """The call to make: function, positional and keyword arguments."""
        frame.handler = self
        values = self.pack(frame)
        optional = self.signature.optional
        if not optional:
            return self.call, values, {}
        absent = frame.scope.unknown
        named = {
            name: value
            for name, value in zip(self.signature.wants, values, strict=True)
            if name not in optional
            or not (name in absent or (value is None and name in _MAY_BE_UNKNOWN))
        }
        return self.function, (), named


def place_of(function: Any) -> tuple[str, int]:
    """File and line (1-based) of a function, method, partial or callable object."""
    inner = inspect.unwrap(_innermost(function))
    code = getattr(inner, "__code__", None)
    if code is None:
        return "", 0
    return code.co_filename, code.co_firstlineno


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, (FunctionType, MethodType)):
        return getattr(function, "__func__", function)
    call = inspect.getattr_static(type(function), "__call__", None)
    return call if isinstance(call, FunctionType) else function


def did_you_mean(word: object, known: Any) -> str:
    """`Did you mean 'x'?`, or the list of what there is."""
    from difflib import get_close_matches

    names = [str(name) for name in known]
    close = get_close_matches(str(word).lower(), names, n=1)
    if close:
        return f"Did you mean {close[0]!r}? There are {', '.join(names)}"
    return f"There are {', '.join(names)}"


def signature_of(hook: HookName, function: Any, *, is_method: bool = False) -> Signature:
    """Check and compile a function's signature.

    Args:
        hook: the hook it is for.
        function: what will be called.
        is_method: whether its first parameter is `self`, still to be bound.

    Raises:
        RegistrationError: it cannot be called with the hook's arguments.
    """
    check = _SignatureCheck(hook, function)
    check.refuse_what_is_not_a_function()
    return check.compiled(is_method)


class _SignatureCheck:
    def __init__(self, hook: HookName, function: Any) -> None:
        self.hook = hook
        self.function = function
        self.known = ARGUMENTS[hook]

    def error(self, message: str, hint: str) -> RegistrationError:
        file, line = place_of(self.function)
        return RegistrationError(
            message,
            hook=self.hook.value,
            path=Path(file) if file else None,
            line=line or None,
            hint=hint,
        )

    @property
    def name(self) -> str:
        return name_of(self.function)

    def refuse_what_is_not_a_function(self) -> None:
        if not callable(self.function):
            raise self.error(
                f"a handler must be a function, got {type(self.function).__name__}",
                "Put register_hook in front of a def",
            )
        if inspect.isclass(self.function):
            raise self.error(
                f"{self.name} is a class", "Register its methods, or an instance that is callable"
            )
        inner = inspect.unwrap(_innermost(self.function))
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise self.error(
                f"{self.name} is a generator: it contains yield, so calling it decides nothing",
                "Return a HookResult instead of yielding",
            )

    def compiled(self, is_method: bool) -> Signature:
        parameters = self._parameters(is_method)
        bound = _bound_keywords(self.function)
        wants: list[str] = []
        optional: set[str] = set()
        positional = _takes_positions(self.function)
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.name in bound or not self._is_wanted(parameter):
                positional = False
                continue
            wants.append(parameter.name)
            positional &= parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if parameter.default is not parameter.empty:
                optional.add(parameter.name)
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            rest = [name for name in self.known if name not in wants and name not in bound]
            return Signature((*wants, *rest), False, frozenset({*optional, *rest}))
        self._refuse_bare_varargs(parameters)
        return Signature(tuple(wants), positional, frozenset(optional))

    def _parameters(self, is_method: bool) -> list[inspect.Parameter]:
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError) as error:
            raise self.error(
                f"{self.name} has no signature that could be read ({error})",
                "Wrap it in a def that names the arguments it wants",
            ) from None
        return parameters[1:] if is_method else parameters

    def _is_wanted(self, parameter: inspect.Parameter) -> bool:
        known = parameter.name in self.known
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise self.error(
                f"{self.name} takes {parameter.name!r} by position only",
                "Hook arguments are passed by name: remove the '/'",
            )
        if known:
            return True
        if parameter.name.startswith("_") and parameter.default is not parameter.empty:
            return False
        raise self.error(
            f"{self.name} wants {parameter.name!r}, which {self.hook.value} does not have",
            did_you_mean(parameter.name, self.known),
        )

    def _refuse_bare_varargs(self, parameters: list[inspect.Parameter]) -> None:
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            raise self.error(
                f"{self.name} takes *args, which would stay empty",
                "Name the arguments that you want, or take **kwargs for all",
            )


def _bound_keywords(function: Any) -> frozenset[str]:
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return frozenset(names)


def _takes_positions(function: Any) -> bool:
    # A wrapper made with functools.wraps shows the inner function's signature, but may itself take
    # only **kwargs; partials and callable objects are called by keyword to be on the safe side.
    inner = function.__func__ if isinstance(function, MethodType) else function
    return isinstance(inner, FunctionType) and not hasattr(inner, "__wrapped__")


def name_of(function: Any) -> str:
    """A function's name as its author knows it: `check`, `Guard.check`."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return str(name).rpartition("<locals>.")[2]


def is_async_function(function: Any) -> bool:
    """Whether a function's result is to be awaited."""
    inner = _innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(inspect.unwrap(inner))
