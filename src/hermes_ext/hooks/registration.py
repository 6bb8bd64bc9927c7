"""Marking functions as handlers, collecting the marks, and building handlers from them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, MethodType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from hermes_ext._text import near_names
from hermes_ext._values import evolve, fields, frozen
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks.handler import Handler, HookMark, OnError
from hermes_ext.hooks.payloads import ORIGINS
from hermes_ext.hooks.results import (
    CallResult,
    CallVerdict,
    InputResult,
    InputVerdict,
    RequestResult,
    RequestVerdict,
    ToolOutputResult,
    ToolOutputVerdict,
)
from hermes_ext.hooks.settings import Leaves
from hermes_ext.hooks.signature import (
    did_you_mean,
    is_async_function,
    name_of,
    place_of,
    pluggy_refusal,
    refused,
    signature_of,
)
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import TABLE, Action, HookDef, HookName

_MARKS: Final = "__hermes_ext_marks__"

_T = TypeVar("_T")


@frozen
class Registration:
    """A function and one of its marks."""

    function: Callable[..., Any]
    mark: HookMark


_collected: ContextVar[list[Registration] | None] = ContextVar("hermes_ext_collected", default=None)


@contextmanager
def collecting() -> Iterator[list[Registration]]:
    """While an extension is being loaded: what it registers, whichever module it stands in."""
    found: list[Registration] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


# -- decorators ---------------------------------------------------------------------------------

_InputF = TypeVar("_InputF", bound=Callable[..., InputResult | Awaitable[InputResult]])
_InputG = TypeVar("_InputG", bound=Callable[..., InputVerdict | Awaitable[InputVerdict]])
_RequestF = TypeVar("_RequestF", bound=Callable[..., RequestResult | Awaitable[RequestResult]])
_RequestG = TypeVar("_RequestG", bound=Callable[..., RequestVerdict | Awaitable[RequestVerdict]])
_CallF = TypeVar("_CallF", bound=Callable[..., CallResult | Awaitable[CallResult]])
_CallG = TypeVar("_CallG", bound=Callable[..., CallVerdict | Awaitable[CallVerdict]])
_OutputF = TypeVar("_OutputF", bound=Callable[..., ToolOutputResult | Awaitable[ToolOutputResult]])
_OutputG = TypeVar(
    "_OutputG", bound=Callable[..., ToolOutputVerdict | Awaitable[ToolOutputVerdict]]
)

_Input: TypeAlias = Literal["transform_user_input", HookName.TRANSFORM_USER_INPUT]
_Request: TypeAlias = Literal["before_llm_call", HookName.BEFORE_LLM_CALL]
_ToolCall: TypeAlias = Literal["intercept_tool_call", HookName.INTERCEPT_TOOL_CALL]
_Output: TypeAlias = Literal["transform_tool_result", HookName.TRANSFORM_TOOL_RESULT]
if TYPE_CHECKING:

    def _is_spelled_above(hook: HookName) -> _Input | _Request | _ToolCall | _Output:
        return hook


_Names: TypeAlias = list[str] | tuple[str, ...]
_Failing: TypeAlias = Literal["pass", "block"]


class _Common(TypedDict, total=False):
    """The options of every hook; `register_hook` has their documentation."""

    priority: int
    before: _Names
    after: _Names
    origins: _Names | None
    timeout: float | None


class _Options(_Common, total=False):
    on_error: _Failing | None
    on_store_error: _Failing | None


class _ToolOptions(_Options, total=False):
    tools: _Names | None


class _AskingOptions(_Common, total=False):
    tools: _Names | None
    on_error: OnError | None
    on_store_error: OnError | None


class _AnyOptions(_AskingOptions, total=False):
    guard: bool


@overload
def register_hook(
    hook: _Input, *, guard: Literal[True], **options: Unpack[_Options]
) -> Callable[[_InputG], _InputG]: ...
@overload
def register_hook(
    hook: _Input, *, guard: Literal[False] = False, **options: Unpack[_Options]
) -> Callable[[_InputF], _InputF]: ...
@overload
def register_hook(
    hook: _Request, *, guard: Literal[True], **options: Unpack[_Options]
) -> Callable[[_RequestG], _RequestG]: ...
@overload
def register_hook(
    hook: _Request, *, guard: Literal[False] = False, **options: Unpack[_Options]
) -> Callable[[_RequestF], _RequestF]: ...
@overload
def register_hook(
    hook: _ToolCall, *, guard: Literal[True], **options: Unpack[_AskingOptions]
) -> Callable[[_CallG], _CallG]: ...
@overload
def register_hook(
    hook: _ToolCall, *, guard: Literal[False] = False, **options: Unpack[_AskingOptions]
) -> Callable[[_CallF], _CallF]: ...
@overload
def register_hook(
    hook: _Output, *, guard: Literal[True], **options: Unpack[_ToolOptions]
) -> Callable[[_OutputG], _OutputG]: ...
@overload
def register_hook(
    hook: _Output, *, guard: Literal[False] = False, **options: Unpack[_ToolOptions]
) -> Callable[[_OutputF], _OutputF]: ...
def register_hook(hook: Any, **options: Any) -> Callable[[Any], Any]:
    """Mark a function as a handler of `hook`, and return it unchanged.

    Args:
        hook: `transform_user_input`, `before_llm_call`, `intercept_tool_call` or
            `transform_tool_result`.
        priority: lower runs earlier; 100 by default. Ties: bundled, entry point, global, project;
            then the extension's name; then the order of registration.
        before: extensions that this handler runs before, whatever the priorities. Unknown names
            are ignored.
        after: extensions that it runs after.
        guard: runs after all transformers and sees the final value; may only pass, block, and
            for `intercept_tool_call` confine or ask.
        tools: for the tool hooks, names or globs (`["terminal", "mcp_*"]`) of the tools that it is
            for; case and surrounding spaces are ignored. None: all.
        origins: where turns must come from (`user`, `api`, `cron`, `batch`, `subagent`,
            `background`, `steer`, `extension`). None: all, except `background` for
            `transform_user_input`.
        on_error: what a failure does: `pass`, `block`, or `ask` (`intercept_tool_call` only). By
            default `block` for `intercept_tool_call` and for guards, else `pass`.
        on_store_error: what it does where `session_state` cannot be read or stored at the moment,
            and the handler lets that `StateError` through: the same words. None: as any other
            failure. It never suspends the handler.
        timeout: seconds until a call counts as failed; 0 for no limit. By default 10 for guards
            and none for others.

    Raises:
        RegistrationError: unknown hook, argument or option, or a value that cannot be right.
    """
    mark = _checked_mark(hook, options)

    def decorate(function: _T) -> _T:
        _mark(function, mark)
        return function

    return decorate


_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def hookimpl(function: _F, /) -> _F: ...
@overload
def hookimpl(**options: Unpack[_AnyOptions]) -> Callable[[_F], _F]: ...
def hookimpl(function: Any = None, /, **options: Any) -> Any:
    """As `register_hook`, for people who know pluggy: the function's name is the hook's.

    Usable as `@hookimpl` and as `@hookimpl(priority=10, guard=True)`, on functions and on methods.
    The methods of a class count once an instance of it stands in the module.

    Raises:
        RegistrationError: as `register_hook`; also for pluggy's own options, which the chain has
            other means for.
    """
    _refuse_pluggy_options(options)

    def decorate(target: _T) -> _T:
        name = name_of(target).rpartition(".")[2]
        _mark(target, _checked_mark(name, options))
        return target

    return decorate if function is None else decorate(function)


_PLUGGY_OPTIONS: Final = {
    "hookwrapper": "Wrappers are not called; register a guard, which sees the final value",
    "wrapper": "Wrappers are not called; register a guard, which sees the final value",
    "tryfirst": "Use priority=, lower runs earlier, or before=['other-extension']",
    "trylast": "Use priority=, lower runs earlier, or after=['other-extension']",
    "optionalhook": "All hooks exist; leave it out",
    "specname": "Use register_hook('the_hook') on a function of any name",
}


def _refuse_pluggy_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _PLUGGY_OPTIONS:
            hook, wrapper = next(iter(HookName)).value, name.endswith("wrapper")
            raise RegistrationError(
                f"pluggy's option {name!r} is not supported", hint=_PLUGGY_OPTIONS[name]
            ) from pluggy_refusal(hook, _any_handler, wrapper=wrapper)


# -- checking -----------------------------------------------------------------------------------


def _checked_mark(hook: Any, options: Mapping[str, Any]) -> HookMark:
    known = _hook_name(hook)
    _refuse_pluggy_options(options)
    for name in options:
        if name not in _CHECKS:
            raise _bad(known, f"unknown option {name!r}", did_you_mean(name, _CHECKS))
    given = {name: value for name, value in options.items() if value is not _DEFAULTS[name]}
    return HookMark(known, **{name: _CHECKS[name](known, name, given[name]) for name in given})


_DEFAULTS: Final = {one.name: one.default for one in fields(HookMark)}


def _hook_name(hook: Any) -> HookName:
    if callable(hook) and not isinstance(hook, str):
        raise RegistrationError(
            "register_hook needs the hook's name",
            hint="Write @register_hook('intercept_tool_call') above the def",
        )
    try:
        return HookName(hook)
    except ValueError:
        raise RegistrationError(
            f"there is no hook {hook!r}", hint=did_you_mean(hook, [name.value for name in HookName])
        ) from pluggy_refusal(str(hook), _any_handler)


def _any_handler() -> None:
    """Fits every hook: what pluggy has against it is not about its arguments."""


def _bad(hook: HookName, message: str, hint: str) -> RegistrationError:
    return RegistrationError(message, hook=hook.value, hint=hint)


def _priority(hook: HookName, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _bad(
            hook,
            f"{name}={value!r} is not an int",
            "Write a whole number; lower runs earlier, 100 is the default",
        )
    return int(value)


def _names(hook: HookName, name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise _bad(hook, f"{name}={value!r} is a str", f"Use a list: {name}=[{value!r}]")
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(one, str) and one.strip() for one in value
    ):
        raise _bad(hook, f"{name}={value!r} is not a list of names", f"Write {name}=['name']")
    return tuple(value)


def _some(hook: HookName, name: str, value: Any) -> tuple[str, ...]:
    names = _names(hook, name, value)
    if not names:
        raise _bad(hook, f"{name}= is empty, so the handler would never be called", "Leave it out")
    return names


def _tools(hook: HookName, name: str, value: Any) -> tuple[str, ...]:
    if not TABLE[hook].tools:
        raise _bad(
            hook,
            "tools= is for the tool hooks only",
            f"Leave it out, or register for {_those_with(lambda one: one.tools)}",
        )
    return _some(hook, name, value)


def _origins(hook: HookName, name: str, value: Any) -> tuple[str, ...]:
    origins = _some(hook, name, value)
    for origin in origins:
        if origin not in ORIGINS:
            raise _bad(
                hook, f"{name}: there is no origin {origin!r}", did_you_mean(origin, ORIGINS)
            )
    return origins


def _those_with(trait: Callable[[HookDef], bool]) -> str:
    return " or ".join(one.name.value for one in TABLE.values() if trait(one))


def _flag(hook: HookName, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _bad(hook, f"{name}={value!r} is not a bool", f"Write {name}=True or leave it out")
    return value


def _on_error(hook: HookName, name: str, value: Any) -> OnError:
    if value == "ask" and Action.ASK not in TABLE[hook].actions:
        asking = _those_with(lambda one: Action.ASK in one.actions)
        raise _bad(hook, f"{name}='ask' is for {asking} only", "Use 'pass' or 'block'")
    if value not in ("pass", "block", "ask"):
        raise _bad(hook, f"{name}={value!r}", "Use 'pass', 'block' or 'ask'")
    return cast("OnError", value)


def _timeout(hook: HookName, name: str, value: Any) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise _bad(
            hook, f"{name}={value!r} is not a number of seconds", "Write e.g. 2.5; 0 is no limit"
        )
    return float(value)


_CHECKS: Final[Mapping[str, Callable[[HookName, str, Any], Any]]] = {
    "priority": _priority,
    "before": _names,
    "after": _names,
    "guard": _flag,
    "tools": _tools,
    "origins": _origins,
    "on_error": _on_error,
    "on_store_error": _on_error,
    "timeout": _timeout,
}


# -- marks --------------------------------------------------------------------------------------


def _mark(function: Any, mark: HookMark) -> None:
    target = _where_marks_live(function)
    signature_of(mark.hook, target, is_method=_is_unbound_method(target))
    marks = marks_of(target)
    if mark not in marks:
        try:
            setattr(target, _MARKS, (*marks, mark))
        except AttributeError:
            raise RegistrationError(
                f"{name_of(function)} cannot be marked ({type(function).__name__})",
                hook=mark.hook.value,
                hint="Wrap it in a def",
            ) from None
    collected = _collected.get()
    if collected is not None:
        collected.append(Registration(function if callable(function) else target, mark))


def _where_marks_live(function: Any) -> Any:
    if isinstance(function, (staticmethod, MethodType)):
        return function.__func__
    return function


def _is_unbound_method(function: Any) -> bool:
    if not isinstance(function, FunctionType):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    return (
        bool(owner)
        and not owner.endswith("<locals>")
        and next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    )


def marks_of(function: Any) -> tuple[HookMark, ...]:
    """The marks that `register_hook` and `hookimpl` left on a function, first one first."""
    marks = getattr(_where_marks_live(function), _MARKS, ())
    return marks if isinstance(marks, tuple) else ()


def registrations_of(thing: Any) -> tuple[Registration, ...]:
    """What is registered by a function, an object with marked methods, or a module.

    A module counts its own marked functions (not those imported from elsewhere) and its
    instances of classes that have marked methods.

    Raises:
        RegistrationError: nothing there is marked.
    """
    if isinstance(thing, Registration):
        return (thing,)
    found = tuple(_found_in(thing))
    if not found:
        close = near_misses(thing) if isinstance(thing, ModuleType) else ()
        raise RegistrationError(
            f"nothing is registered by {getattr(thing, '__name__', None) or repr(thing)}",
            hint="; ".join(close) or "Put @register_hook('…') above the def",
        )
    return found


def _found_in(thing: Any) -> Iterator[Registration]:
    if isinstance(thing, ModuleType):
        for value in list(vars(thing).values()):
            if _belongs_to(value, thing) and not inspect.isclass(value):
                yield from _found_in_object(value)
        return
    yield from _found_in_object(thing)


def _belongs_to(value: Any, module: ModuleType) -> bool:
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and f"{home}.".startswith(f"{module.__name__}.")


def _found_in_object(thing: Any) -> Iterator[Registration]:
    own = marks_of(thing) if callable(thing) else ()
    if own and not _is_unbound_method(thing):
        yield from (Registration(thing, mark) for mark in own)
    if isinstance(thing, FunctionType) or inspect.isclass(thing):
        return
    for name, value in inspect.getmembers_static(type(thing)):
        if name != "__call__" and marks_of(value):
            method = getattr(thing, name)
            yield from (Registration(method, mark) for mark in marks_of(value))


def near_misses(module: ModuleType) -> tuple[str, ...]:
    """What in a module looks as if it were meant as a handler and is not registered.

    Functions that bear a hook's name, or nearly, without a mark; and functions with the marker of
    another pluggy project.

    Returns:
        One sentence each, with a did-you-mean; empty if there is nothing.
    """
    return tuple(
        text
        for name, value in sorted(vars(module).items())
        if _belongs_to(value, module) and not marks_of(value)
        for text in _near_miss(name, value)
    )


def _near_miss(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        for method, function in sorted(vars(value).items()):
            if not marks_of(function):
                yield from _near_miss(f"{name}.{method}", function)
        return
    if not isinstance(value, FunctionType):
        return
    place = f"{name} (line {value.__code__.co_firstlineno})"
    project = _foreign_marker(value)
    hooks = [hook.value for hook in HookName]
    near = near_names(name.rpartition(".")[2], hooks, most=1, cutoff=0.75)
    if project is not None:
        yield (
            f"{place} is marked for the pluggy project {project!r}, not for hermes_ext. "
            "Did you mean 'from hermes_ext import hookimpl'?"
        )
    elif near:
        yield f"{place} is not registered. Did you mean @register_hook({near[0]!r})?"


def _foreign_marker(function: FunctionType) -> str | None:
    for name, value in vars(function).items():
        if name.endswith("_impl") and isinstance(value, dict) and "hookwrapper" in value:
            return name.removesuffix("_impl")
    return None


# -- building -----------------------------------------------------------------------------------


def build_handlers(
    extension: str,
    registrations: Iterable[Registration],
    *,
    source: Source = Source.GLOBAL,
    config: Any = None,
    observe: bool = False,
    disabled_hooks: Iterable[str] = (),
    priorities: Mapping[str, int] | None = None,
    leaves: Leaves | None = None,
) -> tuple[Handler, ...]:
    """The handlers of an extension: all of them, or none and an error.

    Args:
        extension: its name.
        registrations: in the order of registration.
        source: where it comes from.
        config: its validated settings, which handlers get as `config`.
        observe: only record what its handlers would have done.
        disabled_hooks: hooks that it is not to be called for.
        priorities: priorities by hook, instead of the registered ones.
        leaves: gives its settings one by one, with where each is from.

    Raises:
        RegistrationError: one of them cannot work.
    """
    off = frozenset(disabled_hooks)
    built: list[Handler] = []
    for sequence, registration in enumerate(_with_instances(extension, registrations)):
        mark = _checked_order(extension, registration)
        if mark.hook.value in off:
            continue
        if priorities and mark.hook.value in priorities:
            wanted = _priority(mark.hook, "priority", priorities[mark.hook.value])
            mark = evolve(mark, priority=wanted)
        own = _of_function(extension, registration.function, mark)
        own |= {"extension": extension, "source": source, "sequence": sequence}
        built.append(Handler(config=config, observe=observe, leaves=leaves, **own))
    return tuple(built)


def _checked_order(extension: str, registration: Registration) -> HookMark:
    mark = registration.mark
    for option, names in (("before", mark.before), ("after", mark.after)):
        if extension in names:
            raise _misplaced(
                extension, registration, f"{option}= names the extension itself", "Use priority="
            )
    return mark


def _misplaced(
    extension: str, registration: Registration, message: str, hint: str
) -> RegistrationError:
    function = registration.function
    text = f"{name_of(function)}: {message}"
    hook = registration.mark.hook.value
    return refused(function, text, extension=extension, hook=hook, hint=hint)


def _with_instances(
    extension: str, registrations: Iterable[Registration]
) -> Iterator[Registration]:
    """Methods that were marked in a class body, bound to the module's instances of that class."""
    for registration in registrations:
        function = registration.function
        if not _is_unbound_method(function):
            yield registration
            continue
        instances = list(_instances_for(cast("FunctionType", function)))
        if not instances:
            raise _misplaced(
                extension,
                registration,
                "this is a method, and the module has no instance of its class",
                "Make one at the end of the module: plugin = TheClass()",
            )
        for instance in instances:
            yield Registration(MethodType(function, instance), registration.mark)


def _instances_for(method: FunctionType) -> Iterator[Any]:
    seen: set[int] = set()
    for value in list(method.__globals__.values()):
        kind = type(value)
        if id(value) not in seen and inspect.getattr_static(kind, method.__name__, None) is method:
            seen.add(id(value))
            yield value


def _of_function(extension: str, function: Any, mark: HookMark) -> dict[str, Any]:
    """What a handler has of its function and the mark on it."""
    try:
        signature = signature_of(mark.hook, function)
    except RegistrationError as error:
        error.extension = extension
        raise
    file, line = place_of(function)
    defined = TABLE[mark.hook]
    limit = mark.timeout
    if limit is None:
        limit = defined.guard_timeout if mark.guard else defined.timeout
    return {
        **{option: getattr(mark, option) for option in _DEFAULTS},
        "name": name_of(function),
        "function": function,
        "signature": signature,
        "on_error": mark.on_error or ("block" if mark.guard else defined.on_error),
        "timeout": limit or None,
        "file": file,
        "line": line,
        "is_async": is_async_function(function),
    }
