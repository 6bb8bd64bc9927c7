"""What a hook is about: the frozen events, and `Scope`, what every handler may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar, get_args

from hermes_ext._text import text_of
from hermes_ext._values import field, frozen
from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hooks.isolation import Messages, identical, own_copy, own_messages, raw
from hermes_ext.hooks.table import EVERYWHERE, TABLE, HookName, complete

if TYPE_CHECKING:
    from hermes_ext.effects import Machine, ToolTable


class _Unknown:
    """The sentinel for what the runtime does not know."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final[Any] = _Unknown()

ORIGINS: Final = ("user", "api", "cron", "batch", "subagent", "background", "steer", "extension")


def or_unknown(value: Any) -> Any:
    """`UNKNOWN` for None: what a host does not tell."""
    return UNKNOWN if value is None else value


def _known(value: Any) -> Any:
    return None if value is UNKNOWN else value


def _plain_text(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"expected a str, got {type(value).__name__}")


def _own_parts(value: Any) -> list[Any] | None:
    return own_copy(list(value)) if isinstance(value, (list, tuple)) else None


def _with_text(parts: list[Any], text: str) -> list[Any]:
    """The parts with their text replaced: one text part, where the first one stood."""
    first = next((place for place, part in enumerate(parts) if _is_text(part)), 0)
    kind = parts[first] if parts and _is_text(parts[first]) else {"type": "text"}
    others = [part for part in parts if not _is_text(part)]
    before = sum(not _is_text(part) for part in parts[:first])
    return [*others[:before], {**kind, "text": text}, *others[before:]]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)


# No slots: attrs builds a frozen class with slots at half the speed, and these are built often.
@frozen(slots=False)
class UserInput:
    """What the user wrote, before messages are built from it.

    Attributes:
        text: the text that the person typed; empty if there is none.
        content: the parts (dicts), where the message is a list; None for plain text.
        command: the skill whose slash command the text came with.
    """

    hook: ClassVar[HookName] = HookName.TRANSFORM_USER_INPUT
    expected: ClassVar[str] = "a str (the new text) or a list of content parts (dicts)"
    details: ClassVar[tuple[str, ...]] = ("text", "command")
    tool_name: ClassVar[None] = None
    title: ClassVar[str] = "an input"

    text: str = field(converter=_plain_text)
    content: list[dict[str, Any]] | None = field(default=None, converter=_own_parts)
    command: str | None = None

    @classmethod
    def from_arguments(cls, named: Mapping[str, Any]) -> Self:
        """An event from what a handler of it may ask for."""
        content = named.get("user_content")
        text = named.get("user_message", text_of(content or ""))
        return cls(text, content, named.get("command"))

    @classmethod
    def recorded(cls, value: Any, _call: Mapping[str, Any], details: Mapping[str, Any]) -> Self:
        """The event again that had this value, and these `details`."""
        return cls(content=value if isinstance(value, list) else None, **details)

    @property
    def user_message(self) -> str:
        """What handlers know the text as."""
        return self.text

    @property
    def user_content(self) -> list[dict[str, Any]] | None:
        """What handlers know the parts as."""
        return self.content

    @property
    def contents(self) -> dict[str, Any]:
        """By argument, what handlers get copies of."""
        return {"user_content": self.content}

    @property
    def value(self) -> str | list[dict[str, Any]]:
        """What flows through the chain: the parts if there are any, else the text."""
        return self.text if self.content is None else self.content

    def lend(self) -> Self:
        """The same event with contents of its own."""
        return self if self.content is None else type(self)(self.text, self.content, self.command)

    def problem(self, value: Any) -> str | None:
        """Why `value` cannot be what the text is rewritten to, or None."""
        if isinstance(value, str):
            return None
        return _list_problem(value)

    def rewritten(self, value: Any) -> Self:
        """This event with the text, or all parts, replaced."""
        if not isinstance(value, str):
            parts = own_copy(value)  # plain ones, so that their text is what guards see as text
            return type(self)(text_of(parts), parts, self.command)
        content = None if self.content is None else _with_text(self.content, value)
        return type(self)(value, content, self.command)


