"""`trust`: lets the extensions of a project run, exactly as they are now.

What is recorded is the very tree that was shown; nothing of it runs.
"""

from __future__ import annotations

import math
import os
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._options import add
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result, not_in_force
from hermes_ext.cli._trust_pages import trust as page
from hermes_ext.cli._values import digest
from hermes_ext.exceptions import ConfigError, HermesExtError
from hermes_ext.hooks.source import Source
from hermes_ext.loading.inventory import inventory
from hermes_ext.records import Status
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.project_settings import ProjectSettings, read_project_settings
from hermes_ext.trust.diff import FileChange, changes
from hermes_ext.trust.place import HERMES, Project, find_project, real_path, repository_root
from hermes_ext.trust.possible_projects import Listed, possible_projects
from hermes_ext.trust.store import PIN, Entry, Standing, TrustStore, judge, listed_paths, pins
from hermes_ext.trust.tree import Tree, read_tree
from hermes_ext.trust.walk import TreeError

_HAS = (
    f"A project has {HERMES}/extensions or {HERMES}/extensions.yaml; the home folder and the"
    " Hermes home are none"
)

_DIFF_SECONDS = 5.0
_HURRIED = (
    f"to compare all files takes longer than {_DIFF_SECONDS:g} s: in some, lines that stayed are"
    " shown as removed and added; --full takes the time"
)
_UNSEEN = (
    "nothing was recorded: a person is asked only where input and output are both a terminal."
    " Run it in a terminal without a pipe, or add --yes"
)

__all__ = ["arguments", "page", "untrust", "work"]


def arguments(command: ArgumentParser) -> None:
    _options.path(command, "a folder of the project")
    add(command, "-y --yes", "do not ask, even in a terminal")
    add(command, "--full", "cut nothing; of a project that was never trusted, show all files")
    add(command, "--expect DIGEST", "record it only if this is its digest", type=digest)
    only = command.add_mutually_exclusive_group()
    for look, told in (
        ("diff", "only show it; exit code 0 if it is trusted as it is, else 1"),
        ("digest", "only print the digest, for HERMES_EXT_TRUST"),
        ("list", "only list the projects that are trusted"),
    ):
        add(only, f"--{look}", told, action="store_const", const=look, dest="look")


def work(request: Request) -> Result:
    """Shows a project's extensions as they are now, and records that exactly these may run."""
    if request.look == "list":
        return _all_trusted(request)
    config = read_config(request.home)
    project = _project(request, config)
    tree = _read(project)
    if request.expect not in (None, tree.digest):
        raise HermesExtError(
            f"nothing was recorded: the digest is {tree.digest}, not {request.expect} as expected",
            path=project.folder,
            hint=f"Look at it: {request.prog('trust --diff', project.root)}",
        )
    if request.look == "digest":
        return Result(0, {"root": printable(project.root), "digest": tree.digest})
    store = TrustStore(request.home)
    payload = _shown(request, store, project, tree)
    if not config.project_local:
        payload["notes"].append(_never_looked_for(config))
    if request.look == "diff":
        return Result(0 if payload["trusted"] else 1, payload)
    if payload["was"] == Standing.TRUSTED:
        return Result(0, payload)
    if not _is_wanted(request, payload):
        return Result(1, payload)
    entry = store.trust(tree)
    payload |= {"trusted": True, "recorded": True, "since": entry.at}
    payload["notes"] += _what_is_not_used(request, project)
    return Result(0, payload)


def _is_wanted(request: Request, payload: dict[str, Any]) -> bool:
    if request.unseen:
        payload["notes"].append(_UNSEEN)
        return False
    if request.ask is None:
        return True
    payload["asked"] = True
    return request.ask(payload)


