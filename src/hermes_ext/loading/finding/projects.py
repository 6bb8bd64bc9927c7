"""A project's own extensions: which are there, and when one of them takes another's place.

Of a project that is not trusted nothing is parsed: its extensions have names and a reason, no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._prog import HERMES_EXT, Prog
from hermes_ext._text import as_name, printable
from hermes_ext._values import evolve, frozen
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate, counts, package, well_named
from hermes_ext.loading.finding.not_extensions import no_extension
from hermes_ext.records import Status
from hermes_ext.settings.config import ExtensionsConfig
from hermes_ext.settings.manifest import MANIFEST_FILE, parse_manifest
from hermes_ext.settings.names import name_fault
from hermes_ext.trust.place import EXTENSIONS, Project
from hermes_ext.trust.possible_projects import Listed, PossibleProject, possible_projects
from hermes_ext.trust.store import Standing, Verdict, judge, listed_paths

if TYPE_CHECKING:
    from hermes_ext.settings.project_settings import ProjectSettings
    from hermes_ext.trust.tree import Tree

_SHOWN = 5  # names in the line that says what is not loaded
_LONGEST = 40  # characters of each


@frozen
class ProjectStack:
    """The projects of a directory.

    Attributes:
        trusted: those that apply, the outermost first.
        left_out: those that do not, and are reported; the innermost first.
        drifted: those that apply as they are on the disk, where that is not what was trusted.
    """

    trusted: tuple[Verdict, ...] = ()
    left_out: tuple[Verdict, ...] = ()
    drifted: tuple[Verdict, ...] = ()

    @property
    def shown(self) -> tuple[Verdict, ...]:
        """Those whose extensions have records: what applies, else the innermost."""
        return self.trusted or self.left_out[:1]

    @property
    def nearest(self) -> Verdict | None:
        """The innermost that applies, else the innermost at all; None where there is none."""
        return self.shown[-1] if self.shown else None

    @property
    def all(self) -> tuple[Verdict, ...]:
        """All of them, what applies first."""
        return (*self.trusted, *self.left_out)


NO_PROJECTS: Final = ProjectStack()


def projects_at(config: ExtensionsConfig, home: Path, directory: Path | None) -> ProjectStack:
    """The projects of a directory, as they are on the disk now."""
    if directory is None or not config.project_local:
        return NO_PROJECTS
    listed = Listed.now(home)
    found = possible_projects(directory, listed, home=home, global_dir=config.global_dir)
    stack = stacked((each, judge(each.project, home, each.trusted_like)) for each in found)
    return evolve(stack, drifted=tuple(filter(has_drifted, stack.trusted)))


def verdict_of(project: Project, config: ExtensionsConfig, home: Path) -> Verdict:
    """The verdict on one project; in a linked work tree the trust of the main one holds too."""
    listed = Listed.now(home)
    found = possible_projects(project.root, listed, home=home, global_dir=config.global_dir)
    like = (each.trusted_like for each in found if each.project.root == project.root)
    return judge(project, home, next(like, None))


def has_drifted(verdict: Verdict) -> bool:
    """Whether what is on the disk is not what was trusted, or more than that."""
    return not verdict.is_trusted or bool(verdict.changed)


def stacked(judged: Iterable[tuple[PossibleProject, Verdict]]) -> ProjectStack:
    """Of possible projects, the innermost first, and what is thought of each, those that apply.

    All trusted ones do, except where a linked work tree has the same tree, or another that is
    trusted, in the place of one. Of the others, those are reported that the user trusted before,
    and those further down than any trusted one; where none is trusted, only the innermost.
    """
    judged = tuple(judged)
    trusted: list[Verdict] = []
    left_out: list[tuple[PossibleProject, Verdict]] = []
    for possible, verdict in judged:
        if verdict.is_trusted:
            if not any(_gives_way(verdict, *each) for each in judged):
                trusted.append(verdict)
        elif possible.listed or (possible.found and not trusted):
            left_out.append((possible, verdict))
    kept = left_out if trusted else [e for n, e in enumerate(left_out) if not n or e[0].listed]
    return ProjectStack(tuple(reversed(trusted)), tuple(verdict for _, verdict in kept))


def _gives_way(verdict: Verdict, possible: PossibleProject, other: Verdict) -> bool:
    """Whether a trusted project gives way to another, its twin in a linked work tree."""
    if not other.is_trusted:
        return False
    assert verdict.tree is not None
    assert other.tree is not None
    same = verdict.tree.digest == other.tree.digest
    return possible.replaces(verdict.project.root, same=same)


def found_in(verdict: Verdict) -> tuple[Candidate, ...]:
    """The extensions of a project, to be loaded only where it is trusted."""
    if not verdict.is_trusted:
        names = () if verdict.tree is None else verdict.tree.names()
        why: dict[str, Any] = {"status": Status.UNTRUSTED, "reason": verdict.reason}
        return tuple(
            Candidate(printable(name), Source.PROJECT, _place(verdict, name), **why)
            for name in names
        )
    assert verdict.tree is not None
    return tuple(_in_tree(verdict.project.extensions, verdict.tree))


def settings_of(verdict: Verdict) -> ProjectSettings | None:
    """The settings that a trusted project brings along; None where it has none."""
    if verdict.tree is None or not verdict.is_trusted:
        return None
    file = verdict.project.settings_file
    there = file.name in verdict.tree.files
    from hermes_ext.settings.project_settings import read_project_settings

    return read_project_settings(file, verdict.tree.read(file.name)) if there else None


def notices(stack: ProjectStack, prog: Prog = HERMES_EXT) -> tuple[str, ...]:
    """A line for each project that is not in force as it is on the disk: what, why, what to do."""
    others = ", ".join(printable(each.project.root) for each in stack.trusted)
    stay = f". The extensions of {others} stay in force there" if others else ""
    left_out = filter(None, (_left_out(each, prog) for each in stack.left_out))
    drifted = (_grown(e, prog) if e.is_trusted else _drifted(e) for e in stack.drifted)
    return (*(f"{text}{stay}" for text in left_out), *drifted)


def _left_out(verdict: Verdict, prog: Prog) -> str | None:
    folder = printable(verdict.project.folder)
    root = verdict.project.root
    if verdict.standing is Standing.REFUSED:
        return f"project extensions in {folder} are not loaded: {verdict.reason}"
    if verdict.tree is not None and not verdict.tree.files:
        if verdict.standing is not Standing.CHANGED:
            return None
        return (
            f"the project extensions that you trusted in {folder} {verdict.reason}, so they are "
            f"not loaded. Put them back, or stop trusting them: {prog('untrust', root)}"
        )
    what = f"are not loaded: {_named(verdict.names)}" if verdict.names else "are not used"
    return (
        f"project extensions in {folder} {what} ({verdict.reason}). "
        f"To look at them and decide: {prog('trust', root)}"
    )


def _grown(verdict: Verdict, prog: Prog) -> str:
    return (
        f"{printable(verdict.project.folder)} has new data since you trusted it: "
        f"{listed_paths(verdict.changed)}. The trusted version stays in force. Extensions should "
        "write to their data_dir, not beside their code. Remove the files, or review and trust "
        f"them: {prog('trust', verdict.project.root)}"
    )


def _drifted(verdict: Verdict) -> str:
    return (
        f"{printable(verdict.project.folder)} is no longer as it was when its extensions were "
        f"loaded ({verdict.reason}). What you trusted stays in force in this process; what changed "
        "does not run, and from the next start nothing of it does until you trust it again"
    )


def _named(names: Sequence[str]) -> str:
    """Some of the names, and how many there are besides: whoever made the project chose them."""
    shown = [name for name in names if name_fault(name) is None][:_SHOWN]
    more = len(names) - len(shown)
    told = ", ".join(as_name(name, _LONGEST) for name in shown)
    if not more:
        return told
    return f"{told} and {more:,} more" if told else f"{more:,} whose names are none of an extension"


def kept_from(other: Candidate, *, guard: bool, config: ExtensionsConfig) -> str | None:
    """Why a trusted project's extension of the same name may not take its place; None if it may.

    guard: whether it registers a guard, as far as is known.
    """
    if config.is_overridable(other.name) or not (guard or config.is_required(other.name)):
        return None
    why = "is a guard" if guard else "is required"
    where = printable(other.path or other.module or "")
    return (
        f"the {other.source} extension {other.name!r} ({where}) stays in its place because it "
        f"{why}; to let projects replace it, add {other.name} to extensions.overridable in "
        f"{printable(config.file)}"
    )


def replaced_by(project: Candidate) -> str:
    """The reason of an extension whose place a project's has taken."""
    return f"the project's own of this name is used here: {printable(project.path or '')}"