_Found = TypeVar("_Found")
_DICT: Final = frozenset({dict})


def _list_problem(value: Any) -> str | None:
    if not isinstance(value, list):
        return type(value).__name__
    if _DICT.issuperset(map(type, list.__iter__(value))):
        return None
    for place, item in enumerate(list.__iter__(value)):
        if not isinstance(item, dict):
            return f"a list with {type(item).__name__} at [{place}]"
    return None


@frozen(slots=False)
class LLMRequest:
    """A request to the model, the same for all its retries.

    Attributes:
        messages: chat-completions messages, whatever the provider speaks.
        system_prompt: the system prompt, injections of earlier handlers included.
        api_call_count: 1 for the turn's first request; a retry keeps its number. None: unknown.
        request_id: the host's id of the request. None: unknown.
    """

    hook: ClassVar[HookName] = HookName.BEFORE_LLM_CALL
    expected: ClassVar[str] = "a list of messages (dicts)"
    details: ClassVar[tuple[str, ...]] = ("system_prompt", "api_call_count", "request_id")
    tool_name: ClassVar[None] = None
    title: ClassVar[str] = "a request"

    messages: list[dict[str, Any]] = field(converter=Messages)
    system_prompt: str = ""
    api_call_count: int | None = field(default=None, converter=_known)
    request_id: str | None = field(default=None, converter=_known)
    _plain: list[dict[str, Any]] = field(init=False, eq=False, repr=False)

    @_plain.default
    def _the_same_messages(self) -> list[dict[str, Any]]:
        return raw(self.messages)

    @classmethod
    def from_arguments(cls, named: Mapping[str, Any]) -> Self:
        """An event from what a handler of it may ask for."""
        return cls(**named)

    @classmethod
    def recorded(cls, value: Any, _call: Mapping[str, Any], details: Mapping[str, Any]) -> Self:
        """The event again that had this value, and these `details`."""
        return cls(messages=value, **details)

    @property
    def contents(self) -> dict[str, Any]:
        """By argument, what handlers get copies of."""
        return {"messages": self.messages}

    @property
    def value(self) -> list[dict[str, Any]]:
        """What flows through the chain: the messages."""
        return self.messages

    def lend(self) -> Self:
        """The same event with contents of its own (copied when read)."""
        return self._with(self._plain, self.system_prompt)

    def problem(self, value: Any) -> str | None:
        """Why `value` cannot be what the messages are rewritten to, or None."""
        return _list_problem(value)

    def rewritten(self, value: Any) -> Self:
        """This event with the messages replaced; those that are left alone are shared."""
        return self._with(own_messages(value, self._plain), self.system_prompt)

    def with_injections(self, system: Sequence[str], user: Sequence[str]) -> Self:
        """As later handlers see it: what was injected stands at the end."""
        shown = [{"role": "user", "content": str(text)} for text in user]
        prompt = "\n\n".join(filter(None, [self.system_prompt, *system]))
        return self._with([*self._plain, *shown], prompt)

    def without(self, user: Sequence[str], system_prompt: str) -> Self:
        """The reverse of `with_injections`, after a handler rewrote what it saw."""
        messages = self._plain.copy()
        for text in reversed(user):
            shown = {"role": "user", "content": str(text)}
            place = len(messages) - 1
            while place >= 0 and not identical(messages[place], shown):
                place -= 1
            if place >= 0:
                del messages[place]
        return self._with(messages, system_prompt)

    def _with(self, messages: list[dict[str, Any]], system_prompt: str) -> Self:
        return type(self)(messages, system_prompt, self.api_call_count, self.request_id)


def _tools_of(machine: Machine | None) -> ToolTable:
    from hermes_ext.hosts.default import default_host

    return (machine and machine.tools) or default_host().tools()


_taken: Final = Arguments.of  # bound once, which takes as long as the call


class _Open:
    """A call or a result in the making: attrs builds a frozen class at a third of the speed."""