def untrust(request: Request) -> Result:
    """Takes a project out of what is trusted; its folder may be gone."""
    store = TrustStore(request.home)
    root, entry = _trusted_at(request, store.entries())
    removed = None if entry is None else store.untrust(entry.path)
    payload: dict[str, Any] = {"root": printable(root), "removed": removed is not None}
    payload |= {"digest": None, "since": None, "names": [], "notes": []}
    if removed is not None:
        payload |= {"root": printable(removed.path), "digest": removed.digest}
        payload |= {"since": removed.at, "names": [*removed.names]}
        if removed.digest in pins():
            payload["notes"] += [f"${PIN} names its digest: where that is set, it stays trusted"]
    return Result(0 if removed is not None else 1, payload)


# -- which project --------------------------------------------------------------------------------


def _project(request: Request, config: ExtensionsConfig) -> Project:
    named = request.directory().expanduser()
    if not os.path.lexists(named):
        raise HermesExtError("there is no such folder", path=named)
    here = _real(named)
    here = here if here.is_dir() else here.parent
    for folder in (here, _holder(here)):
        project = find_project(folder, home=request.home, global_dir=config.global_dir)
        if project is not None and project.refused:
            raise HermesExtError(f"nothing of this project can be trusted: {project.refused}")
        if project is not None:
            return project
    above = _trusted_above(here, request, config)
    if above is not None:
        return above
    raise _no_project(here, request, config)


def _trusted_above(here: Path, request: Request, config: ExtensionsConfig) -> Project | None:
    """The nearest project that was trusted before and applies here, whatever lies in between."""
    listed = Listed.now(request.home)
    found = possible_projects(here, listed, home=request.home, global_dir=config.global_dir)
    return next((each.project for each in found if each.listed and not each.project.refused), None)


def _real(path: Path) -> Path:
    try:
        return real_path(path)
    except OSError as error:
        raise HermesExtError(
            f"it cannot be looked at: {error.strerror or error}", path=path
        ) from None


def _holder(path: Path) -> Path:
    """The folder whose `.hermes` a path is in, else the path itself."""
    inside = (each for each in (path, *path.parents) if each.name == HERMES)
    return next((each.parent for each in inside), path)


def _no_project(here: Path, request: Request, config: ExtensionsConfig) -> HermesExtError:
    told = f"there is no project with extensions at {printable(here)}"
    root = repository_root(here)
    if root is not None:
        return HermesExtError(f"{told}, nor above it up to {printable(root)}", hint=_HAS)
    for folder in here.parents:
        above = find_project(folder, home=request.home, global_dir=config.global_dir)
        if above is not None:
            return HermesExtError(
                f"{told}: it is in no git repository, so that folders above it do not count",
                hint=f"There is one above: {request.prog('trust', above.root)}",
            )
    return HermesExtError(told, hint=_HAS)


def _read(project: Project) -> Tree:
    with patience(f"Reading {project.folder}"):
        try:
            return read_tree(project)
        except TreeError as error:
            raise HermesExtError(f"nothing of this project can be trusted: {error}") from error


def _trusted_at(request: Request, entries: Iterable[Entry]) -> tuple[Path, Entry | None]:
    """The entry of the project that a path is in, as far as the path still tells."""
    by_path = {entry.path: entry for entry in entries}
    here = _real(request.directory().expanduser())
    global_dir = read_config(request.home).global_dir
    project = find_project(here, home=request.home, global_dir=global_dir)
    if project is not None:
        places: tuple[Path, ...] = (here, project.root)
    else:  # the folder, or what made a project of it, is gone
        places = (here, _holder(here), *here.parents)
    return places[0], next((by_path[place] for place in places if place in by_path), None)


# -- what is shown --------------------------------------------------------------------------------


