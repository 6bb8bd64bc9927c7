"""What a load gave: for a home, and with the projects that apply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from hermes_ext._problems import Problem
from hermes_ext.chain.outcome import Cause
from hermes_ext.hooks.commands import Command
from hermes_ext.hooks.handler import Handler
from hermes_ext.loading.ended import Ended
from hermes_ext.loading.finding.discovery import Discovery
from hermes_ext.loading.finding.projects import NO_PROJECTS, ProjectStack
from hermes_ext.loading.imports.importing import IMPORT_SECONDS, PREFIX
from hermes_ext.records import ExtensionRecord
from hermes_ext.settings.config import ExtensionsConfig


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
            each.package: str(each.found.module_file)
            for each in self.ended
            if each.record.loaded and each.package.startswith(f"{PREFIX}.") and not each.found.tree
        }
