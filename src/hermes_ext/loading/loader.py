"""Loading: what was found is imported, its handlers are built, and each ends as a record.

    found -> stands nothing against it? -> settings -> import -> handlers -> record
             (off, manifest, versions)     (schema)    (bounded) (all or none)

One extension that fails takes nothing else down and leaves nothing behind: no handler, no module.
The import goes on in a thread (see `importing`); whatever an extension prints while loading goes
to `sys.stdout` as it is then, so that a caller whose output is data redirects that.

What belongs to no project is loaded once, as a `Base`; each project adds its own extensions to it,
takes the places that it may take, and sets what it may set, for itself alone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from attrs import evolve, field, frozen

from hermes_ext._problems import Problem
from hermes_ext._redaction import redacted
from hermes_ext._text import canonical_name, printable
from hermes_ext.chain.outcome import Cause
from hermes_ext.exceptions import HermesExtError, OrderCycleError, RegistrationError, SkipExtension
from hermes_ext.hooks.commands import (
    Command,
    CommandRegistration,
    build_commands,
    collecting_commands,
    commands_of,
)
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.registration import (
    HookMark,
    Registration,
    build_handlers,
    collecting,
    near_misses,
    registrations_of,
)
from hermes_ext.hooks.source import OWN, Source
from hermes_ext.loading.finding.discovery import (
    Discovery,
    discover,
    fault_status,
    load_stamp,
    manifest_problems,
    named_in,
    off_in_vain,
    project_found,
    record_of,
    standing,
    trusted_names,
    unknown_names,
)
from hermes_ext.loading.finding.found import Found
from hermes_ext.loading.finding.projects import (
    NO_PROJECTS,
    ProjectStack,
    kept_from,
    projects_at,
    replaced_by,
    settings_of,
)
from hermes_ext.loading.finding.snapshot import write_snapshot
from hermes_ext.loading.imports import children, import_name
from hermes_ext.loading.imports.importing import (
    IMPORT_SECONDS,
    PREFIX,
    EndlessImport,
    Imported,
    forget,
    import_entry_point,
    import_file,
    modules_of,
    one_by_one,
    place_of,
    private_name,
)
from hermes_ext.loading.imports.returns import wrong_return
from hermes_ext.loading.imports.siblings import taken_for_own
from hermes_ext.loading.refusal import refusal_with
from hermes_ext.records import (
    BROKEN,
    CommandInfo,
    ExtensionRecord,
    HookInfo,
    Status,
)
from hermes_ext.settings.by_class import settings_class
from hermes_ext.settings.config import ExtensionsConfig, read_config, switched_off
from hermes_ext.settings.merging import (
    Merged,
    merged_settings,
    merged_through,
    read_only,
    typed_settings,
)
from hermes_ext.settings.names import HOOKS
from hermes_ext.settings.project_settings import ProjectSettings
from hermes_ext.trust.store import Verdict

_LONGEST = 400  # characters of an extension's own error text
_LONGEST_OF_OURS = 4000  # ours list names, which are of no use if they are cut off


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
    ended: tuple[_Ended, ...] = field(default=(), repr=False, eq=False)

    def own_packages(self) -> set[str]:
        """The private packages of its extensions; entry points have none."""
        return _own_packages(self.ended)


@frozen
class Base:
    """What is loaded for a home, whatever project the work is in. Made by `load_base`.

    remembered: whether what a load gave is written down, for `list`.
    """

    home: Path
    config: ExtensionsConfig
    discovery: Discovery
    ended: tuple[_Ended, ...] = field(repr=False)
    everything: bool = False
    import_seconds: float = IMPORT_SECONDS
    remembered: bool = True

    def own_packages(self) -> set[str]:
        """As of `Loaded`."""
        return _own_packages(self.ended)

    def packages_of_files(self) -> dict[str, str]:
        """The private packages whose modules come from the disk, and the file of each."""
        return {
            each.package: str(each.found.module_file)
            for each in self.ended
            if each.record.loaded and each.package.startswith(f"{PREFIX}.") and not each.found.tree
        }


def load(
    home: Path,
    cwd: Path | None = None,
    *,
    everything: bool = False,
    import_seconds: float = IMPORT_SECONDS,
) -> Loaded:
    """Load all extensions that are on. Raises nothing for what a user or an extension wrote.

    home: the Hermes home. cwd: the session's directory. everything: also look through the
    installed distributions when nothing in the configuration needs one, and into the sources of
    the handlers for what they will do wrong, so that the records are complete. import_seconds: how
    long one extension's import may take.
    """
    base = load_base(home, everything=everything, import_seconds=import_seconds)
    return load_projects(base, projects_at(base.config, home, cwd))


def load_base(
    home: Path,
    *,
    everything: bool = False,
    import_seconds: float = IMPORT_SECONDS,
    config: ExtensionsConfig | None = None,
    found: Sequence[Found] | None = None,
    before: Base | None = None,
    same: Callable[[Found], bool] = lambda found: False,
) -> Base:
    """Load what belongs to no project. The arguments are those of `load`, and:

    config: another one than that of the home, on trial: nothing of the load is written down. found:
    the only extensions that there are; None looks for them. before: an earlier load, whose modules
    are taken over: those of installed packages, and of the extensions whose files are the `same`.
    Their settings and handlers are made anew.
    """
    remembered, config = config is None, config or read_config(home)
    discovery = _discovered(config, home, everything) if found is None else Discovery((*found,))
    world = _World.of(discovery.found)
    kept = _Kept(() if before is None else before.ended)
    loadings = [
        _Loading(each, config, world, look=everything, earlier=kept.of(each, same))
        for each in discovery.found
    ]
    ended = _without_cycles(_all_ended(loadings, import_seconds))
    return Base(home, config, discovery, tuple(ended), everything, import_seconds, remembered)


def load_projects(base: Base, stack: ProjectStack, before: Iterable[Loaded] = ()) -> Loaded:
    """Load the extensions of projects onto a base, which stays as it is, the outermost first.

    Nothing of a project runs that `stack` does not call trusted.

    before: earlier loads of the projects, whose modules are taken over where a tree is the same.
    """
    kept = _Kept(each for load in before for each in load.ended)
    layer = _Layer(base.ended)
    for verdict in stack.shown:
        layer = _ProjectLoading(base, verdict, kept, layer).layer()
    ended = _each_command_once(layer.ended)
    found = [each.found for each in ended]
    config = base.config
    unknown, missing = unknown_names(
        config, found, trusted_names(base.home), base.discovery.problems
    )
    records = (*(each.record for each in ended), *missing)
    problems = (
        *config.problems,
        *base.discovery.problems,
        *base.discovery.writable,
        *manifest_problems(found),
        *unknown,
        *(problem for each in layer.settings for problem in each.problems),
        *(p for each in layer.settings for p in each.unknown(f.name for f in found)),
        *(problem for each in ended for problem in each.problems),
    )
    if base.remembered and not switched_off():
        # As it was loaded, also what a project has replaced.
        replaced = {id(each.found) for each in ended if not each.record.loaded}
        own = (e for e in ended if e.found.source is Source.PROJECT)
        lost = (e for e in layer.own if e.record.loaded and id(e.found) in replaced)
        told = (*base.ended, *own, *lost)
        stamped = ((e.record, load_stamp(e.found, config, e.record.status)) for e in told)
        write_snapshot(base.home, (*stamped, *((record, 0) for record in missing)))
    return Loaded(
        config,
        records,
        tuple(handler for each in ended for handler in each.handlers),
        tuple(command for each in ended for command in each.commands),
        tuple(dict.fromkeys(problems)),
        MappingProxyType({e.found.name: e.settings for e in ended if e.record.loaded}),
        *_refusal(config, records),
        MappingProxyType({e.found.name: e.package for e in ended if e.package}),
        stack,
        _homes(stack, ended),
        base,
        tuple(ended),
    )


def _homes(stack: ProjectStack, ended: Iterable[_Ended]) -> Mapping[str, Path]:
    """Of a linked work tree's own extensions it is the main work tree, if its trust is theirs."""
    trees = {id(each.tree): each.trusted_at or each.project.root for each in stack.trusted}
    found = ((e.found.name, trees.get(id(e.found.tree))) for e in ended if e.record.loaded)
    return MappingProxyType({name: root for name, root in found if root is not None})


