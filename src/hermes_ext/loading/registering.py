"""What an extension registers, and the names of others in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hermes_ext._text import canonical_name
from hermes_ext._values import evolve, frozen
from hermes_ext.hooks.source import OWN
from hermes_ext.loading.finding.candidate import Candidate

if TYPE_CHECKING:
    from hermes_ext.hooks.commands import CommandRegistration
    from hermes_ext.hooks.registration import Registration


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
