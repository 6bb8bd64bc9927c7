"""Finding extensions. No code of an extension runs here, and one that is broken hides no other.

    bundled with the package   off until `extensions.on` names them
    entry points               off until `extensions.on` names them
    global directory           on, unless `extensions.disabled` names them
    project's directory        the same, where the project is trusted

Of several with one name (or of one code under several names) the last in this order is used, in
one directory a folder before a file; the others are records that say which one is used.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._regular import check_readable, kind_of
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import evolve, frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate, counts, package, well_named
from hermes_ext.loading.finding.known_manifests import KnownManifests
from hermes_ext.loading.finding.not_extensions import (
    is_kind,
    is_minor,
    listed,
    minor,
    no_extension,
    other_file,
    special,
    uncounted,
)
from hermes_ext.loading.finding.projects import NO_PROJECTS, ProjectStack, found_in, projects_at
from hermes_ext.loading.finding.snapshot import stamp_of
from hermes_ext.loading.finding.writers import writable_by_others
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import OFF_SWITCH, ExtensionsConfig, switched_off
from hermes_ext.settings.manifest import MANIFEST_FILE, incompatibility, read_manifest
from hermes_ext.settings.names import RESERVED_KEYS, name_fault
from hermes_ext.trust.store import TrustStore, Verdict

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from hermes_ext._distributions import Offered
    from hermes_ext.settings.project_settings import ProjectSettings

ENTRY_POINT_GROUP = "hermes_ext.extensions"

SAME_CODE = "the same code"

OFF_IN_VAIN = "extensions.disabled turns off its"

OFF_UNTIL_NAMED = frozenset({Source.BUNDLED, Source.ENTRY_POINT})


@frozen
class Discovery:
    """All that was found, by rank of source and then name, and what is wrong with the places.

    projects: what is to be thought of the projects that were looked into. writable: which of the
    user's own extensions others can change.
    """

    found: tuple[Candidate, ...]
    problems: tuple[Problem, ...] = ()
    projects: ProjectStack = NO_PROJECTS
    writable: tuple[Problem, ...] = ()


@frozen
class Standing:
    """Whether an extension is to be loaded: `status` None, else why not."""

    configured_on: bool
    status: Status | None = None
    reason: str = ""


def discover(
    config: ExtensionsConfig, *, home: Path, cwd: Path | None = None, entry_points: bool = True
) -> Discovery:
    """Find the extensions of all sources, whether on or off.

    home, cwd: the Hermes home and the session's directory. entry_points: False skips the
    installed distributions, of which there may be hundreds to look through.
    """
    root = bundled_dir()
    known = KnownManifests(home, root)
    in_home, problems = _global(config, home, known)
    bundled = () if root is None else tuple(_bundled(root, known))
    if in_home or any(config.is_on(each.name) for each in bundled):
        known.save()  # not in a home where nothing is on: it stays as it is
    candidates = [*bundled, *in_home]
    if entry_points:
        from hermes_ext._distributions import installed_points

        installed = installed_points(ENTRY_POINT_GROUP)
        candidates += map(_entry_point, installed.points)
        problems += installed.problems
    stack = projects_at(config, home, cwd)
    # Whether one of a project takes another's place is known only when it has been loaded.
    in_projects = (found for verdict in stack.shown for found in project_found(verdict))
    found = sorted([*_resolved(candidates), *in_projects], key=_order)
    writable = writable_by_others(home, config.file, config.global_dir, in_home)
    return Discovery(tuple(found), tuple(problems), stack, writable)


def found_at(path: Path, home: Path) -> Candidate | None:
    """The extension in a folder or file wherever it lies, as one of the global directory.

    None where nothing there is an extension. Raises OSError where it cannot be read.
    """
    if path.is_dir():
        return well_named(_folder(path, KnownManifests(home)), path.name)
    if path.suffix != ".py" or not path.is_file():
        return None
    return well_named(Candidate(path.stem, Source.GLOBAL, path, module_file=path), path.stem)


def project_found(verdict: Verdict) -> tuple[Candidate, ...]:
    """The extensions of a project, each name once, and what else is in its folder."""
    found = found_in(verdict)
    return tuple(sorted(_resolved([*found, *_left_over(verdict, found)]), key=_order))


def minor_entries(config: ExtensionsConfig, stack: ProjectStack) -> tuple[Candidate, ...]:
    """What is expected beside extensions: hidden files, `__pycache__`, README and the like."""
    in_projects = ((each.project.extensions, Source.PROJECT) for each in stack.shown)
    places = [(config.global_dir, Source.GLOBAL), *in_projects]
    rows = [
        minor(Path(entry.path), source)
        for folder, source in places
        for entry in listed(folder)
        if is_minor(entry)
    ]
    return tuple(sorted(rows, key=_order))


def bundled_dir() -> Path | None:
    """The folder of the extensions that come with the package, None if it has none."""
    here = Path(__file__).resolve().parents[2]
    installed, checkout = here / "bundled", here.parents[1] / "extensions"
    if installed.is_dir():
        return installed
    # An editable installation runs from a checkout; elsewhere that folder is somebody else's.
    return checkout if here.parent.name == "src" and checkout.is_dir() else None


def standing(candidate: Candidate, config: ExtensionsConfig) -> Standing:
    """Whether the configuration, the manifest and the versions here let it be loaded."""
    off = _turned_off(candidate, config)
    if candidate.status is Status.SHADOWED:
        return Standing(False, candidate.status, candidate.reason)
    if off:
        return Standing(False, Status.DISABLED, off)
    if candidate.status is not None:
        return Standing(candidate.meant, candidate.status, candidate.reason)
    manifest = candidate.manifest
    if manifest is not None and manifest.problems:
        return Standing(True, Status.LOAD_ERROR, "; ".join(map(str, manifest.problems)))
    lacking = None if manifest is None else incompatibility(manifest)
    return Standing(True, Status.INCOMPATIBLE, lacking) if lacking else Standing(True)


def record_of(candidate: Candidate, config: ExtensionsConfig, **changes: Any) -> ExtensionRecord:
    """The record of an extension; `changes` are fields of it, `status` among them."""
    manifest = candidate.manifest
    values: dict[str, Any] = {
        "version": (manifest and manifest.version) or candidate.version,
        "description": manifest and manifest.description,
        "required": config.is_required(candidate.name),
        "hooks_off": tuple(sorted(config.hooks_off(candidate.name))),
        "also_at": candidate.also_at,
    }
    warnings = (*candidate.warnings, *changes.pop("warnings", ()))
    return ExtensionRecord(
        candidate.name,
        candidate.source,
        path=candidate.path,
        warnings=warnings,
        **values,
        **changes,
    )


def load_stamp(candidate: Candidate, config: ExtensionsConfig, status: Status) -> int:
    """Tells whether what loading ended in `status` for has changed since."""
    tree = candidate.tree
    stamp = stamp_of(candidate.module_file) if tree is None else zlib.crc32(tree.digest.encode())
    if status is Status.ENABLED:
        return stamp
    schema = None if candidate.manifest is None else candidate.manifest.config
    hooks = sorted(config.hooks_off(candidate.name))
    told = (config.settings_of(candidate.name), schema, config.is_required(candidate.name), hooks)
    return stamp ^ zlib.crc32(repr(told).encode("utf-8", "backslashreplace"))


def off_in_vain(config: ExtensionsConfig, name: str, registered: Set[str]) -> tuple[str, ...]:
    """Warnings for hooks that are turned off and that the extension does not have."""
    return tuple(
        f"{OFF_IN_VAIN} {hook}, which it does not register"
        for hook in sorted(config.hooks_off(name) - registered)
    )


def problems_of(
    config: ExtensionsConfig,
    home: Path,
    discovery: Discovery,
    found: Sequence[Candidate],
    settings: Collection[ProjectSettings],
) -> tuple[tuple[Problem, ...], tuple[ExtensionRecord, ...]]:
    """All that is wrong before anything runs, and a record of each extension that is nowhere.

    settings: those of the projects that apply.
    """
    unknown, missing = unknown_names(config, found, trusted_names(home), discovery.problems)
    names = [each.name for each in found]
    manifests = [each.manifest for each in found if each.manifest is not None]
    told = (
        *config.problems,
        *discovery.problems,
        *discovery.writable,
        *(problem for each in manifests for problem in (*each.problems, *each.warnings)),
        *unknown,
        *(problem for each in settings for problem in each.problems),
        *(problem for each in settings for problem in each.unknown(names)),
    )
    return told, missing


def unknown_names(
    config: ExtensionsConfig,
    found: Iterable[Candidate],
    elsewhere: Iterable[str],
    unseen: Iterable[Problem],
) -> tuple[tuple[Problem, ...], tuple[ExtensionRecord, ...]]:
    """Problems for names that are nowhere, and a record for each that should be somewhere.

    elsewhere: names that other projects have, which are no mistake here. unseen: places that
    could not be searched.
    """
    found = tuple(found)
    known = {canonical_name(each.name): each.name for each in found}
    untrusted = {canonical_name(e.name) for e in found if e.status is Status.UNTRUSTED}
    in_force = {canonical_name(e.name) for e in found if e.status is not Status.UNTRUSTED}
    in_projects = set(map(canonical_name, elsewhere))
    problems: list[Problem] = []
    missing: dict[str, ExtensionRecord] = {}
    for key, name in named_in(config):
        # A name that only an untrusted project has is none that is turned on or observed.
        meant = in_force | (untrusted if key not in {"on", "observe"} else set())
        if canonical_name(name) in meant:
            continue
        if canonical_name(name) in in_projects and key not in {"on", "required"}:
            continue
        problem = _unknown(config, key, name, known.values(), _clues(name, found, unseen))
        problems.append(problem)
        if key in {"on", "disabled", "required", "observe"}:
            missing.setdefault(canonical_name(name), _missing(config, name, problem))
    return tuple(problems), tuple(missing.values())


def trusted_names(home: Path) -> tuple[str, ...]:
    """The names of the extensions in all projects that the user trusts."""
    try:
        return tuple(name for entry in TrustStore(home).entries() for name in entry.names)
    except ConfigError:  # told where a project is judged
        return ()


def named_in(config: ExtensionsConfig) -> Iterator[tuple[str, str]]:
    """(key, name) of every extension that the section names; "" is the key of settings."""
    for key in ("on", "required", "disabled", "observe", "overridable"):
        yield from ((key, name) for name in getattr(config, key))
    yield from (("disabled", name) for name in config.disabled_hooks)
    yield from (("priorities", name.partition(":")[0]) for name in config.priorities)
    yield from (("project_may_set", entry.partition(".")[0]) for entry in config.project_may_set)
    yield from (("", name) for name in config.settings)


def _clues(name: str, found: Iterable[Candidate], unseen: Iterable[Problem]) -> Iterator[str]:
    """What may be the reason that an extension is nowhere."""
    for each in found:
        if each.status is Status.NOT_AN_EXTENSION and each.path is not None:
            stem = each.path.name.strip("_").partition(".")[0]
            if canonical_name(stem.removesuffix("~")) == canonical_name(name):
                yield each.reason
    yield from map(str, unseen)


def _unknown(
    config: ExtensionsConfig, key: str, name: str, known: Iterable[str], clues: Iterable[str]
) -> Problem:
    if key:
        line = config.line_of_name(key, name)
        told = f'names "{name}", and no extension of that name is installed'
        hint = did_you_mean(name, known)
    else:
        line = config.line_of(name)
        told = "is neither a key of the section nor the name of an installed extension"
        hint = did_you_mean(name, (*RESERVED_KEYS, *known))
    looked = (
        f"Looked among the bundled ones, the entry points and in {printable(config.global_dir)}"
    )
    hints = [f"{hint} {looked}" if hint else looked, *clues]
    return Problem(config.file, line, f"extensions.{key or name}", told, ". ".join(hints))


def _missing(config: ExtensionsConfig, name: str, problem: Problem) -> ExtensionRecord:
    on, required = not config.is_disabled(name), config.is_required(name)
    return ExtensionRecord(
        printable(name), None, Status.MISSING, str(problem), configured_on=on, required=required
    )


def _turned_off(candidate: Candidate, config: ExtensionsConfig) -> str:
    if switched_off():
        return f"everything is off: ${OFF_SWITCH} is set"
    if not config.enabled:
        place = f"{printable(config.file)}:{config.line_of('enabled')}"
        return f"everything is off: {place}: extensions.enabled is false"
    if config.is_disabled(candidate.name):
        line = config.line_of_name("disabled", candidate.name)
        return f"{printable(config.file)}:{line}: extensions.disabled names it"
    if candidate.source in OFF_UNTIL_NAMED and not config.is_on(candidate.name):
        kind = "bundled" if candidate.source is Source.BUNDLED else "installed"
        return f"not on: {kind} extensions are off until extensions.on names them"
    return ""


def _order(candidate: Candidate) -> tuple[int, str, str]:
    return candidate.source.rank, candidate.name, printable(candidate.path or "")


def _resolved(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    winners: dict[str, Candidate] = {}
    losers: list[Candidate] = []
    places: dict[str, str] = {}
    folders: dict[str, str] = {}
    for each in sorted(candidates, key=_precedence):
        if each.status is Status.NOT_AN_EXTENSION:  # it takes nobody's name
            losers.append(each)
            continue
        name, place = canonical_name(each.name), _real(each, folders)
        winner = places.get(place, name if name in winners else "")
        if not winner:
            winners[name] = each
            places[place] = name
            continue
        chosen = winners[winner]
        losers.append(evolve(each, status=Status.SHADOWED, reason=_why_not(each, chosen, place)))
        winners[winner] = _with_other_place(chosen, each)
    yield from (*winners.values(), *losers)


def _precedence(candidate: Candidate) -> tuple[int, bool]:
    is_file = candidate.module_file is not None and not candidate.is_package
    return -candidate.source.rank, is_file


def _why_not(loser: Candidate, winner: Candidate, place: str) -> str:
    same = SAME_CODE if _real(winner, {}) == place else "an extension of the same name"
    where = printable(winner.path or winner.module or "")
    return f"{same} is used as {winner.source} extension {winner.name!r}: {where}"


def _with_other_place(winner: Candidate, loser: Candidate) -> Candidate:
    if loser.path is None:
        return winner
    warnings = winner.warnings
    if loser.source is winner.source and _real(loser, {}) != _real(winner, {}):
        told = f"{printable(loser.path)} has the same name and is not used"
        warnings = (*warnings, told)
    return evolve(winner, also_at=(*winner.also_at, loser.path), warnings=warnings)


def _real(candidate: Candidate, folders: dict[str, str]) -> str:
    """The place without links; folders: those of folders that are known already."""
    place = candidate.module_file or candidate.path
    if place is None:
        return f"module {candidate.module}"
    return _without_links(str(place), folders)


def _without_links(place: str, folders: dict[str, str]) -> str:
    """As `os.path.realpath`, which looks at every folder above for each file anew."""
    folder, name = os.path.split(place)
    if not folder or name in ("", "..") or os.path.islink(place):
        return os.path.realpath(place)
    if folder not in folders:
        folders[folder] = _without_links(folder, folders)
    return os.path.join(folders[folder], name)


def _bundled(root: Path, known: KnownManifests) -> Iterator[Candidate]:
    for folder in sorted(root.iterdir()):
        if not folder.name.startswith((".", "_")) and (folder / "__init__.py").is_file():
            yield package(folder.name, Source.BUNDLED, folder, known.read(folder))


def _global(
    config: ExtensionsConfig, home: Path, known: KnownManifests
) -> tuple[list[Candidate], list[Problem]]:
    root = config.global_dir
    try:
        with os.scandir(root) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        usual = {home / "extensions", Path(os.path.expanduser("~/.hermes/extensions"))}
        expected = not config.global_dir_given or root in usual
        is_link = os.path.islink(root)
        return [], [] if expected and not is_link else [_root_problem(config, error)]
    except OSError as error:
        return [], [_root_problem(config, error)]
    return [_entry(entry, known) for entry in found if not is_minor(entry)], []


def _root_problem(config: ExtensionsConfig, error: OSError) -> Problem:
    told = f"{printable(config.global_dir)} cannot be read: {_root_fault(config.global_dir, error)}"
    line = config.line_of("global_dir") if config.global_dir_given else None
    hint = "No extension of it is in force. Make it a folder that you can read, or remove it"
    return Problem(config.file, line, "extensions.global_dir", told, hint)


def _root_fault(root: Path, error: OSError) -> str:
    """Why a folder cannot be listed."""
    if isinstance(error, FileNotFoundError) and root.is_symlink():
        return f"it is a link to {printable(os.readlink(root))}, which is not there"
    if isinstance(error, NotADirectoryError) and root.exists():
        return f"it is {kind_of(root.stat().st_mode)}, not a folder"
    return str(error.strerror or error)


def _entry(entry: os.DirEntry[str], known: KnownManifests) -> Candidate:
    path = Path(entry.path)
    name = path.stem if path.suffix == ".py" else path.name
    try:
        found = _classified(name, path, entry.stat().st_mode, known)
    except OSError as error:
        reason = _unreadable(Path(error.filename or path), error)
        return Candidate(
            printable(name), Source.GLOBAL, path, status=Status.LOAD_ERROR, reason=reason
        )
    return well_named(found, name)


def _unreadable(path: Path, error: OSError) -> str:
    if path.is_symlink() and isinstance(error, FileNotFoundError):
        return f"{printable(path)} is a link to {printable(os.readlink(path))}, which is not there"
    return f"{printable(path)} cannot be read: {error.strerror or error}"


def _classified(name: str, path: Path, mode: int, known: KnownManifests) -> Candidate:
    if not counts(path.name):
        return uncounted(path, Source.GLOBAL)
    if stat.S_ISDIR(mode):
        return _folder(path, known)
    if not stat.S_ISREG(mode):
        return special(path, Source.GLOBAL, mode)
    if path.suffix != ".py":
        return other_file(path, Source.GLOBAL)
    check_readable(path)
    return Candidate(name, Source.GLOBAL, path, module_file=path)


def _folder(folder: Path, known: KnownManifests) -> Candidate:
    with os.scandir(folder) as entries:  # unlike is_file(), this tells a folder that is closed
        names = {entry.name for entry in entries}
    if "__init__.py" in names:
        check_readable(os.path.join(folder, "__init__.py"))
        return package(folder.name, Source.GLOBAL, folder, known.read(folder))
    return no_extension(folder, Source.GLOBAL, names)


def _left_over(verdict: Verdict, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """What is in a project's folder and not in its tree, or no extension by its name."""
    if verdict.tree is None:
        return
    known = {each.path for each in found}
    for entry in listed(verdict.project.extensions):
        path = Path(entry.path)
        if path in known or is_minor(entry):
            continue
        row = _not_in_tree(path, entry)
        if not verdict.is_trusted:
            row = evolve(row, status=Status.UNTRUSTED, reason=verdict.reason)
        yield row