def _shown(request: Request, store: TrustStore, project: Project, tree: Tree) -> dict[str, Any]:
    notes: list[str] = []
    try:
        entries = store.entries()
    except ConfigError as error:  # `trust` itself refuses, or begins anew
        entries = ()
        notes.append(printable(str(error)))
    entry = next((each for each in entries if each.path == tree.root), None)
    same = entry is not None and entry.digest == tree.digest
    was = Standing.TRUSTED if same else Standing.CHANGED if entry else Standing.UNTRUSTED
    pinned = tree.digest in pins()
    settings = _settings(project, tree)
    found = _changes(request, store, None if same else entry, tree)
    if found is not None and not all(change.matched for change in found):
        notes.append(_HURRIED)
    return {
        "root": printable(project.root),
        "folder": printable(project.folder),
        "digest": tree.digest,
        "was": str(was),
        "trusted": same or pinned,
        "pinned": pinned,
        "recorded": False,
        "asked": False,
        "since": None if entry is None else entry.at,
        "names": [*map(printable, tree.names())],
        "files": [
            {"path": printable(path), "size": file.size, "sha256": file.sha256}
            for path, file in sorted(tree.files.items())
        ],
        "size": sum(file.size for file in tree.files.values()),
        "settings": [*_leaves(settings)],
        "problems": [problem.to_json() for problem in settings.problems],
        "changes": None
        if found is None
        else [{"path": printable(e.path), "kind": e.kind, "diff": e.diff} for e in found],
        "same_content_at": [
            printable(each.path)
            for each in entries
            if each.digest == tree.digest and each.path != tree.root
        ],
        "notes": notes,
    }


def _changes(
    request: Request, store: TrustStore, entry: Entry | None, tree: Tree
) -> tuple[FileChange, ...] | None:
    """What differs from what was trusted; None where that is not known, or nothing was."""
    if entry is not None:
        kept = store.copy(entry.digest)
        seconds = math.inf if request.full else _DIFF_SECONDS
        return None if kept is None else changes(kept, tree, seconds=seconds)
    return changes({}, tree) if request.full else None


def _settings(project: Project, tree: Tree) -> ProjectSettings:
    file = project.settings_file
    there = file.name in tree.files
    return read_project_settings(file, tree.read(file.name) if there else None)


def _leaves(settings: ProjectSettings) -> Iterator[dict[str, Any]]:
    for name, values in settings.settings.items():
        for path, value in _leaves_of(values, ()):
            yield {
                "key": printable(".".join((name, *path))),
                "value": value,
                "line": settings.line_of(name, *path),
            }


def _leaves_of(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves_of(below, (*path, str(key)))
    else:
        yield path, value


# -- what follows ---------------------------------------------------------------------------------


def _never_looked_for(config: ExtensionsConfig) -> str:
    place = f"{printable(config.file)}:{config.line_of('project_local')}"
    return f"projects are not looked for, trusted or not: {place}: project_local is false"


def _what_is_not_used(request: Request, project: Project) -> list[str]:
    """What still does not come into force, though it is trusted now, and why."""
    off = not_in_force(request)
    return [
        *(
            f"{record.name} is {record.status}: {record.reason}"
            for record in inventory(request.home, project.root).records
            if record.source is Source.PROJECT and record.status is not Status.ENABLED
        ),
        *([f"not in force: {off}"] if off else []),
    ]


def _all_trusted(request: Request) -> Result:
    config = read_config(request.home)
    with patience("Reading the trusted projects"):
        rows = [_trusted(request, config, entry) for entry in TrustStore(request.home).entries()]
    return Result(0, {"projects": rows, "pins": sorted(pins())})


def _trusted(request: Request, config: ExtensionsConfig, entry: Entry) -> dict[str, Any]:
    standing, reason = _still(request, config, entry)
    return {
        "root": printable(entry.path),
        "digest": entry.digest,
        "since": entry.at,
        "names": list(entry.names),
        "standing": standing,
        "reason": reason,
    }


def _still(request: Request, config: ExtensionsConfig, entry: Entry) -> tuple[str, str]:
    if not entry.path.is_dir():
        return "gone", "the folder is no longer there"
    project = find_project(entry.path, home=request.home, global_dir=config.global_dir)
    if project is None or project.root != entry.path:
        return "gone", f"it has no {HERMES}/extensions any more"
    verdict = judge(project, request.home)
    if verdict.is_trusted and verdict.changed:
        return str(verdict.standing), f"new data since then: {listed_paths(verdict.changed)}"
    return str(verdict.standing), printable(verdict.reason)
