"""The projects that work in a directory may have rules from, before any of them is read.

    /w                       trusted: applies to all below it, whatever lies in between
    /w/repo                  a repository; up to here, what is not trusted is found and reported too
    /w/repo/sub              the directory
    /elsewhere/main          the main work tree, if a folder on the way is linked to it: what is
                             trusted there comes before what the linked work tree has itself

What is trusted is looked up by its path, so nothing that appears or moves on the way hides it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path

from hermes_ext._values import field, frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.trust.place import Project, find_projects_at, project_at, real_path
from hermes_ext.trust.store import TrustStore, pins
from hermes_ext.trust.worktree import Link, link_of


@frozen
class PossibleProject:
    """A project that may apply.

    Attributes:
        project: which.
        found: whether it is reported where it is not trusted and nothing further down is.
        listed: whether the user has trusted it, with whatever content.
        twin: the same project in the main work tree.
        nested: whether the twin applies here anyway, because the directory is below it.
        confirmed: whether the twin's repository says that this is a work tree of it.
    """

    project: Project
    found: bool = True
    listed: bool = False
    twin: Path | None = None
    nested: bool = False
    confirmed: bool = False

    @property
    def trusted_like(self) -> Path | None:
        """The project whose trusted content is trusted here too."""
        return self.twin if self.confirmed or not self.nested else None

    def replaces(self, root: Path, *, same: bool) -> bool:
        """Whether it applies instead of another project, where it is trusted.

        A link must take no rule away: what the directory is below gives way to the same content.
        """
        return root == self.twin and (same or not self.nested)


@frozen
class Listed:
    """The digests that the user trusts, by the roots of their projects.

    digests: None where the list cannot be read. stamp: tells this list from a later one.
    """

    digests: Mapping[Path, str] | None
    stamp: Hashable = field(eq=False)

    @classmethod
    def now(cls, home: Path, before: Listed | None = None) -> Listed:
        """What is listed in a home; `before` where nothing has changed since."""
        store = TrustStore(home)
        stamp = store.stamp()
        if before is not None and before.stamp == stamp:
            return before
        try:
            return cls({each.path: each.digest for each in store.entries()}, stamp)
        except ConfigError:  # reported with each project, as the reason why it is not trusted
            return cls(None, stamp)


def possible_projects(
    directory: Path, listed: Listed, *, home: Path, global_dir: Path
) -> Iterator[PossibleProject]:
    """The projects that may apply in a directory, the innermost first. Never raises."""
    try:
        start = real_path(directory)
    except (OSError, ValueError):  # the working directory is gone, or the path has a NUL
        return
    search = _Search.of(start, listed.digests or {}, home, global_dir)
    near = {e.root: e for e in find_projects_at(start, home=home, global_dir=global_dir)}
    # Of a digest in the environment nobody knows where its tree is; nor of a list that is damaged.
    everywhere = listed.digests is None or bool(pins())
    for folder in search.above:
        project = near.get(folder) or search.project(folder, everywhere=everywhere)
        if project is not None:
            yield search.possible(project, found=folder in near or listed.digests is None)
        if folder in search.links:
            yield from search.behind(folder)


@frozen
class _Search:
    """One search. above: the directory and all above it. links: those that are linked."""

    above: tuple[Path, ...]
    digests: Mapping[Path, str]
    links: Mapping[Path, Link]
    home: Path
    global_dir: Path

    @classmethod
    def of(cls, start: Path, digests: Mapping[Path, str], home: Path, global_dir: Path) -> _Search:
        above = (start, *start.parents)
        found = ((folder, link_of(folder, digests)) for folder in above) if digests else ()
        links = {folder: link for folder, link in found if link is not None}
        return cls(above, digests, links, home, global_dir)

    def project(self, folder: Path, *, everywhere: bool = False) -> Project | None:
        """The project that a folder is, if the user has listed it, or if it may be any."""
        listed = folder in self.digests
        if not (listed or everywhere):
            return None
        return project_at(folder, home=self.home, global_dir=self.global_dir, listed=listed)

    def possible(self, project: Project, *, found: bool) -> PossibleProject:
        """With what the main work tree has in its place, if it is in a linked one."""
        root, listed = project.root, project.root in self.digests
        for folder, link in self.links.items():
            twin = link.main / root.relative_to(folder) if root.is_relative_to(folder) else None
            if twin in self.digests:
                return PossibleProject(
                    project, found, listed, twin, twin in self.above, link.confirmed
                )
        return PossibleProject(project, found, listed)

    def behind(self, folder: Path) -> Iterator[PossibleProject]:
        """What is trusted at the directory's place in the main work tree, and above it."""
        same = self.links[folder].main / self.above[0].relative_to(folder)
        for each in (same, *same.parents):
            project = None if each in self.above else self.project(each)
            if project is not None:
                yield PossibleProject(project, found=False, listed=True)
