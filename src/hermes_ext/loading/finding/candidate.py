"""An extension, or what looks like one, as it was found. None of its code has run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._text import printable
from hermes_ext._values import evolve, field, frozen
from hermes_ext.hooks.source import Source
from hermes_ext.records import Status
from hermes_ext.settings.manifest import Manifest, name_differs
from hermes_ext.settings.names import name_fault

if TYPE_CHECKING:
    from hermes_ext.trust.tree import Tree


@frozen
class Candidate:
    """An extension, or what looks like one.

    name: of its folder, file or entry point, printable. path: folder, or file of a single-file
    extension. module_file: the file that would run first; None where it cannot be told without
    running something. module: what an entry point names, `package.module` or with `:attribute`.
    tree: the verified files that it comes from, None: the disk.
    status: None if it may be loaded, else why not, with the reason. also_at: other places of the
    same extension or name. meant: False for what nobody meant as an extension.
    """

    name: str
    source: Source
    path: Path | None
    module_file: Path | None = None
    module: str | None = None
    version: str | None = None
    manifest: Manifest | None = None
    tree: Tree | None = field(default=None, repr=False, eq=False)
    status: Status | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    also_at: tuple[Path, ...] = ()
    meant: bool = True

    @property
    def is_package(self) -> bool:
        """Whether it is a folder with `__init__.py`."""
        return self.module_file is not None and self.module_file.name == "__init__.py"


def package(
    name: str, source: Source, folder: Path, manifest: Manifest | None, **changes: Any
) -> Candidate:
    """A folder with `__init__.py`; `changes` are fields of it."""
    differs = None if manifest is None else name_differs(manifest, name)
    if differs:
        changes["warnings"] = (differs,)
    file = folder / "__init__.py"
    return Candidate(name, source, folder, module_file=file, manifest=manifest, **changes)


def counts(name: str) -> bool:
    """Whether a file or folder may be an extension, and is not hidden, private or a backup."""
    return not name.startswith((".", "_")) and not name.endswith("~")


def well_named(candidate: Candidate, name: str) -> Candidate:
    """The same, as an error where its name cannot be an extension's."""
    fault = name_fault(name)
    if not fault or candidate.status is Status.NOT_AN_EXTENSION:
        return candidate
    reason = f"{printable(candidate.path or name)} cannot be an extension: {fault}. Rename it"
    return evolve(candidate, name=printable(name), status=Status.LOAD_ERROR, reason=reason)
