"""What is in force in one directory, and the book of which rules are in force where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_ext._problems import Problem
from hermes_ext._values import Factory, field, frozen
from hermes_ext.chain.manager import HookManager
from hermes_ext.chain.outcome import Cause
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.records import ExtensionRecord

if TYPE_CHECKING:
    from hermes_ext.hooks.commands import Command


@frozen(eq=False)
class Rules:
    """What is in force in one directory. Immutable: a turn keeps what it began with.

    Attributes:
        manager: the handlers, in order.
        commands: the slash commands, by name.
        records: one for each extension that was found or named.
        problems: what is wrong in the configuration and the manifests.
        notices: what of the projects is not in force as it is on the disk.
        refusal: why every tool call is refused; None if none is.
        cause: which setting refuses them.
        owners: the extension of each package.
        homes: by extension, the project that what is kept for it belongs to.
        idle: whether no hook has anything to do: no handler, and nothing that must be refused.
    """

    manager: HookManager = Factory(HookManager)
    commands: Mapping[str, Command] = field(factory=dict)
    records: tuple[ExtensionRecord, ...] = ()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    refusal: str | None = None
    cause: Cause | None = None
    owners: Mapping[str, str] = field(factory=dict)
    homes: Mapping[str, Path] = field(factory=dict)
    idle: bool = field(init=False, repr=False)
    _must_see: tuple[str, ...] = field(init=False, repr=False)

    @idle.default
    def _is_idle(self) -> bool:
        return not self.manager.handlers and self.refusal is None

    @_must_see.default
    def _who_must_see(self) -> tuple[str, ...]:
        guards = {handler.extension for handler in self.handlers if handler.guard} - {OWN}
        required = {record.name for record in self.records if record.required}
        return tuple(sorted(guards | required))

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """All handlers, in no particular order; `manager.order(hook)` has the order."""
        return self.manager.handlers

    @property
    def packages(self) -> Set[str]:
        """The packages that its handlers and commands are from."""
        return self.owners.keys()

    def owner_of(self, module: str) -> str | None:
        """The extension that a module belongs to, by the module's full name."""
        while module:
            if module in self.owners:
                return self.owners[module]
            module = module.rpartition(".")[0]
        return None

    def who_wait_for(self, hook: HookName) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The extensions with a handler on a hook: guards and required ones, and all of them."""
        there = tuple(dict.fromkeys(one.extension for one in self.handlers if one.hook is hook))
        must = self.who_must_see_tools()
        return tuple(name for name in there if name in must), there

    def who_must_see_tools(self) -> tuple[str, ...]:
        """The extensions that must be able to refuse tool calls: guards, and required ones."""
        return self._must_see

    def whole_name(self, extension: str) -> str:
        """An extension's name, for a project's with the project: others elsewhere have the name.

        What is kept for it (session state, what a person has always allowed) is kept under this.
        """
        root = self.homes.get(extension)
        return extension if root is None else f"{extension} of {root}"


def owners_of(handlers: Iterable[Handler]) -> dict[str, str]:
    """The extension of each module that handlers are from."""
    return {handler.function.__module__: handler.extension for handler in handlers}


_NOTHING: Final = nullcontext()


class Rulebook:
    """Which rules are in force where; these are the same everywhere and never change.

    Attributes:
        not_taken: why what changed on the disk is not in force; None while all of it is.
    """

    not_taken: str | None = None

    def __init__(self, rules: Rules) -> None:
        self._everywhere = rules

    @property
    def everywhere(self) -> Rules:
        """What is in force outside of all projects."""
        return self._everywhere

    def at(self, directory: Path | None) -> Rules:
        """What is in force in a directory, as things are now."""
        return self.everywhere

    def all(self) -> list[Rules]:
        """All that is in force somewhere, as far as turns have been there."""
        return [self.everywhere]

    def choosing(self) -> AbstractContextManager[None]:
        """While open, no module of what is chosen inside goes away, though no turn is open yet."""
        return _NOTHING

    def turn_begins(self) -> None:
        """Take what has changed since the last turn. To be called inside `choosing`."""

    def close(self) -> None:
        """Take nothing that changes from now on."""