def unload(loaded: Loaded) -> None:
    """Take the modules of a load out of `sys.modules`; those of entry points stay.

    Only when none of its handlers is called any more: an import inside one would fail.
    """
    for record in loaded.records:
        package = loaded.packages.get(record.name)
        if package and record.source is not Source.ENTRY_POINT:
            forget(package)


def _discovered(config: ExtensionsConfig, home: Path, everything: bool) -> Discovery:
    discovery = discover(config, home=home, entry_points=everything)
    if everything:
        return discovery
    known = {canonical_name(each.name) for each in discovery.found}
    if all(canonical_name(name) in known for _, name in named_in(config)):
        return discovery
    return discover(config, home=home)


@frozen
class Registered:
    """What an extension registered while it was loaded."""

    handlers: tuple[Registration, ...] = ()
    commands: tuple[CommandRegistration, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.handlers or self.commands)


@frozen
class _Ended:
    """How loading one extension ended.

    taken_over: its modules are those of an earlier load. merged: where its settings are from.
    """

    found: Found
    record: ExtensionRecord
    handlers: tuple[Handler, ...] = ()
    settings: Any = None
    problems: tuple[Problem, ...] = ()
    package: str = ""
    module: ModuleType | None = None
    registered: Registered = Registered()
    commands: tuple[Command, ...] = ()
    taken_over: bool = False
    merged: Merged | None = None

    @property
    def is_guard(self) -> bool:
        """Whether it registers a guard, turned off or not."""
        return any(each.mark.guard for each in self.registered.handlers)


