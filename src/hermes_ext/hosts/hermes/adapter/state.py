"""What the adapter remembers of the process that it is in: all of its state, and all in one object.

Hermes calls each wrap with its own arguments and nothing of ours. What one wrap leaves for another
is a field here.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, TextIO, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from hermes_ext._forks import has_locks
from hermes_ext.chain.threads import Lane

if TYPE_CHECKING:
    from hermes_ext.chain.manager import HookManager
    from hermes_ext.hosts.hermes.adapter.gate.starting import ConfinedCall
    from hermes_ext.hosts.hermes.adapter.gate.tools import Grant
    from hermes_ext.hosts.hermes.adapter.person.approvals import Person
    from hermes_ext.hosts.hermes.adapter.person.commands import Typed
    from hermes_ext.hosts.hermes.adapter.person.host_questions import HostQuestion
    from hermes_ext.rules import Rules
    from hermes_ext.runtime import Runtime

_COMMANDS_AT_ONCE: Final = 8

T = TypeVar("T")


class State:
    """The state of one process.

    Attributes:
        attached: whether the rules are attached to this Hermes.
        awaited: by module, what is called once it is imported.
        being_found: in each thread, the `name` of the module that other finders are asked for.
        runtimes: by Hermes home.
        lost_hooks: by Hermes home, what was written there for `list`.
        noted: of which rules that was last, and what.
        directories: by agent, where its session works.
        batch_agents: the agents that the batch runner runs.
        ended_tasks: ids of tasks that are over, the newest last.
        titles: by session, what its input became, until a title is made of it.
        said: the lines that were said.
        said_on_screen: by agent, the lines that its screen was given.
        matched: the managers whose patterns for tools were compared with the tools.
        messages: numbers of the messages to chats.
        commands: the slash commands of a gateway, which has other work for its own threads.
        output: a duplicate of standard output; None while that is not needed.
        protocol: the stream on it that a protocol is written to.
        output_apart: whether standard output has become standard error.
        extensions_run: whether code of extensions runs in this process.
        unconfinable: why no call can be confined in this Hermes, in a line; () where they can.
        has_confined: whether a call has run confined.
        kernels: the modes of the Pythons that were started confined, and stay.
        unseen: whether Hermes has started a process where nobody sees it.
        lock: for steps that call nobody.
        loading: held while extensions are loaded.
        output_lock: for what is done to standard output.
        grant: the leave that the gate around this context has given.
        in_invoke_tool: whether the gate must tell observers itself.
        question: who is asked an extension's question.
        answered: Hermes's questions that were answered with ours, while those are asked.
        agreed: gives what a person has agreed to for the call that runs.
        typed: the slash command that runs.
        beginning: the agent whose turn begins.
        asking: gives the agent whose request is made, whether or not it is in a turn of ours.
        taking: whether text for a running turn is being taken.
        confined: the call that runs confined here.
    """

    def __init__(self) -> None:
        self.renew_locks()
        has_locks(self)
        self.attached = False
        self.awaited: dict[str, list[Callable[[ModuleType], None]]] = {}
        self.being_found = threading.local()

        self.runtimes: dict[Path, Runtime] = {}
        self.lost_hooks: dict[Path, tuple[str, ...]] = {}
        self.noted: tuple[Callable[[], Rules | None], tuple[str, ...]] = lambda: None, ()
        self.directories: WeakKeyDictionary[Any, Path] = WeakKeyDictionary()
        self.batch_agents: WeakSet[Any] = WeakSet()
        self.ended_tasks: OrderedDict[str, None] = OrderedDict()
        self.titles: OrderedDict[str, str] = OrderedDict()

        self.said: set[str] = set()
        self.said_on_screen: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        self.matched: WeakSet[HookManager] = WeakSet()
        self.messages = itertools.count(1)

        self.commands = Lane("hermes-ext-commands", _COMMANDS_AT_ONCE)

        self.output: int | None = None
        self.protocol: TextIO | None = None
        self.output_apart = False
        self.extensions_run = False

        self.unconfinable: tuple[str, ...] = ()
        self.has_confined = False
        self.kernels: set[str] = set()
        self.unseen = False

        # True of the context that runs, which only a context variable follows.
        self.grant: ContextVar[Grant | None] = ContextVar("hermes_ext_grant", default=None)
        self.in_invoke_tool = ContextVar("hermes_ext_in_invoke_tool", default=False)
        self.question: ContextVar[Person | None] = ContextVar("hermes_ext_question", default=None)
        self.answered: ContextVar[list[HostQuestion] | None] = ContextVar(
            "hermes_ext_answered", default=None
        )
        self.agreed: ContextVar[Callable[[], HostQuestion | None]] = ContextVar(
            "hermes_ext_agreed", default=lambda: None
        )
        self.typed: ContextVar[Typed | None] = ContextVar("hermes_ext_typed", default=None)
        self.beginning: ContextVar[Any] = ContextVar("hermes_ext_beginning", default=None)
        self.asking: ContextVar[Callable[[], Any]] = ContextVar(
            "hermes_ext_asking", default=lambda: None
        )
        self.taking = ContextVar("hermes_ext_taking", default=False)
        self.confined: ContextVar[ConfinedCall | None] = ContextVar(
            "hermes_ext_confined_call", default=None
        )

    def renew_locks(self) -> None:
        """After a fork."""
        self.lock = threading.RLock()
        self.loading = threading.Lock()
        self.output_lock = threading.RLock()


state: Final = State()


class held(Generic[T]):  # noqa: N801 - used as a function; a generator takes three times as long
    """While open, a variable of this context has this value."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> T:
        self._token = self._variable.set(self._value)
        return self._value

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)
