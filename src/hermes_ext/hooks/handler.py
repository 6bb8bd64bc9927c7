"""`Handler`: one function for one hook, and how it is called."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from hermes_ext._values import field, frozen
from hermes_ext.exceptions import StateError
from hermes_ext.hooks.isolation import Messages, own_copy
from hermes_ext.hooks.payloads import NO_METADATA, Scope
from hermes_ext.hooks.results import PASS
from hermes_ext.hooks.settings import Leaves, Setting, settings_named
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import EVERYWHERE, TABLE, Action, HookName

if TYPE_CHECKING:
    from hermes_ext.hooks.signature import Signature

OnError: TypeAlias = Literal["pass", "block", "ask"]
Pack: TypeAlias = Callable[[Any, Scope, "Handler", Mapping[str, Any]], tuple[Any, ...]]
"""From event, scope, handler and metadata, the arguments for `Handler.call`."""


@frozen
class HookMark:
    """What `register_hook` notes on a function."""

    hook: HookName
    priority: int = 100
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    guard: bool = False
    tools: tuple[str, ...] | None = None
    origins: tuple[str, ...] | None = None
    on_error: OnError | None = None
    on_store_error: OnError | None = None
    timeout: float | None = None


@frozen(eq=False, kw_only=True)
class Handler(HookMark):
    """One function for one hook, ready to be called. Made by `build_handlers`.

    Attributes:
        extension, name: who it is; `str(handler)` is `extension/name`.
        function: as registered, as is what its mark has.
        on_error: what its failure does: `pass`, `block` or `ask`.
        on_store_error: what it does where session state is unavailable; None: as `on_error`.
        timeout: seconds that it may take, None for no limit.
        source: where its extension comes from.
        sequence: its place in the order of registration.
        file, line: where the function is defined.
        wants: the arguments that it gets.
        is_async: whether its result is awaited.
        config: its extension's settings.
        leaves: gives these settings one by one, with where each is from; None: not known.
        observe: whether its verdicts are only recorded.
        allowed: the actions that it may return.
        inline: whether it runs in the caller's thread, without waiting for anything.
        call, pack: `call(*pack(event, scope, handler, metadata))` calls it.
    """

    extension: str
    name: str
    function: Callable[..., Any]
    signature: Signature
    on_error: OnError = "pass"
    source: Source = Source.GLOBAL
    sequence: int = 0
    file: str = ""
    line: int = 0
    is_async: bool = False
    config: Any = field(default=None, repr=False)
    observe: bool = False
    leaves: Leaves | None = field(default=None, repr=False)

    allowed: frozenset[Action] = field(init=False, repr=False)
    inline: bool = field(init=False, repr=False)
    call: Callable[..., Any] = field(init=False, repr=False)
    pack: Pack = field(init=False, repr=False)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @allowed.default
    def _allowed(self) -> frozenset[Action]:
        defined = TABLE[self.hook]
        return defined.verdicts if self.guard else defined.actions

    @inline.default
    def _inline(self) -> bool:
        return not self.is_async and self.timeout is None

    @call.default
    def _call(self) -> Callable[..., Any]:
        if self.signature.positional:
            return self.function
        function = self.function
        return lambda named: function(**named)

    @pack.default
    def _pack(self) -> Pack:
        return _packer(self.signature)

    def __str__(self) -> str:
        return f"{self.extension}/{self.name}"

    def policy(self, error: BaseException) -> OnError:
        """What its failure by `error` does."""
        if self.on_store_error is not None and is_store_error(error):
            return self.on_store_error
        return self.on_error

    @property
    def wants(self) -> tuple[str, ...]:
        """The arguments that it gets."""
        return self.signature.wants

    def settings(self, named: Any) -> tuple[Setting, ...]:
        """The settings that its result named, with the values that it was given."""
        if named is None:
            return ()
        return settings_named(named, self.extension, self.config, self.leaves)

    def given(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Arguments made by `pack`, by name."""
        if not self.signature.positional:
            return values[0]  # type: ignore[no-any-return]
        return dict(zip(self.wants, values, strict=True))


def is_store_error(error: BaseException) -> bool:
    """Whether session state could not be read or stored."""
    return isinstance(error, StateError) and error.unavailable


# -- arguments ----------------------------------------------------------------------------------

_ARGUMENTS: Final = [one for defined in TABLE.values() for one in defined.arguments]
_COPIED: Final = frozenset(
    {"event", *(one.name for one in _ARGUMENTS if one.type.startswith(("dict", "list")))}
)
_OF_EVENT_OR_NONE: Final = frozenset(one.name for one in _ARGUMENTS if "None" in one.type)
_OF_ITS_EXTENSION: Final = frozenset({"config", "data_dir", "session_state"})
_MAY_FAIL: Final = frozenset({"turn_number"})
_COPY: Final = "event.arguments.copy"
# Where a value comes from. What can be changed is copied, once for each handler that names it.
_EXPRESSIONS: Final = {
    **{one.name: f"scope.{one.name}" for one in EVERYWHERE},
    **{
        one.name: f"own_copy(event.{one.name})" if one.name in _COPIED else f"event.{one.name}"
        for one in _ARGUMENTS
    },
    "event": "event.lend()",
    "metadata": "own_metadata(metadata)",
    "config": "handler.config",
    "session_state": "scope.session_state_of(handler.extension)",
    "turn_number": "scope.turn_number if scope.not_counted is None else no_number(scope)",
    "data_dir": "scope.data_dir_of(handler.extension)",
    "messages": "Messages(event._plain)",
    "tool_args": f"{_COPY}()",
}


