"""`HookManager`: a set of handlers, checked by pluggy, ordered, and compiled into chains."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._values import frozen
from hermes_ext.chain.failures import Failure, FailureBook
from hermes_ext.chain.fold import CompiledChain
from hermes_ext.exceptions import OrderCycleError, RegistrationError
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.table import TABLE, HookName

if TYPE_CHECKING:
    import pluggy

    from hermes_ext.hooks.plugins import Implementation, Plugins

_CHAINS_KEPT: Final = 512


@frozen
class OrderRow:
    """A handler's place in the order of its hook, and why it stands there.

    Attributes:
        position: 1-based, over both phases.
        extension, handler: who.
        guard: whether it is in the second phase.
        priority: lower runs earlier.
        source: where its extension comes from.
        why: e.g. `priority 10; before plan-tools`.
    """

    position: int
    extension: str
    handler: str
    guard: bool
    priority: int
    source: str
    why: str


class _Chains(dict[tuple[str, str | None, str | None], CompiledChain]):
    """By hook, tool and origin: the handlers that match, compiled when they are first wanted."""

    def __init__(
        self, ordered: Mapping[HookName, tuple[Handler, ...]], failures: FailureBook
    ) -> None:
        self._ordered = ordered
        self._failures = failures

    def __missing__(self, key: tuple[str, str | None, str | None]) -> CompiledChain:
        if len(self) >= _CHAINS_KEPT:
            # Names come from the model and could be any number; what is in use comes back.
            self.clear()
        hook, tool, origin = HookName(key[0]), normal(key[1]), key[2] or "user"
        matching = [
            handler
            for handler in self._ordered[hook]
            if _is_for_tool(handler, tool) and _is_for_origin(handler, origin)
        ]
        chain = self[key] = CompiledChain(hook, matching, self._failures)
        return chain


class HookManager:
    """Handlers, registered and ready. Immutable; thread-safe.

    Args:
        handlers: from `build_handlers`.
        names: extensions in force beside those that have handlers.
        previous: the manager from before a reload, whose failure counts go on. Failures in a row
            begin anew, and a handler that was suspended is called again.

    Attributes:
        chains: by hook, tool and origin, what `chain` gives; looking here saves a call.
        hooks: those that have handlers.
        wants: the arguments that any of the handlers gets.

    Raises:
        OrderCycleError: `before=`/`after=` contradict each other.
        RegistrationError: pluggy refuses a handler.
    """

    def __init__(
        self,
        handlers: Iterable[Handler] = (),
        previous: HookManager | None = None,
        names: Iterable[str] = (),
    ) -> None:
        self._given, self._names = tuple(handlers), tuple(names)
        found = {hook: self.plugins.handlers(hook) if self._given else () for hook in HookName}
        self.handlers: tuple[Handler, ...] = tuple(one for own in found.values() for one in own)
        self.wants: Final = frozenset(name for one in self.handlers for name in one.wants)
        before = None if previous is None else previous._failures
        self._failures: FailureBook = FailureBook(self.handlers, before)
        self._ordered: Mapping[HookName, tuple[Handler, ...]] = {
            hook: _in_order(handlers) for hook, handlers in found.items()
        }
        self.hooks: Final = tuple(hook for hook, handlers in found.items() if handlers)
        self.chains: Final = _Chains(self._ordered, self._failures)

    @cached_property
    def plugins(self) -> Plugins:
        """The extensions, as pluggy has registered them; the chains are made from these."""
        return _registered(self._given, self._names)

    def chain(
        self, hook: str, tool_name: str | None = None, origin: str | None = "user"
    ) -> CompiledChain:
        """The handlers that match, compiled; kept for the next call.

        Args:
            hook: the hook.
            tool_name: for the tool hooks, the tool; case and surrounding spaces do not matter.
            origin: where the turn comes from.
        """
        return self.chains[hook, tool_name, origin]

    def has(self, hook: str) -> bool:
        """Whether any handler is registered for the hook."""
        return hook in self.hooks

    def order(self, hook: str) -> tuple[OrderRow, ...]:
        """The handlers of a hook in the order in which they run, each with the reason."""
        ordered = self._ordered[HookName(hook)]
        return tuple(
            OrderRow(
                place + 1,
                handler.extension,
                handler.name,
                handler.guard,
                handler.priority,
                handler.source.value,
                _why(handler, ordered),
            )
            for place, handler in enumerate(ordered)
        )

    @property
    def failures(self) -> tuple[Failure, ...]:
        """How often handlers failed: one row for each that ever did, sorted."""
        return self._failures.read()


# -- matching -----------------------------------------------------------------------------------


def normal(tool_name: Any) -> str:
    """A tool's name, or a pattern, in the form in which the two are compared.

    Runs of underscores are one: a server's tool is `mcp_a_b` in Hermes 0.17 and `mcp__a__b` later.
    """
    return re.sub(r"[_\s]+", "_", str(tool_name or "").casefold().strip())


def _is_for_tool(handler: Handler, tool: str) -> bool:
    return handler.tools is None or any(
        fnmatchcase(tool, normal(pattern)) for pattern in handler.tools
    )


def _is_for_origin(handler: Handler, origin: str) -> bool:
    if handler.origins is not None:
        return origin in handler.origins
    # A background review replays the session; rewriting its prompt would be a second time.
    return origin != "background" or TABLE[handler.hook].background


# -- order --------------------------------------------------------------------------------------


def _sort_key(handler: Handler) -> tuple[int, int, str, int]:
    return handler.priority, handler.source.rank, handler.extension, handler.sequence


def _in_order(handlers: Sequence[Handler]) -> tuple[Handler, ...]:
    transformers = [handler for handler in handlers if not handler.guard]
    guards = [handler for handler in handlers if handler.guard]
    return (*_sorted(transformers), *_sorted(guards))


def _sorted(handlers: Sequence[Handler]) -> list[Handler]:
    """By priority and ties, as far as `before` and `after` leave it open."""
    ranked = sorted(handlers, key=_sort_key)
    if not any(handler.before or handler.after for handler in ranked):
        return ranked
    sorter = _waiting(ranked)
    try:
        sorter.prepare()
    except CycleError as error:
        raise _cycle([ranked[place] for place in error.args[1][1:]]) from None
    ready: list[int] = []
    done: list[Handler] = []
    while sorter.is_active():
        for place in sorter.get_ready():
            heapq.heappush(ready, place)
        place = heapq.heappop(ready)
        done.append(ranked[place])
        sorter.done(place)
    return done


def _waiting(ranked: Sequence[Handler]) -> TopologicalSorter[int]:
    """Who waits for whom, by their places."""
    by_extension: dict[str, list[int]] = {}
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for place, handler in enumerate(ranked):
        by_extension.setdefault(handler.extension, []).append(place)
        sorter.add(place)
    for place, handler in enumerate(ranked):
        for name in handler.before:
            for other in by_extension.get(name, ()):
                sorter.add(other, place)
        for name in handler.after:
            sorter.add(place, *by_extension.get(name, ()))
    return sorter


def _cycle(members: Sequence[Handler]) -> OrderCycleError:
    path = " before ".join(str(member) for member in (*members, members[0]))
    return OrderCycleError(
        f"before=/after= go round in a circle: {path}",
        members=tuple(dict.fromkeys(member.extension for member in members)),
        hook=members[0].hook.value,
    )


def _why(handler: Handler, ordered: Sequence[Handler]) -> str:
    present = {other.extension for other in ordered if other.guard == handler.guard}
    reasons = [f"priority {handler.priority}"]
    reasons += [f"before {name}" for name in handler.before if name in present]
    reasons += [f"after {name}" for name in handler.after if name in present]
    ties = [
        other
        for other in ordered
        if other is not handler
        and other.guard == handler.guard
        and other.priority == handler.priority
    ]
    if ties:
        reasons.append(_tie(handler, ties))
    return "; ".join(reasons)


def _tie(handler: Handler, ties: Sequence[Handler]) -> str:
    if any(other.source is not handler.source for other in ties):
        return f"ties by source: {handler.source.value}"
    if any(other.extension != handler.extension for other in ties):
        return "ties by extension name"
    return "ties by order of registration"


# -- pluggy -------------------------------------------------------------------------------------


def _registered(handlers: Iterable[Handler], names: Iterable[str]) -> Plugins:
    """Each extension as a plugin, in the order in which their handlers come."""
    # Not at the top: a start without handlers has nothing for pluggy to check.
    import pluggy

    from hermes_ext.hooks.plugins import Implementation, Plugin, Plugins

    by_extension: dict[str, list[Implementation]] = {name: [] for name in names}
    for handler in handlers:
        implementation = Implementation(handler.hook.value, handler.function, handler)
        by_extension.setdefault(handler.extension, []).append(implementation)
    plugins = Plugins()
    try:
        for extension, own in by_extension.items():
            plugins.register(Plugin(extension, own), extension)
        plugins.check_pending()
    except pluggy.PluginValidationError as error:
        raise _refused(error, by_extension) from error
    return plugins


def _refused(
    error: pluggy.PluginValidationError, registered: Mapping[str, Sequence[Implementation]]
) -> RegistrationError:
    """The error of ours, which says where the handler is that pluggy refuses."""
    from hermes_ext.hooks.plugins import refusal_of

    own = registered[error.plugin.name]  # type: ignore[attr-defined]
    handler: Handler = next((one for one in own if refusal_of(one)), own[0]).handler
    return RegistrationError(
        f"pluggy refuses {handler.name}: {' '.join(str(error).split())}",
        extension=handler.extension,
        hook=str(handler.hook),
        path=Path(handler.file) if handler.file else None,
        line=handler.line or None,
        hint="See docs/hooks.md for the hooks and their arguments",
    )