def _not_in_tree(path: Path, entry: os.DirEntry[str]) -> Candidate:
    if not counts(path.name):
        return uncounted(path, Source.PROJECT)
    if is_kind(entry, stat.S_ISDIR):
        return no_extension(path, Source.PROJECT, (each.name for each in listed(path)))
    if path.suffix != ".py":
        return other_file(path, Source.PROJECT)
    reason = f"{printable(path)} was added after the project was read. Start again to check it"
    return Candidate(path.stem, Source.PROJECT, path, status=Status.UNTRUSTED, reason=reason)


def _entry_point(offered: Offered) -> Candidate:
    point = offered.point
    told: dict[str, Any] = {"module": point.value}
    fault = name_fault(point.name)
    if fault:
        reason = f"the entry point {point.name!r} cannot be an extension: {fault}"
        told |= {"status": Status.LOAD_ERROR, "reason": reason}
        return Candidate(printable(point.name), Source.ENTRY_POINT, None, **told)
    spec = _spec(point.value.partition(":")[0].strip())
    file = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    told["version"] = offered.version
    if file is not None and file.name == "__init__.py":
        folder = file.parent
        return package(point.name, Source.ENTRY_POINT, folder, read_manifest(folder), **told)
    if spec is None:
        reason = f"the entry point names {point.value!r}, and there is no such module"
        told |= {"status": Status.LOAD_ERROR, "reason": reason}
    return Candidate(point.name, Source.ENTRY_POINT, file, module_file=file, **told)


def _spec(module: str) -> ModuleSpec | None:
    """The spec of a module, without importing its parents as importlib.util.find_spec would."""
    import importlib.machinery
    import importlib.util

    name, _, rest = module.partition(".")
    try:
        spec = importlib.util.find_spec(name)
        while spec is not None and rest:
            below, _, rest = rest.partition(".")
            name = f"{name}.{below}"
            places = spec.submodule_search_locations
            if places is None:  # no package; PathFinder would look all over sys.path
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, places)
    except (ImportError, ValueError, AttributeError):
        # ValueError: a module without a spec; the others come from finders of other people.
        return None
    return spec


def fault_status(problems: Sequence[Problem], config: ExtensionsConfig) -> Status:
    """What an extension is whose settings have these problems: the user's fault, or its own."""
    own = problems[0].file.name == MANIFEST_FILE and problems[0].file != config.file
    return Status.LOAD_ERROR if own else Status.CONFIG_ERROR