def _own_packages(ended: Iterable[_Ended]) -> set[str]:
    return {each.package for each in ended if each.package.startswith(f"{PREFIX}.")}


class _Kept:
    """What an earlier load has imported."""

    def __init__(self, ended: Iterable[_Ended]) -> None:
        self._ended = {self._key(e.found): e for e in ended if e.record.loaded and e.module}

    def of(self, found: Found, same: Callable[[Found], bool]) -> _Ended | None:
        """The earlier load of an extension, if its code is to be taken over."""
        earlier = self._ended.get(self._key(found))
        if earlier is None:
            return None
        if found.source is Source.PROJECT:
            trees = (found.tree, earlier.found.tree)
            is_same = len({tree and tree.digest for tree in trees}) == 1 and None not in trees
        else:
            is_same = found.source is not Source.GLOBAL or same(found)
        return earlier if is_same else None

    @staticmethod
    def _key(found: Found) -> tuple[object, ...]:
        return found.source, canonical_name(found.name), found.module_file, found.module


class _Failed(Exception):  # noqa: N818 - never leaves this module
    """Loading ends here, with this status and reason."""

    def __init__(self, status: Status, reason: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.problems = problems


class _Loading:
    """The way of one extension from found to loaded."""

    def __init__(
        self,
        found: Found,
        config: ExtensionsConfig,
        world: _World,
        *,
        look: bool,
        project: ProjectSettings | None = None,
        outer: Sequence[ProjectSettings] = (),
        earlier: _Ended | None = None,
    ) -> None:
        self.found = found
        self.earlier = earlier
        self.project = project
        self.outer = outer
        self.look = look
        self.config = config
        self.world = world
        self.package = "" if found.module else private_name(found.name)
        self.before = frozenset[str]()
        self.seconds: float | None = None

    def stopped(self) -> _Ended | None:
        """How it ends where something stands against it; None: its code is to be run."""
        stand = standing(self.found, self.config)
        if stand.status is None:
            return None
        return _Ended(self.found, self._record(stand.status, stand.reason, stand.configured_on))

    def end(self) -> _Ended:
        """Run its code, and see what came of it."""
        try:
            return self._loaded()
        except _Failed as failed:
            return self._failed(failed)
        except Exception as error:  # noqa: BLE001 - objects of the author, looked at
            return self._failed(_Failed(Status.LOAD_ERROR, self._told(error)))

    def endless(self, error: EndlessImport) -> _Ended:
        """It did not come to an end."""
        what = "the import" if self.seconds is None else "checking its settings"
        where = printable(self.found.module_file or self.found.module or "")
        return self._failed(_Failed(Status.LOAD_ERROR, f"{what} {error} ({where})"))

    def shadowed(self, reason: str) -> _Ended:
        """It is not loaded because another of its name keeps its place."""
        return _Ended(self.found, self._record(Status.SHADOWED, reason, configured_on=False))

    def set_anew(self, ended: _Ended) -> _Ended:
        """What was loaded before, with the settings that the project may give it."""
        merged = merged_settings(
            self.found.name,
            self.config,
            self.found.manifest,
            self.project,
            own=False,
            guard=ended.is_guard,
            outer=ended.merged,
        )
        assert ended.module is not None
        try:
            self._refuse(merged.problems)
            settings, merged = self._settings(ended.module, ended.package, merged)
            handlers, _ = self._handlers(ended.registered.handlers, settings, merged)
            commands = self._commands(ended.registered.commands, settings)
        except _Failed as failed:
            # A project's mistake takes no rule of the user's out of force.
            problems = (*ended.problems, *merged.warnings, *failed.problems)
            return evolve(ended, problems=problems)
        return evolve(
            ended,
            handlers=handlers,
            commands=commands,
            settings=settings,
            problems=(*ended.problems, *merged.warnings),
            merged=merged,
        )

    def _failed(self, failed: _Failed) -> _Ended:
        self.forget()
        record = self._record(failed.status, failed.reason)
        return _Ended(self.found, record, problems=failed.problems)

    def _record(
        self, status: Status, reason: str, configured_on: bool = True, **changes: Any
    ) -> ExtensionRecord:
        return record_of(
            self.found,
            self.config,
            status=status,
            reason=reason,
            configured_on=configured_on,
            import_seconds=self.seconds,
            **changes,
        )

    def _loaded(self) -> _Ended:
        merged = self._merged()
        self._refuse(merged.problems)
        if self.earlier is None or self.earlier.module is None:
            imported, registered = self._imported()
        else:
            seconds = self.earlier.record.import_seconds or 0.0
            imported = Imported(self.earlier.module, self.earlier.package, seconds)
            registered = self.earlier.registered
        self.package, self.seconds = imported.package, round(imported.seconds, 4)
        if not registered and self.config.is_required(self.found.name):
            raise _Failed(Status.LOAD_ERROR, self._nothing(imported.module))
        settings, merged = self._settings(imported.module, self.package, merged)
        handlers, turned_off = self._handlers(registered.handlers, settings, merged)
        commands = self._commands(registered.commands, settings)
        record = self._record(
            Status.ENABLED,
            "",
            loaded=True,
            hooks=tuple(hook_info(handler, look=self.look) for handler in handlers),
            turned_off=tuple(hook_info(handler) for handler in turned_off),
            commands=tuple(map(command_info, commands)),
            warnings=tuple(self._warnings(imported.module, registered)),
        )
        return _Ended(
            self.found,
            record,
            handlers,
            settings,
            merged.warnings,
            imported.package,
            imported.module,
            registered,
            commands,
            self.earlier is not None,
            merged,
        )

    def _merged(self) -> Merged:
        name, manifest = self.found.name, self.found.manifest
        if self.found.source is not Source.PROJECT:
            return merged_settings(name, self.config, manifest)
        projects = (*((each, False) for each in self.outer), (self.project, True))
        return merged_through(name, self.config, manifest, projects)

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        if problems:
            status = fault_status(problems, self.config)
            raise _Failed(status, "; ".join(map(str, problems)), problems)

    def _imported(self) -> tuple[Imported, Registered]:
        import_name.install()  # not before: a host without extensions stays as it is
        children.watch()
        try:
            return self._collected()
        except KeyboardInterrupt:
            raise  # all of it ends
        except SkipExtension as skip:
            reason = printable(str(skip)) or "it raised SkipExtension and gave no reason"
            raise _Failed(Status.SKIPPED, reason) from skip
        except BaseException as error:  # foreign code: SystemExit and GeneratorExit too
            raise _Failed(Status.LOAD_ERROR, self._told(error)) from error

    def _collected(self) -> tuple[Imported, Registered]:
        with collecting() as handlers, collecting_commands() as commands:
            if self.found.module:
                self.before = frozenset(sys.modules)
                imported = import_entry_point(self.found.module)
            else:
                assert self.found.module_file is not None
                imported = import_file(self.package, self.found.module_file, self.found.tree)
        own = Registered(
            tuple(each for each in handlers if not self._is_foreign(each)),
            tuple(each for each in commands if not self._is_foreign(each)),
        )
        # An installed package may have been imported before, by the host or by an earlier load.
        return imported, own or (_marked_in(imported.package) if self.found.module else own)

    def _is_foreign(self, registration: Registration | CommandRegistration) -> bool:
        """Whether it belongs to another extension that this one happened to import first."""
        root = str(getattr(registration.function, "__module__", "")).partition(".")[0]
        return self.world.roots.get(root, self.found.name) != self.found.name

    def _settings(self, module: ModuleType, package: str, merged: Merged) -> tuple[Any, Merged]:
        cls = settings_class(module, package)
        if cls is None:
            return read_only(merged.values), merged
        settings, merged = typed_settings(cls, merged)
        self._refuse(merged.problems)
        return settings, merged

    def _handlers(
        self, registrations: tuple[Registration, ...], settings: Any, merged: Merged
    ) -> tuple[tuple[Handler, ...], tuple[Handler, ...]]:
        """Those that are to be called, and those that `disabled` turns off."""
        off = self.config.hooks_off(self.found.name)
        if off:
            # One that cannot be built counts only where it is to be called.
            with contextlib.suppress(RegistrationError):
                built = self._built(registrations, settings, merged)
                return (
                    tuple(each for each in built if each.hook.value not in off),
                    tuple(each for each in built if each.hook.value in off),
                )
        try:
            return self._built(registrations, settings, merged, off), ()
        except RegistrationError as error:
            raise _Failed(Status.LOAD_ERROR, printable(str(error))) from error

    def _commands(
        self, registrations: tuple[CommandRegistration, ...], settings: Any
    ) -> tuple[Command, ...]:
        try:
            return build_commands(self.found.name, registrations, config=settings)
        except RegistrationError as error:
            raise _Failed(Status.LOAD_ERROR, printable(str(error))) from error

    def _built(
        self,
        registrations: tuple[Registration, ...],
        settings: Any,
        merged: Merged,
        off: Iterable[str] = (),
    ) -> tuple[Handler, ...]:
        name = self.found.name
        given = {hook: self.config.priority_of(name, hook) for hook in HOOKS}
        return build_handlers(
            name,
            map(self.world.with_found_names, registrations),
            source=self.found.source,
            config=settings,
            observe=self.config.is_observed(name),
            disabled_hooks=off,
            priorities={hook: each for hook, each in given.items() if each is not None},
            leaves=merged.leaves,
        )

    def _warnings(self, module: ModuleType, registered: Registered) -> Iterator[str]:
        if not registered:
            yield self._nothing(module)
        if self.look and self.found.is_package:
            yield from taken_for_own(sys.modules[name] for name in modules_of(self.package))
        hooks = {each.mark.hook.value for each in registered.handlers}
        yield from off_in_vain(self.config, self.found.name, hooks)

    def _nothing(self, module: ModuleType) -> str:
        modules = [sys.modules.get(name, module) for name in modules_of(module.__name__)]
        near = [text for each in modules for text in near_misses(each)]
        hint = "; ".join(near) or "Put @register_hook(...) above its functions"
        return f"registers no handler, so nothing of it is ever called. {hint}"

    def _told(self, error: BaseException) -> str:
        text = _text_of(error)
        if isinstance(error, SystemExit):
            text = f"it called sys.exit({text}) while loading"
        place = place_of(error, self.found.path) if self.found.path is not None else ""
        told = text if isinstance(error, HermesExtError) else f"{type(error).__name__}: {text}"
        told = told if not place or place in told else f"{place}: {told}"
        hint = self._import_hint(error)
        shown: str = redacted(told)
        return f"{shown}. {hint}" if hint else shown

    def _import_hint(self, error: BaseException) -> str:
        name = getattr(error, "name", None)
        if not isinstance(error, ModuleNotFoundError) or not name or not self.found.is_package:
            return ""
        assert self.found.path is not None
        near = (self.found.path / f"{name}.py", self.found.path / name)
        return f"Write `from . import {name}`" if any(map(os.path.exists, near)) else ""

    def forget(self) -> None:
        """Leave no module of it behind."""
        if self.earlier is not None:
            return  # the earlier load is still in force
        if self.found.module:
            root = self.found.module.partition(":")[0].partition(".")[0].strip()
            forget(root, keep=self.before)
        else:
            forget(self.package)


def _all_ended(loadings: Iterable[_Loading], seconds: float) -> list[_Ended]:
    """How loading them ended, which may each take so long.

    The code of extensions, their settings classes too, runs in another thread: see `importing`.
    """
    ended = {each: each.stopped() for each in loadings}
    free = [each for each, stopped in ended.items() if stopped is None]
    hows = one_by_one([(each.found.name, each.end) for each in free], seconds)
    try:
        for each, how in zip(free, hows, strict=True):
            ended[each] = each.endless(how) if isinstance(how, EndlessImport) else how
    except KeyboardInterrupt:
        for each in free:
            each.forget()
        raise
    return [each for each in ended.values() if each is not None]


@frozen
class _World:
    """What one extension's loading needs to know of the others.

    names: names as found, by canonical name. roots: which extension a top-level package is.
    """

    names: Mapping[str, str]
    roots: Mapping[str, str]

    @classmethod
    def of(cls, found: Iterable[Found]) -> _World:
        found = tuple(found)
        roots = {
            each.module.partition(":")[0].partition(".")[0].strip(): each.name
            for each in found
            if each.module
        }
        names = {canonical_name(each.name): each.name for each in found}
        return cls(names, roots)

    def with_found_names(self, registration: Registration) -> Registration:
        """`before` and `after` spelled as the extensions are, so that handlers compare equal."""
        mark = registration.mark
        if not mark.before and not mark.after:
            return registration
        # The built-in guard is no extension: nobody has a place before or after it.
        before, after = (
            tuple(
                self.names.get(canonical_name(name), name)
                for name in names
                if canonical_name(name) != OWN
            )
            for names in (mark.before, mark.after)
        )
        return evolve(registration, mark=evolve(mark, before=before, after=after))


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


def _each_command_once(ended: Iterable[_Ended]) -> list[_Ended]:
    """The same, without the commands whose names others in front of them have."""
    owners: dict[str, str] = {}
    return [_without_taken(each, owners) for each in ended]


def _without_taken(ended: _Ended, owners: dict[str, str]) -> _Ended:
    taken = [each for each in ended.commands if each.name in owners]
    told = [
        f'/{each.name} ({each.file}:{each.line}) is never called, because "{owners[each.name]}"'
        " has a command of this name. Rename one of them"
        for each in taken
    ]
    owners |= {each.name: ended.found.name for each in ended.commands if each not in taken}
    if not taken:
        return ended
    left = tuple(each for each in ended.commands if each not in taken)
    record = evolve(
        ended.record,
        commands=tuple(map(command_info, left)),
        warnings=(*ended.record.warnings, *map(printable, told)),
    )
    return evolve(ended, commands=left, record=record)


def _marked_in(package: str) -> Registered:
    found: dict[tuple[int, HookMark], Registration] = {}
    commands: list[CommandRegistration] = []
    for name in modules_of(package):
        commands += commands_of(sys.modules[name])
        with contextlib.suppress(RegistrationError):  # a module that registers nothing
            for each in registrations_of(sys.modules[name]):
                found.setdefault((id(each.function), each.mark), each)
    return Registered(tuple(found.values()), tuple(dict.fromkeys(commands)))


def _text_of(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception as broken:  # noqa: BLE001 - an author's own __str__
        text = f"(its __str__ raised {type(broken).__name__})"
    longest = _LONGEST_OF_OURS if isinstance(error, HermesExtError) else _LONGEST
    return printable(text if len(text) <= longest else f"{text[:longest]}...")


@frozen
class _Layer:
    """What is loaded so far, the outer projects' included.

    settings: of these projects. own: their extensions as they were loaded, replaced or not.
    """

    ended: tuple[_Ended, ...]
    settings: tuple[ProjectSettings, ...] = ()
    own: tuple[_Ended, ...] = ()

    def holders(self) -> dict[str, _Ended]:
        """What is loaded, or should be and is broken, by canonical name."""
        broken = (e for e in self.ended if e.record.configured_on and e.record.status in BROKEN)
        loaded = (e for e in self.ended if e.record.loaded)
        return {canonical_name(e.found.name): e for e in (*broken, *loaded)}


class _ProjectLoading:
    """The way of one project's extensions onto what is loaded so far."""

    def __init__(self, base: Base, verdict: Verdict, kept: _Kept, below: _Layer) -> None:
        self.base = base
        self.kept = kept
        self.below = below
        self.config = base.config
        self.found = project_found(verdict)
        self.settings = settings_of(verdict)
        self.world = _World.of((*(each.found for each in below.ended), *self.found))

    def layer(self) -> _Layer:
        """What is loaded with it."""
        settings = () if self.settings is None else (self.settings,)
        own, ended = self._ended(self._own())
        return _Layer(tuple(ended), (*self.below.settings, *settings), (*self.below.own, *own))

    def _ended(self, own: list[_Ended]) -> tuple[list[_Ended], list[_Ended]]:
        """The project's own, and all of what was loaded before and of the project, each once."""
        while own:
            together = [*self._below(own), *own]
            try:
                _ordered(together)
            except OrderCycleError as error:
                left = [_without(e, error) if e.found.name in error.members else e for e in own]
                if left != own:
                    own = left
                    continue
            return own, together
        return own, [*self._below(own)]

    def _own(self) -> list[_Ended]:
        """The project's, in their order."""
        loadings = [self._loading(each) for each in self.found]
        kept = {each: why for each in loadings if (why := self._kept_from(each.found)) is not None}
        free = [each for each in loadings if each not in kept]
        ended = iter(_all_ended(free, self.base.import_seconds))
        return [e.shadowed(kept[e]) if e in kept else next(ended) for e in loadings]

    def _kept_from(self, found: Found) -> str | None:
        """Why another of its name keeps its place; None if it does not."""
        other = self.below.holders().get(canonical_name(found.name))
        if other is None or standing(found, self.config).status is not None:
            return None
        # One that does not load may be a guard; until it is mended nobody takes its place.
        guard = other.is_guard or not other.record.loaded
        return kept_from(other.found, guard=guard, config=self.config)

    def _below(self, own: Iterable[_Ended]) -> Iterator[_Ended]:
        taken = {canonical_name(each.found.name): each for each in own if each.record.loaded}
        for each in self.below.ended:
            new = taken.get(canonical_name(each.found.name))
            if not each.record.loaded:
                yield each
            elif new is not None:
                yield _replaced(each, new)
            elif self.settings is None or self.settings.settings_of(each.found.name) is None:
                yield each
            else:
                yield self._loading(each.found).set_anew(each)

    def _loading(self, found: Found) -> _Loading:
        return _Loading(
            found,
            self.config,
            self.world,
            look=self.base.everything,
            project=self.settings,
            outer=self.below.settings,
            earlier=self._earlier(found),
        )

    def _earlier(self, found: Found) -> _Ended | None:
        is_own = found.source is Source.PROJECT
        return self.kept.of(found, lambda found: False) if is_own else None


def _replaced(ended: _Ended, new: _Ended) -> _Ended:
    reason = replaced_by(new.found)
    record = evolve(ended.record, status=Status.SHADOWED, reason=reason, loaded=False)
    return _Ended(
        ended.found, evolve(record, configured_on=False, hooks=(), turned_off=(), commands=())
    )


def _ordered(ended: Iterable[_Ended]) -> None:
    """Raises OrderCycleError where `before` and `after` of the handlers contradict each other."""
    handlers = [handler for each in ended for handler in each.handlers]
    if any(handler.before or handler.after for handler in handlers):
        from hermes_ext.chain.manager import HookManager

        HookManager(handlers)


def _without_cycles(ended: list[_Ended]) -> list[_Ended]:
    """The same, with the extensions whose `before` and `after` contradict each other failed."""
    try:
        _ordered(ended)
    except OrderCycleError as error:
        left = [
            _without(each, error) if each.found.name in error.members else each for each in ended
        ]
        return _without_cycles(left) if left != ended else ended
    return ended


def _without(ended: _Ended, error: OrderCycleError) -> _Ended:
    if not ended.taken_over:
        forget(ended.package)
    reason = printable(str(error))
    failed = evolve(ended.record, status=Status.LOAD_ERROR, reason=reason, loaded=False, hooks=())
    failed = evolve(failed, turned_off=(), commands=())
    return _Ended(ended.found, failed, problems=ended.problems)


def _refusal(
    config: ExtensionsConfig, records: Iterable[ExtensionRecord]
) -> tuple[str | None, Cause | None]:
    loaded = {canonical_name(each.name) for each in records if each.loaded}
    refusal = refusal_with(config, records, loaded)
    return refusal, None if refusal is None else _cause(config, loaded)


def _cause(config: ExtensionsConfig, loaded: Container[str]) -> Cause:
    if not config.readable:
        return Cause(file=printable(config.file), line=config.problems[0].line or 0)
    missing = tuple(each for each in config.required if canonical_name(each) not in loaded)
    line = config.line_of("required") or 0
    return Cause(missing, config.own_setting("required"), printable(config.file), line)