class _MadeWhenRead:
    """An attribute that most handlers do not read. The instance then has it itself.

    A `__getattr__` would make each attribute of the class slower to read.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, event: Any, owner: type) -> Any:
        if event is None:
            raise AttributeError(self._name)
        made = event.__dict__[self._name] = self._make(event)
        return made


def _machine_of(event: _AboutACall) -> Machine | None:
    where = event._where
    return where(event.tool_name) if callable(where) else where


class _AboutACall:
    """What a call and its result have in common: the arguments, and what is made when read."""

    tool_name: str
    arguments: Arguments
    tool_args: Any = _MadeWhenRead(lambda event: event.arguments.copy())
    machine: Any = _MadeWhenRead(_machine_of)
    read_only: Any = False
    __match_args__: ClassVar[tuple[str, ...]]
    _where: Machine | Callable[[str], Machine] | None

    def __new__(
        cls,
        tool_name: str,
        tool_args: Arguments | Mapping[str, Any] | None,
        tool_call_id: str = "",
        machine: Machine | Callable[[str], Machine] | None = None,
        read_only: bool = False,
    ) -> Self:
        made: Any = _Open()
        made.tool_name = tool_name
        made.arguments = taken = _taken(tool_args)
        made.tool_args = taken.shared
        made.tool_call_id = tool_call_id
        made._where = machine
        if read_only:
            made.read_only = True
        made.__class__ = cls
        return made  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        # Whatever makes the machine stays with the turn.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    @classmethod
    def from_arguments(cls, named: Mapping[str, Any]) -> Self:
        """An event from what a handler of it may ask for."""
        event: Any = cls
        return event(**{"tool_args": None, **named})  # type: ignore[no-any-return]

    @property
    def contents(self) -> dict[str, Any]:
        """By argument, what handlers get copies of."""
        return {"tool_args": self.tool_args}

    @property
    def tools(self) -> ToolTable:
        """The host's tools: their names, and what each does."""
        return _tools_of(self.machine)

    def lend(self) -> Self:
        """The same event with arguments of its own, which are copied when read."""
        lent = self._like()
        lent.__dict__.pop("tool_args", None)
        return lent

    def _like(self) -> Self:
        self.__dict__.setdefault("_memo", {})
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def remembered(self, what: str, find: Callable[[dict[str, Any]], _Found]) -> _Found:
        """What `find` makes of the arguments, found once for all handlers of the chain.

        Args:
            what: a name for it.
            find: must not change the dict that it is given.
        """
        shared = self.arguments.shared
        own = self.__dict__.get("tool_args", shared)
        if own is not shared and not identical(own, shared):
            return find(own)  # a handler has changed its copy
        memo = self.__dict__.setdefault("_memo", {})
        if what not in memo:
            memo[what] = find(shared)
        found: _Found = memo[what]
        return found


@frozen(slots=False, init=False)
class ToolCall(_AboutACall):
    """A tool call that is about to run.

    Attributes:
        tool_name: the tool.
        tool_args: its arguments, after the host's own coercion of types.
        tool_call_id: unique in its turn.
        machine: where the tools of this session run, for `hermes_ext.effects`. None: unknown.
        read_only: whether the tool's server says that it only reads.
        arguments: the arguments as the runtime has them.
    """

    hook: ClassVar[HookName] = HookName.INTERCEPT_TOOL_CALL
    expected: ClassVar[str] = "a dict of tool arguments with str keys"
    details: ClassVar[tuple[str, ...]] = ("read_only",)

    tool_name: str
    tool_args: dict[str, Any]
    tool_call_id: str = ""
    machine: Machine | None = field(default=None, eq=False, repr=False)
    read_only: bool = field(default=False, repr=False)

    @classmethod
    def recorded(cls, value: Any, call: Mapping[str, Any], details: Mapping[str, Any]) -> Self:
        """The event again that had this value, and these `details`."""
        return cls(tool_args=value, **call, **details)

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"a call of {self.tool_name}"

    @property
    def value(self) -> dict[str, Any]:
        """What flows through the chain: the arguments."""
        return self.tool_args

    def problem(self, value: Any) -> str | None:
        """Why `value` cannot be what the arguments are rewritten to, or None."""
        if not isinstance(value, dict):
            return type(value).__name__
        return next(
            (
                f"a dict with a key of type {type(key).__name__}"
                for key in value
                if not isinstance(key, str)
            ),
            None,
        )

    def rewritten(self, value: Any) -> Self:
        """This event with the arguments replaced."""
        return type(self)(self.tool_name, value, self.tool_call_id, self._where, self.read_only)


