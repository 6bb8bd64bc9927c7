"""Projects, the outermost first: each adds its extensions to what is loaded so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes_ext._text import canonical_name
from hermes_ext.exceptions import OrderCycleError
from hermes_ext.hooks.source import Source
from hermes_ext.loading.ended import Base, Ended, Kept, Layer, in_order, replaced, without
from hermes_ext.loading.extension import Loading, all_ended
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import project_found, standing
from hermes_ext.loading.finding.projects import kept_from, settings_of
from hermes_ext.loading.registering import World
from hermes_ext.trust.store import Verdict


class ProjectLoading:
    """The way of one project's extensions onto what is loaded so far."""

    def __init__(self, base: Base, verdict: Verdict, kept: Kept, below: Layer) -> None:
        self.base = base
        self.kept = kept
        self.below = below
        self.config = base.config
        self.found = project_found(verdict)
        self.settings = settings_of(verdict)
        self.world = World.of((*(each.candidate for each in below.ended), *self.found))

    def layer(self) -> Layer:
        """What is loaded with it."""
        settings = () if self.settings is None else (self.settings,)
        own, ended = self._ended(self._own())
        return Layer(tuple(ended), (*self.below.settings, *settings), (*self.below.own, *own))

    def _ended(self, own: list[Ended]) -> tuple[list[Ended], list[Ended]]:
        """The project's own, and all of what was loaded before and of the project, each once."""
        while own:
            together = [*self._below(own), *own]
            try:
                in_order(together)
            except OrderCycleError as error:
                left = [without(e, error) if e.candidate.name in error.members else e for e in own]
                if left != own:
                    own = left
                    continue
            return own, together
        return own, [*self._below(own)]

    def _own(self) -> list[Ended]:
        """The project's, in their order."""
        loadings = [self._loading(each) for each in self.found]
        kept = {
            each: why for each in loadings if (why := self._kept_from(each.candidate)) is not None
        }
        free = [each for each in loadings if each not in kept]
        ended = iter(all_ended(free, self.base.import_seconds))
        return [e.shadowed(kept[e]) if e in kept else next(ended) for e in loadings]

    def _kept_from(self, candidate: Candidate) -> str | None:
        """Why another of its name keeps its place; None if it does not."""
        other = self.below.holders().get(canonical_name(candidate.name))
        if other is None or standing(candidate, self.config).status is not None:
            return None
        # One that does not load may be a guard; until it is mended nobody takes its place.
        guard = other.is_guard or not other.record.loaded
        return kept_from(other.candidate, guard=guard, config=self.config)

    def _below(self, own: Iterable[Ended]) -> Iterator[Ended]:
        taken = {canonical_name(each.candidate.name): each for each in own if each.record.loaded}
        for each in self.below.ended:
            new = taken.get(canonical_name(each.candidate.name))
            if not each.record.loaded:
                yield each
            elif new is not None:
                yield replaced(each, new)
            elif self.settings is None or self.settings.settings_of(each.candidate.name) is None:
                yield each
            else:
                yield self._loading(each.candidate).set_anew(each)

    def _loading(self, candidate: Candidate) -> Loading:
        is_own = candidate.source is Source.PROJECT
        return Loading(
            candidate,
            self.config,
            self.world,
            look=self.base.everything,
            project=self.settings,
            outer=self.below.settings,
            earlier=self.kept.of(candidate, lambda _: False) if is_own else None,
        )
