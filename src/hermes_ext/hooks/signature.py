"""What a function wants: its signature, checked against what its hook can give."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from hermes_ext._text import near_names
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks.payloads import NAMED_ONLY
from hermes_ext.hooks.table import TABLE, HookName


class Signature(NamedTuple):  # many handlers share one, and what is compiled is looked up by it
    """What a function wants of a hook's arguments.

    Attributes:
        wants: the names, in the function's own order.
        positional: whether they are all passed by position (the fastest way).
        optional: those that are left out where the runtime does not know them.
    """

    wants: tuple[str, ...]
    positional: bool
    optional: frozenset[str]


def place_of(function: Any) -> tuple[str, int]:
    """File and line (1-based) of a function, method, partial or callable object."""
    inner = _unwrapped(_innermost(function))
    code = getattr(inner, "__code__", None)
    if code is None:
        return "", 0
    return code.co_filename, code.co_firstlineno


def refused(function: Any, message: str, **named: Any) -> RegistrationError:
    """The error about a function, which says where it is; `named` as `RegistrationError` has it."""
    file, line = place_of(function)
    return RegistrationError(message, path=Path(file) if file else None, line=line or None, **named)


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, (FunctionType, MethodType)):
        return getattr(function, "__func__", function)
    call = inspect.getattr_static(type(function), "__call__", None)
    return call if isinstance(call, FunctionType) else function


def _unwrapped(function: Any) -> Any:
    return inspect.unwrap(function) if hasattr(function, "__wrapped__") else function


def did_you_mean(word: object, known: Any) -> str:
    """`Did you mean 'x'?` with the near ones, then all that there are."""
    names = [str(name) for name in known]
    close = near_names(str(word), names, most=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}? There are {', '.join(names)}"
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
    plain = _plain_names(function, is_method)
    if plain is not None and (known := _plain_signature(hook, plain)) is not None:
        return known
    check = _SignatureCheck(hook, function)
    check.refuse_what_is_not_a_function()
    try:
        return check.compiled(is_method)
    except RegistrationError as error:
        raise error from pluggy_refusal(hook.value, function)


def pluggy_refusal(hook: str, function: Any, *, wrapper: bool = False) -> Exception | None:
    """What pluggy has against a function for a hook, None if nothing: the cause of our errors."""
    # Registering functions needs no pluggy: hosts register extensions, and authors' errors are few.
    from hermes_ext.hooks.plugins import Implementation, refusal_of

    return refusal_of(Implementation(hook, function, wrapper=wrapper))


class _SignatureCheck:
    def __init__(self, hook: HookName, function: Any) -> None:
        self.hook = hook
        self.function = function
        self.known = TABLE[hook].names

    def error(self, message: str, hint: str) -> RegistrationError:
        return refused(self.function, message, hook=self.hook.value, hint=hint)

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
        inner = _unwrapped(_innermost(self.function))
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
            given = {*wants, *bound, *NAMED_ONLY}
            rest = [name for name in self.known if name not in given]
            return Signature((*wants, *rest), False, frozenset({*optional, *rest}))
        self._refuse_bare_varargs(parameters)
        return Signature(tuple(wants), positional and not optional, frozenset(optional))

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


_SPECIAL: Final = (
    inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
)


@functools.lru_cache(maxsize=256)
def _plain_signature(hook: HookName, names: tuple[str, ...]) -> Signature | None:
    """That of a plain function; None if its hook does not have all that it names."""
    return Signature(names, True, frozenset()) if set(names) <= set(TABLE[hook].names) else None


def _plain_names(function: Any, is_method: bool) -> tuple[str, ...] | None:
    """The parameters of a function that has no defaults, no yield and nothing else special.

    Most handlers are so, and their code says it at a tenth of the cost of `inspect.signature`.
    """
    if (
        type(function) is not FunctionType
        or function.__defaults__
        or function.__dict__.keys() & {"__wrapped__", "__signature__"}
    ):
        return None
    code = function.__code__
    if code.co_flags & _SPECIAL or code.co_kwonlyargcount or code.co_posonlyargcount:
        return None
    return code.co_varnames[is_method : code.co_argcount]


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
    plain = _unwrapped(inner)
    return inspect.iscoroutinefunction(inner) or (
        plain is not inner and inspect.iscoroutinefunction(plain)
    )
