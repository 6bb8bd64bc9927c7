"""How loading ended: of one extension, of a home, and with the projects that apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from hermes_ext._problems import Problem
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import Factory, evolve, field, frozen
from hermes_ext.chain.outcome import Cause
from hermes_ext.exceptions import OrderCycleError
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import Discovery, record_of, standing
from hermes_ext.loading.finding.projects import NO_PROJECTS, ProjectStack, replaced_by
from hermes_ext.loading.imports.importing import IMPORT_SECONDS, PREFIX, forget
from hermes_ext.loading.imports.source_code import wrong_return
from hermes_ext.loading.registering import Registered
from hermes_ext.records import BROKEN, CommandInfo, ExtensionRecord, HookInfo, Status
from hermes_ext.settings.config import ExtensionsConfig

if TYPE_CHECKING:
    from hermes_ext.hooks.commands import Command
    from hermes_ext.settings.merging import Merged
    from hermes_ext.settings.project_settings import ProjectSettings


@frozen
class Ended:
    """How loading one extension ended.

    taken_over: its modules are those of an earlier load. merged: where its settings are from.
    """

    candidate: Candidate
    record: ExtensionRecord
    handlers: tuple[Handler, ...] = ()
    settings: Any = None
    problems: tuple[Problem, ...] = ()
    package: str = ""
    module: ModuleType | None = None
    registered: Registered = Factory(Registered)
    commands: tuple[Command, ...] = ()
    taken_over: bool = False
    merged: Merged | None = None

    @property
    def is_guard(self) -> bool:
        """Whether it registers a guard, turned off or not."""
        return any(each.mark.guard for each in self.registered.handlers)


@frozen
class Loaded:
    """What a load gave.

    records: one of each extension found or named. handlers: of all that are enabled. commands:
    their slash commands, each name once. problems: of
    the configuration and the manifests. settings: validated, by extension: a read-only mapping,
    or the extension's own attrs instance. refusal: why every tool call is refused, None if none
    is. cause: which setting refuses them. packages: the names in `sys.modules` below which each
    extension's modules stand. projects: what was thought of the projects. homes: by the name of an
    extension, the project that what is kept for it belongs to. base: what other projects can be
    loaded on. ended: how loading each extension ended, for a later load that takes over what is the
    same.
    """

    config: ExtensionsConfig
    records: tuple[ExtensionRecord, ...] = ()
    handlers: tuple[Handler, ...] = ()
    commands: tuple[Command, ...] = ()
    problems: tuple[Problem, ...] = ()
    settings: Mapping[str, Any] = MappingProxyType({})
    refusal: str | None = None
    cause: Cause | None = None
    packages: Mapping[str, str] = MappingProxyType({})
    projects: ProjectStack = NO_PROJECTS
    homes: Mapping[str, Path] = MappingProxyType({})
    base: Base | None = field(default=None, repr=False, eq=False)
    ended: tuple[Ended, ...] = field(default=(), repr=False, eq=False)


@frozen
class Base:
    """What is loaded for a home, whatever project the work is in. Made by `load_base`.

    remembered: whether what a load gave is written down, for `list`.
    """

    home: Path
    config: ExtensionsConfig
    discovery: Discovery
    ended: tuple[Ended, ...] = field(repr=False)
    everything: bool = False
    import_seconds: float = IMPORT_SECONDS
    remembered: bool = True

    def packages_of_files(self) -> dict[str, str]:
        """The private packages whose modules come from the disk, and the file of each."""
        return {
            each.package: str(each.candidate.module_file)
            for each in self.ended
            if each.record.loaded
            and each.package.startswith(f"{PREFIX}.")
            and not each.candidate.tree
        }


def own_packages(ended: Iterable[Ended]) -> set[str]:
    """The private packages of extensions; entry points have none."""
    return {each.package for each in ended if each.package.startswith(f"{PREFIX}.")}


@frozen
class Layer:
    """What is loaded so far, the outer projects' included.

    settings: of these projects. own: their extensions as they were loaded, replaced or not.
    """

    ended: tuple[Ended, ...]
    settings: tuple[ProjectSettings, ...] = ()
    own: tuple[Ended, ...] = ()

    def holders(self) -> dict[str, Ended]:
        """What is loaded, or should be and is broken, by canonical name."""
        broken = (e for e in self.ended if e.record.configured_on and e.record.status in BROKEN)
        loaded = (e for e in self.ended if e.record.loaded)
        return {canonical_name(e.candidate.name): e for e in (*broken, *loaded)}


class Kept:
    """What an earlier load has imported."""

    def __init__(self, ended: Iterable[Ended]) -> None:
        self._ended = {self._key(e.candidate): e for e in ended if e.record.loaded and e.module}

    def of(self, candidate: Candidate, same: Callable[[Candidate], bool]) -> Ended | None:
        """The earlier load of an extension, if its code is to be taken over."""
        earlier = self._ended.get(self._key(candidate))
        if earlier is None:
            return None
        if candidate.source is Source.PROJECT:
            trees = (candidate.tree, earlier.candidate.tree)
            is_same = len({tree and tree.digest for tree in trees}) == 1 and None not in trees
        else:
            is_same = candidate.source is not Source.GLOBAL or same(candidate)
        return earlier if is_same else None

    @staticmethod
    def _key(candidate: Candidate) -> tuple[object, ...]:
        return (
            candidate.source,
            canonical_name(candidate.name),
            candidate.module_file,
            candidate.module,
        )


def stopped(candidate: Candidate, config: ExtensionsConfig) -> Ended | None:
    """How it ends where something stands against it; None: its code is to be run."""
    stand = standing(candidate, config)
    told = {"status": stand.status, "reason": stand.reason, "configured_on": stand.configured_on}
    return None if stand.status is None else Ended(candidate, record_of(candidate, config, **told))


def hook_info(handler: Handler, *, look: bool = False) -> HookInfo:
    """What a record says of a handler; with `look`, its source is read for faults too."""
    return HookInfo(
        handler.hook.value,
        handler.name,
        handler.priority,
        handler.guard,
        handler.tools,
        handler.on_error,
        handler.timeout,
        printable(handler.file),
        handler.line,
        wrong_return(handler.function, {*map(str, handler.allowed)}) if look else None,
        handler.on_store_error,
    )


def command_info(command: Command) -> CommandInfo:
    """What a record says of a slash command."""
    return CommandInfo(
        command.name,
        command.args_hint,
        printable(command.help),
        printable(command.file),
        command.line,
    )


def each_command_once(ended: Iterable[Ended]) -> list[Ended]:
    """The same, without the commands whose names others in front of them have."""
    owners: dict[str, str] = {}
    return [_without_taken(each, owners) for each in ended]


def _without_taken(ended: Ended, owners: dict[str, str]) -> Ended:
    taken = [each for each in ended.commands if each.name in owners]
    told = [
        f'/{each.name} ({each.file}:{each.line}) is never called, because "{owners[each.name]}"'
        " has a command of this name. Rename one of them"
        for each in taken
    ]
    owners |= {each.name: ended.candidate.name for each in ended.commands if each not in taken}
    if not taken:
        return ended
    left = tuple(each for each in ended.commands if each not in taken)
    record = evolve(
        ended.record,
        commands=tuple(map(command_info, left)),
        warnings=(*ended.record.warnings, *map(printable, told)),
    )
    return evolve(ended, commands=left, record=record)


def replaced(ended: Ended, new: Ended) -> Ended:
    reason = replaced_by(new.candidate)
    return Ended(ended.candidate, _not_loaded(ended, Status.SHADOWED, reason, configured_on=False))


def in_order(ended: Iterable[Ended]) -> None:
    """Raises OrderCycleError where `before` and `after` of the handlers contradict each other."""
    handlers = [handler for each in ended for handler in each.handlers]
    if any(handler.before or handler.after for handler in handlers):
        from hermes_ext.chain.manager import HookManager

        HookManager(handlers)


def without_cycles(ended: list[Ended]) -> list[Ended]:
    """The same, with the extensions whose `before` and `after` contradict each other failed."""
    try:
        in_order(ended)
    except OrderCycleError as error:
        left = [
            without(each, error) if each.candidate.name in error.members else each for each in ended
        ]
        return without_cycles(left) if left != ended else ended
    return ended


def without(ended: Ended, error: OrderCycleError) -> Ended:
    if not ended.taken_over:
        forget(ended.package)
    failed = _not_loaded(ended, Status.LOAD_ERROR, printable(str(error)))
    return Ended(ended.candidate, failed, problems=ended.problems)


def _not_loaded(ended: Ended, status: Status, reason: str, **changes: Any) -> ExtensionRecord:
    nothing: dict[str, Any] = {"loaded": False, "hooks": (), "turned_off": (), "commands": ()}
    return evolve(ended.record, status=status, reason=reason, **nothing, **changes)