new_call: Final = _AboutACall.__new__
"""Makes a `ToolCall` of its class, name, arguments, id and machine: in half the time."""


@frozen(slots=False, init=False)
class ToolResult(_AboutACall):
    """A tool's result, before the model sees it.

    Attributes:
        tool_name: the tool.
        tool_args: the arguments that it ran with.
        tool_call_id: unique in its turn.
        result: the result's text.
        status: how the call ended, in the host's words (`ok`, `error`, …). None: unknown.
        duration_ms: how long it ran, in milliseconds. None: unknown.
        exit_code: of the program that the tool ran, where its result tells one. None: unknown.
        machine: where the tools of this session run, for `hermes_ext.effects`. None: unknown.
        arguments: the arguments as the runtime has them.
    """

    hook: ClassVar[HookName] = HookName.TRANSFORM_TOOL_RESULT
    expected: ClassVar[str] = "a str (the new result)"
    details: ClassVar[tuple[str, ...]] = ("tool_args", "status", "duration_ms")

    tool_name: str
    tool_args: dict[str, Any]
    tool_call_id: str = ""
    result: str = ""
    status: str | None = None
    duration_ms: float | None = None
    machine: Machine | None = field(default=None, eq=False, repr=False)

    def __new__(
        cls,
        tool_name: str,
        tool_args: Arguments | Mapping[str, Any] | None,
        tool_call_id: str = "",
        result: str = "",
        status: str | None = None,
        duration_ms: float | None = None,
        machine: Machine | Callable[[str], Machine] | None = None,
    ) -> Self:
        made = super().__new__(cls, tool_name, tool_args, tool_call_id, machine)
        own = made.__dict__
        own["result"] = _plain_text(result)
        own["status"] = _known(status)
        own["duration_ms"] = _known(duration_ms)
        return made

    @classmethod
    def recorded(cls, value: Any, call: Mapping[str, Any], details: Mapping[str, Any]) -> Self:
        """The event again that had this value, and these `details`."""
        return cls(result=value, **call, **details)

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"a result of {self.tool_name}"

    @property
    def value(self) -> str:
        """What flows through the chain: the result's text."""
        return self.result

    @property
    def exit_code(self) -> int | None:
        """How the program ended that the tool ran, where the result is JSON that tells it.

        Of a program that was left running in the background Hermes tells 0 as well.
        """
        import json

        with suppress(ValueError, RecursionError):
            # Hosts and extensions add notes behind it.
            told, _ = json.JSONDecoder().raw_decode(self.result.lstrip())
            code = told.get("exit_code") if isinstance(told, dict) else None
            return code if type(code) is int else None
        return None

    def problem(self, value: Any) -> str | None:
        """Why `value` cannot be what the result is rewritten to, or None."""
        return None if isinstance(value, str) else type(value).__name__

    def rewritten(self, value: Any) -> Self:
        """This event with the result replaced."""
        changed = self._like()
        changed.__dict__["result"] = _plain_text(value)
        return changed


Event: TypeAlias = UserInput | LLMRequest | ToolCall | ToolResult

EVENT_OF: Final[Mapping[HookName, type[Event]]] = complete(
    "event class",
    {kind.hook: kind for kind in get_args(Event) if kind.__name__ == TABLE[kind.hook].event},
    HookName,
)

SCOPE_IDS: Final = ("session_id", "conversation_id", "turn_id")
"""What a turn is called. With `SCOPE_FACTS`, what `Runtime.turn` takes."""