def _place(verdict: Verdict, name: str) -> Path:
    folder = verdict.project.extensions
    assert verdict.tree is not None
    is_package = f"{EXTENSIONS}/{name}/__init__.py" in verdict.tree.files
    return folder / (name if is_package else f"{name}.py")


def _in_tree(folder: Path, tree: Tree) -> Iterator[Candidate]:
    inside: dict[str, set[str]] = {}
    for relative in tree.files:
        top, *path = PurePosixPath(relative).parts
        if top == EXTENSIONS and counts(path[0]):
            inside.setdefault(path[0], set()).update(path[1:2])
    for name in sorted(inside):
        found = _found(folder / name, inside[name], tree)
        if found is not None:
            yield well_named(evolve(found, tree=tree), found.name)


def _found(path: Path, files: set[str], tree: Tree) -> Candidate | None:
    if not files:
        is_module = path.suffix == ".py"
        return Candidate(path.stem, Source.PROJECT, path, module_file=path) if is_module else None
    if "__init__.py" not in files:
        return no_extension(path, Source.PROJECT, files)
    manifest = None
    if MANIFEST_FILE in files:
        raw = tree.read(f"{EXTENSIONS}/{path.name}/{MANIFEST_FILE}")
        manifest = parse_manifest(path / MANIFEST_FILE, raw)
    return package(path.name, Source.PROJECT, path, manifest)
