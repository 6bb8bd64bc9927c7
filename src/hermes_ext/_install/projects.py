"""A project's own extensions: which are there, and when one of them takes another's place.

Of a project that is not trusted nothing is parsed: its extensions have names and a reason, no more.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from attrs import evolve

from hermes_ext._hooks.source import Source
from hermes_ext._hooks.text import as_name, printable
from hermes_ext._install.config import ExtensionsConfig
from hermes_ext._install.found import Found, counts, package, well_named
from hermes_ext._install.manifest import MANIFEST_FILE, parse_manifest
from hermes_ext._install.not_extensions import no_extension
from hermes_ext._install.project_settings import ProjectSettings, read_project_settings
from hermes_ext._install.records import HERMES_EXT, Prog, Status, name_fault
from hermes_ext._trust.place import EXTENSIONS, find_projects
from hermes_ext._trust.store import Standing, Verdict, judge
from hermes_ext._trust.tree import Tree

_SHOWN = 5  # names in the line that says what is not loaded
_LONGEST = 40  # characters of each


def verdict_at(config: ExtensionsConfig, home: Path, directory: Path | None) -> Verdict | None:
    """What is to be thought of the project that a directory is in; None where there is none.

    The nearest that is trusted: a folder that anybody put further down takes no rule out of force.
    Where none is, the nearest.
    """
    if directory is None or not config.project_local:
        return None
    nearer: list[Verdict] = []
    for project in find_projects(directory, home=home, global_dir=config.global_dir):
        verdict = judge(project, home)
        if verdict.standing is Standing.TRUSTED:
            return evolve(verdict, nearer=tuple(nearer))
        nearer.append(verdict)
    return nearer[0] if nearer else None


def found_in(verdict: Verdict | None) -> tuple[Found, ...]:
    """The extensions of a project, to be loaded only where it is trusted."""
    if verdict is None:
        return ()
    if verdict.standing is not Standing.TRUSTED or verdict.tree is None:
        names = () if verdict.tree is None else verdict.tree.names()
        return tuple(
            Found(
                printable(name),
                Source.PROJECT,
                _place(verdict, name),
                status=Status.UNTRUSTED,
                reason=verdict.reason,
            )
            for name in names
        )
    return tuple(_in_tree(verdict.project.extensions, verdict.tree))


def settings_of(verdict: Verdict | None) -> ProjectSettings | None:
    """The settings that a trusted project brings along; None where it has none."""
    if verdict is None or verdict.tree is None or verdict.standing is not Standing.TRUSTED:
        return None
    file = verdict.project.settings_file
    there = file.name in verdict.tree.files
    return read_project_settings(file, verdict.tree.read(file.name)) if there else None


def notice(verdict: Verdict | None, prog: Prog = HERMES_EXT) -> str | None:
    """The line that says what of a project is not in force and what to do; None if all is."""
    if verdict is None:
        return None
    if verdict.standing is Standing.TRUSTED:
        told = filter(None, (notice(each, prog) for each in verdict.nearer))
        stay = f"The extensions of {printable(verdict.project.root)} stay in force there"
        return ". ".join([*told, stay]) if verdict.nearer else None
    if verdict.tree is not None and not verdict.tree.files:
        return None
    folder = printable(verdict.project.folder)
    if verdict.standing is Standing.REFUSED:
        return f"project extensions in {folder} are not loaded: {verdict.reason}"
    what = f"are not loaded: {_named(verdict.names)}" if verdict.names else "are not used"
    root = shlex.quote(printable(verdict.project.root))
    return (
        f"project extensions in {folder} {what} ({verdict.reason}). "
        f"To look at them and decide: {prog('trust')} {root}"
    )


def _named(names: Sequence[str]) -> str:
    """Some of the names, and how many there are besides: whoever made the project chose them."""
    shown = [name for name in names if name_fault(name) is None][:_SHOWN]
    more = len(names) - len(shown)
    told = ", ".join(as_name(name, _LONGEST) for name in shown)
    if not more:
        return told
    return f"{told} and {more:,} more" if told else f"{more:,} whose names are none of an extension"


def kept_from(other: Found, *, guard: bool, config: ExtensionsConfig) -> str | None:
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


def replaced_by(project: Found) -> str:
    """The reason of an extension whose place a project's has taken."""
    return f"the project's own of this name is used here: {printable(project.path or '')}"


def _place(verdict: Verdict, name: str) -> Path:
    folder = verdict.project.extensions
    assert verdict.tree is not None
    is_package = f"{EXTENSIONS}/{name}/__init__.py" in verdict.tree.files
    return folder / (name if is_package else f"{name}.py")


def _in_tree(folder: Path, tree: Tree) -> Iterator[Found]:
    inside: dict[str, set[str]] = {}
    for relative in tree.files:
        top, *path = PurePosixPath(relative).parts
        if top == EXTENSIONS and counts(path[0]):
            inside.setdefault(path[0], set()).update(path[1:2])
    for name in sorted(inside):
        found = _found(folder / name, inside[name], tree)
        if found is not None:
            yield well_named(evolve(found, tree=tree), found.name)


def _found(path: Path, files: set[str], tree: Tree) -> Found | None:
    if not files:
        is_module = path.suffix == ".py"
        return Found(path.stem, Source.PROJECT, path, module_file=path) if is_module else None
    if "__init__.py" not in files:
        return no_extension(path, Source.PROJECT, files)
    manifest = None
    if MANIFEST_FILE in files:
        raw = tree.read(f"{EXTENSIONS}/{path.name}/{MANIFEST_FILE}")
        manifest = parse_manifest(path / MANIFEST_FILE, raw)
    return package(path.name, Source.PROJECT, path, manifest)
