"""What an extension registers: the marks found while its code runs, and the names in them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping

from hermes_ext._text import canonical_name
from hermes_ext._values import evolve, frozen
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks.commands import CommandRegistration, commands_of
from hermes_ext.hooks.handler import HookMark
from hermes_ext.hooks.registration import Registration, registrations_of
from hermes_ext.hooks.source import OWN
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.imports.importing import modules_of


@frozen
class Registered:
    """What an extension registered while it was loaded."""

    handlers: tuple[Registration, ...] = ()
    commands: tuple[CommandRegistration, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.handlers or self.commands)


@frozen
class World:
    """What one extension's loading needs to know of the others.

    names: names as found, by canonical name. roots: which extension a top-level package is.
    """

    names: Mapping[str, str]
    roots: Mapping[str, str]

    @classmethod
    def of(cls, found: Iterable[Candidate]) -> World:
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


def marked_in(package: str) -> Registered:
    found: dict[tuple[int, HookMark], Registration] = {}
    commands: list[CommandRegistration] = []
    for name in modules_of(package):
        commands += commands_of(sys.modules[name])
        with contextlib.suppress(RegistrationError):  # a module that registers nothing
            for each in registrations_of(sys.modules[name]):
                found.setdefault((id(each.function), each.mark), each)
    return Registered(tuple(found.values()), tuple(dict.fromkeys(commands)))
