"""One extension, from what was found to its record: settings, import, handlers, all or none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from hermes_ext._problems import Problem
from hermes_ext._text import printable
from hermes_ext._values import define, evolve, field
from hermes_ext.exceptions import RegistrationError, SkipExtension
from hermes_ext.hooks.commands import (
    Command,
    CommandRegistration,
    build_commands,
    collecting_commands,
    commands_of,
)
from hermes_ext.hooks.handler import Handler, HookMark
from hermes_ext.hooks.registration import (
    Registration,
    build_handlers,
    collecting,
    registrations_of,
)
from hermes_ext.hooks.source import Source
from hermes_ext.loading.ended import Ended, command_info, hook_info, stopped
from hermes_ext.loading.failed import Failed, nothing_registered, words_of
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import fault_status, off_in_vain, record_of
from hermes_ext.loading.imports import children, import_name
from hermes_ext.loading.imports.importing import (
    EndlessImport,
    Imported,
    forget,
    import_entry_point,
    import_file,
    modules_of,
    one_by_one,
    private_name,
)
from hermes_ext.loading.imports.source_code import taken_for_own
from hermes_ext.loading.registering import Registered, World
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.by_class import settings_class
from hermes_ext.settings.config import ExtensionsConfig
from hermes_ext.settings.merging import (
    Merged,
    merged_settings,
    merged_through,
    read_only,
    typed_settings,
)
from hermes_ext.settings.names import HOOKS
from hermes_ext.settings.project_settings import ProjectSettings


@define(eq=False)
class Loading:
    """The way of one extension from found to loaded."""

    candidate: Candidate
    config: ExtensionsConfig
    world: World
    look: bool
    project: ProjectSettings | None = None
    outer: Sequence[ProjectSettings] = ()
    earlier: Ended | None = None
    package: str = field(init=False)
    before: frozenset[str] = frozenset()
    seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        self.package = "" if self.candidate.module else private_name(self.candidate.name)

    def end(self) -> Ended:
        """Run its code, and see what came of it."""
        try:
            return self._loaded()
        except Failed as failed:
            return self._failed(failed)
        except Exception as error:  # noqa: BLE001 - objects of the author, looked at
            return self._failed(Failed(Status.LOAD_ERROR, words_of(error, self.candidate)))

    def endless(self, error: EndlessImport) -> Ended:
        """It did not come to an end."""
        what = "the import" if self.seconds is None else "checking its settings"
        where = printable(self.candidate.module_file or self.candidate.module or "")
        return self._failed(Failed(Status.LOAD_ERROR, f"{what} {error} ({where})"))

    def shadowed(self, reason: str) -> Ended:
        """It is not loaded because another of its name keeps its place."""
        return Ended(self.candidate, self._record(Status.SHADOWED, reason, configured_on=False))

    def set_anew(self, ended: Ended) -> Ended:
        """What was loaded before, with the settings that the project may give it."""
        merged = merged_settings(
            self.candidate.name,
            self.config,
            self.candidate.manifest,
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
        except Failed as failed:
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

    def _failed(self, failed: Failed) -> Ended:
        self.forget()
        record = self._record(failed.status, failed.reason)
        return Ended(self.candidate, record, problems=failed.problems)

    def _record(
        self, status: Status, reason: str, configured_on: bool = True, **changes: Any
    ) -> ExtensionRecord:
        return record_of(
            self.candidate,
            self.config,
            status=status,
            reason=reason,
            configured_on=configured_on,
            import_seconds=self.seconds,
            **changes,
        )

    def _loaded(self) -> Ended:
        merged = self._merged()
        self._refuse(merged.problems)
        if self.earlier is None or self.earlier.module is None:
            imported, registered = self._imported()
        else:
            seconds = self.earlier.record.import_seconds or 0.0
            imported = Imported(self.earlier.module, self.earlier.package, seconds)
            registered = self.earlier.registered
        self.package, self.seconds = imported.package, round(imported.seconds, 4)
        if not registered and self.config.is_required(self.candidate.name):
            raise Failed(Status.LOAD_ERROR, nothing_registered(imported.module))
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
        return Ended(
            self.candidate,
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
        name, manifest = self.candidate.name, self.candidate.manifest
        if self.candidate.source is not Source.PROJECT:
            return merged_settings(name, self.config, manifest)
        projects = (*((each, False) for each in self.outer), (self.project, True))
        return merged_through(name, self.config, manifest, projects)

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        if problems:
            status = fault_status(problems, self.config)
            raise Failed(status, "; ".join(map(str, problems)), problems)

    def _imported(self) -> tuple[Imported, Registered]:
        import_name.install()  # not before: a host without extensions stays as it is
        children.watch()
        try:
            return self._collected()
        except KeyboardInterrupt:
            raise  # all of it ends
        except SkipExtension as skip:
            reason = printable(str(skip)) or "it raised SkipExtension and gave no reason"
            raise Failed(Status.SKIPPED, reason) from skip
        except BaseException as error:  # foreign code: SystemExit and GeneratorExit too
            raise Failed(Status.LOAD_ERROR, words_of(error, self.candidate)) from error

    def _collected(self) -> tuple[Imported, Registered]:
        with collecting() as handlers, collecting_commands() as commands:
            if self.candidate.module:
                self.before = frozenset(sys.modules)
                imported = import_entry_point(self.candidate.module)
            else:
                assert self.candidate.module_file is not None
                imported = import_file(
                    self.package, self.candidate.module_file, self.candidate.tree
                )
        own = Registered(
            tuple(each for each in handlers if not self._is_foreign(each)),
            tuple(each for each in commands if not self._is_foreign(each)),
        )
        # An installed package may have been imported before, by the host or by an earlier load.
        return imported, own or (_marked_in(imported.package) if self.candidate.module else own)

    def _is_foreign(self, registration: Registration | CommandRegistration) -> bool:
        """Whether it belongs to another extension that this one happened to import first."""
        root = str(getattr(registration.function, "__module__", "")).partition(".")[0]
        return self.world.roots.get(root, self.candidate.name) != self.candidate.name

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
        off = self.config.hooks_off(self.candidate.name)
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
            raise Failed(Status.LOAD_ERROR, printable(str(error))) from error

    def _commands(
        self, registrations: tuple[CommandRegistration, ...], settings: Any
    ) -> tuple[Command, ...]:
        try:
            return build_commands(self.candidate.name, registrations, config=settings)
        except RegistrationError as error:
            raise Failed(Status.LOAD_ERROR, printable(str(error))) from error

    def _built(
        self,
        registrations: tuple[Registration, ...],
        settings: Any,
        merged: Merged,
        off: Iterable[str] = (),
    ) -> tuple[Handler, ...]:
        name = self.candidate.name
        hooks = HOOKS if self.config.priorities else ()
        given = {hook: self.config.priority_of(name, hook) for hook in hooks}
        return build_handlers(
            name,
            map(self.world.with_found_names, registrations),
            source=self.candidate.source,
            config=settings,
            observe=self.config.is_observed(name),
            disabled_hooks=off,
            priorities={hook: each for hook, each in given.items() if each is not None},
            leaves=merged.leaves,
        )

    def _warnings(self, module: ModuleType, registered: Registered) -> Iterator[str]:
        if not registered:
            yield nothing_registered(module)
        if self.look and self.candidate.is_package:
            yield from taken_for_own(sys.modules[name] for name in modules_of(self.package))
        hooks = {each.mark.hook.value for each in registered.handlers}
        yield from off_in_vain(self.config, self.candidate.name, hooks)

    def forget(self) -> None:
        """Leave no module of it behind."""
        if self.earlier is not None:
            return  # the earlier load is still in force
        if self.candidate.module:
            root = self.candidate.module.partition(":")[0].partition(".")[0].strip()
            forget(root, keep=self.before)
        else:
            forget(self.package)


def all_ended(loadings: Iterable[Loading], seconds: float) -> list[Ended]:
    """How loading them ended, which may each take so long.

    The code of extensions, their settings classes too, runs in another thread: see `importing`.
    """
    ended = {each: stopped(each.candidate, each.config) for each in loadings}
    free = [each for each, how in ended.items() if how is None]
    hows = one_by_one([(each.candidate.name, each.end) for each in free], seconds)
    try:
        for each, how in zip(free, hows, strict=True):
            ended[each] = each.endless(how) if isinstance(how, EndlessImport) else how
    except KeyboardInterrupt:
        for each in free:
            each.forget()
        raise
    return [each for each in ended.values() if each is not None]


def _marked_in(package: str) -> Registered:
    """What its modules are marked with."""
    found: dict[tuple[int, HookMark], Registration] = {}
    commands: list[CommandRegistration] = []
    for name in modules_of(package):
        commands += commands_of(sys.modules[name])
        with contextlib.suppress(RegistrationError):  # a module that registers nothing
            for each in registrations_of(sys.modules[name]):
                found.setdefault((id(each.function), each.mark), each)
    return Registered(tuple(found.values()), tuple(dict.fromkeys(commands)))