def _own_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(own_copy(dict(metadata))) if metadata else NO_METADATA


def _no_number(scope: Scope) -> Any:
    raise StateError(f"the turn has no number: {scope.not_counted}", unavailable=True)


def _known(named: dict[str, Any], scope: Scope, handler: Handler) -> dict[str, Any]:
    """Without the parameters that have a default where the runtime knows no value."""
    optional = handler.signature.optional
    for name in scope.unknown & optional:
        del named[name]
    for name in _OF_EVENT_OR_NONE & optional:
        if named.get(name, True) is None:
            del named[name]
    return named


# The code that makes the arguments is compiled from text, as the methods of an attrs class are:
# looking the names up at each call costs more than calling the handlers. The text is made of the
# table above and nothing else.

COMPILED: Final = "<arguments of hermes_ext handlers>"
_PARAMETERS: Final = "event, scope, handler, metadata"


def _named_values(signature: Signature) -> str:
    values = {
        # One that may be left out is no reason to fail.
        name: f"scope.{name}" if name in _MAY_FAIL & signature.optional else _EXPRESSIONS[name]
        for name in signature.wants
    }
    pairs = ", ".join(f"{name!r}: {value}" for name, value in values.items())
    return f"known({{{pairs}}}, scope, handler)"


def _compiled(text: str) -> Any:
    names: dict[str, Any] = {
        "known": _known,
        "Messages": Messages,
        "own_copy": own_copy,
        "own_metadata": _own_metadata,
        "no_metadata": NO_METADATA,
        "no_number": _no_number,
        "PASS": PASS,
    }
    exec(compile(text, COMPILED, "exec"), names)
    return names["made"]


@functools.lru_cache(maxsize=256)
def _packer(signature: Signature) -> Pack:
    """A function that makes the arguments for `Handler.call`."""
    values = (
        (_EXPRESSIONS[name] for name in signature.wants)
        if signature.positional
        else [_named_values(signature)]
    )
    made = "".join(f"{value}, " for value in values)
    return _compiled(f"made = lambda {_PARAMETERS}: ({made})")  # type: ignore[no-any-return]


class Caller:
    """Calls handlers that need not be waited for, one after the other.

    Attributes:
        call_all: the function that does it.
        alone: whether there is but one.
    """

    __slots__ = ("_lines", "_starts", "alone", "call_all")

    def __init__(self, handlers: Sequence[Handler]) -> None:
        make = _caller_of(tuple(handler.signature for handler in handlers))
        self.call_all = make([handler.call for handler in handlers], handlers)
        self.alone = len(handlers) == 1
        self._starts, self._lines = _lines_of(self.call_all.__code__)

    def place_of(self, error: BaseException) -> int:
        """Which of the handlers was at work when `call_all` raised.

        Each is called on a line of its own, so the instruction that the traceback names tells: to
        keep count would cost a quarter of it all, and `tb_lineno` as much as the exception.
        """
        # The first frame is that of who called it.
        trace = error.__traceback__ and error.__traceback__.tb_next
        return 0 if trace is None else self.place_at(trace.tb_lasti)

    def place_at(self, instruction: int) -> int:
        """Which of the handlers is called by an instruction of `call_all`."""
        return self._lines[max(bisect_right(self._starts, instruction) - 1, 0)]


@functools.lru_cache(maxsize=256)
def _lines_of(code: CodeType) -> tuple[list[int], list[int]]:
    """Where the instructions of each handler's line start, and the places of the handlers."""
    found = [(start, line) for start, _, line in code.co_lines() if line is not None]
    before = code.co_firstlineno + _LINES_BEFORE
    return [start for start, _ in found], [max(0, line - before) for _, line in found]


_LINES_BEFORE: Final = 2  # `def`, and the values that the handlers share


@functools.lru_cache(maxsize=256)
def _caller_of(signatures: tuple[Signature, ...]) -> Callable[..., Any]:
    # Nobody before them has added metadata, or they would not be called from here.
    shared = {
        name: f"{name} = {'no_metadata' if name == 'metadata' else _EXPRESSIONS[name]}"
        for signature in signatures
        for name in signature.wants
        if signature.positional and name not in _COPIED | _OF_ITS_EXTENSION | _MAY_FAIL
    }
    if any("tool_args" in signature.wants for signature in signatures):
        shared[_COPY] = f"own_args = {_COPY}"
    numbers = range(len(signatures))
    lines = [
        "def made(functions, handlers):",
        f"    {', '.join(f'f{n}' for n in numbers)}, = functions",
        f"    {', '.join(f'h{n}' for n in numbers)}, = handlers",
        "    def call_all(event, scope):",
        f"        {'; '.join(shared.values()) or 'pass'}",
        *(_line(number, signature, shared) for number, signature in enumerate(signatures)),
        "        return None",
        "    return call_all",
    ]
    return _compiled("\n".join(lines))  # type: ignore[no-any-return]


def _line(number: int, signature: Signature, shared: Mapping[str, str]) -> str:
    """The call of one handler."""
    if signature.positional:
        values = ", ".join(
            name if name in shared else _EXPRESSIONS[name] for name in signature.wants
        )
    else:
        values = _named_values(signature).replace("own_metadata(metadata)", "no_metadata")
    values = re.sub(r"\bhandler\b", f"h{number}", values).replace(_COPY, "own_args")
    call = f"(returned := f{number}({values})) is not None and returned is not PASS"
    return f"        if {call}: return {number}, returned"