_NOT_OF_THE_TURN: Final = frozenset({"event", "session_state", "config", "data_dir", "metadata"})
_SCOPE_FIELDS: Final = tuple(one.name for one in EVERYWHERE if one.name not in _NOT_OF_THE_TURN)
_SCOPE_NAMES: Final = frozenset(_SCOPE_FIELDS)
_NOTHING_KNOWN: Final = dict.fromkeys(_SCOPE_FIELDS)
SCOPE_FACTS: Final = tuple(one for one in _SCOPE_FIELDS if one not in (*SCOPE_IDS, "state"))
"""What is known of a turn beside its ids."""


def _no_data_dir(extension: str) -> Path:
    raise LookupError(f"there is no place for files of {extension}")


def _throwaway_state(_extension: str) -> MutableMapping[str, Any]:
    return {}


class Scope:
    """What a handler may ask for in every hook; one per turn. Treat it as frozen.

    Args:
        values: as the handlers' arguments of these names. What is left out, or is `UNKNOWN`, reads
            as None and its name is in `unknown`.
        session_state_of: the session state of an extension, by its name.
        data_dir_of: the data folder of an extension, by its name; made where it is not there.
        check_tool_args: what is wrong with rewritten arguments of a tool (name, arguments), or
            None; None where the host gives no schemas.
        not_counted: why the turn has no number, although somebody may ask for it; else None.
    """

    session_id: str | None
    conversation_id: str | None
    turn_id: str | None
    turn_number: int | None
    task_id: str | None
    platform: str | None
    origin: str | None
    interactive: bool | None
    model: str | None
    cwd: Path | None
    project_root: Path | None
    is_subagent: bool | None
    parent_session_id: str | None
    sender_id: str | None
    chat_id: str | None
    state: MutableMapping[str, Any]
    session_state_of: Callable[[str], MutableMapping[str, Any]]
    data_dir_of: Callable[[str], Path]
    check_tool_args: Callable[[str, dict[str, Any]], str | None] | None
    not_counted: str | None
    unknown: frozenset[str]

    def __init__(
        self,
        *,
        session_state_of: Callable[[str], MutableMapping[str, Any]] = _throwaway_state,
        data_dir_of: Callable[[str], Path] = _no_data_dir,
        check_tool_args: Callable[[str, dict[str, Any]], str | None] | None = None,
        not_counted: str | None = None,
        **values: Any,
    ) -> None:
        values.setdefault("state", {})
        values.setdefault("origin", "user")
        if not values.keys() <= _SCOPE_NAMES:
            raise TypeError(f"Scope has no {', '.join(sorted(values.keys() - _SCOPE_NAMES))}")
        self.session_state_of = session_state_of
        self.data_dir_of = data_dir_of
        self.check_tool_args = check_tool_args
        self.not_counted = not_counted
        known = {name: value for name, value in values.items() if value is not UNKNOWN}
        self.unknown = _SCOPE_NAMES - known.keys()
        self.__dict__.update(_NOTHING_KNOWN)
        self.__dict__.update(known)

    def replace(self, **changes: Any) -> Scope:
        """The same scope with some values changed."""
        made = object.__new__(Scope)
        made.__dict__.update(self.__dict__)
        for name, value in changes.items():
            setattr(made, name, _known(value))
        now_unknown = {name for name, value in changes.items() if value is UNKNOWN}
        made.unknown = (self.unknown - changes.keys()) | now_unknown
        return made

    def lent(self, of: Callable[[Any], Any]) -> Scope:
        """The same scope with state as `of` lends it to a call that may be left behind."""
        state_of = self.session_state_of
        return self.replace(
            state=of(self.state), session_state_of=lambda extension: of(state_of(extension))
        )


NAMED_ONLY: Final = frozenset({"data_dir"})
"""What `**kwargs` does not hold, because giving it leaves something on the disk."""

NO_METADATA: Final[Mapping[str, Any]] = MappingProxyType({})
