"""Where a project's extensions lie, seen from a session's directory, and whether to look at all.

Nothing is read here. A place that other people may have made (a folder of another owner, a link
that leads out of the project) is found and refused, so that the person is told why.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from hermes_ext._text import printable
from hermes_ext._values import frozen
from hermes_ext.hosts.default import default_host

HERMES = ".hermes"
EXTENSIONS = "extensions"
SETTINGS = "extensions.yaml"

_Kind: TypeAlias = Literal["folder", "regular file"]


@frozen
class Project:
    """A folder that brings extensions, settings of extensions, or both.

    root: its real path. refused: why nothing in it is ever used here; None if it may be.
    """

    root: Path
    refused: str | None = None

    @property
    def folder(self) -> Path:
        """The `.hermes` folder."""
        return self.root / HERMES

    @property
    def extensions(self) -> Path:
        """The folder of its extensions."""
        return self.folder / EXTENSIONS

    @property
    def settings_file(self) -> Path:
        """Its settings of extensions."""
        return self.folder / SETTINGS


def find_project(directory: Path, *, home: Path, global_dir: Path) -> Project | None:
    """The nearest of `find_projects_at`, None if there is none. Never raises."""
    try:
        start = real_path(directory)
    except (OSError, ValueError):  # the working directory is gone, or the path has a NUL
        return None
    return next(find_projects_at(start, home=home, global_dir=global_dir), None)


def find_projects_at(start: Path, *, home: Path, global_dir: Path) -> Iterator[Project]:
    """The projects that work in a directory may belong to, the nearest first. Never raises.

    The folders that have extensions or settings, from the directory (by its real path) up to the
    root of its repository; without a repository only the directory itself. Never `/`, a home
    folder, the Hermes home or the global directory of extensions.
    """
    root = _nearest_repository(start) or start
    for folder in (start, *start.parents):
        project = project_at(folder, home=home, global_dir=global_dir)
        if project is not None:
            yield project
        if folder == root:
            return


def project_at(
    folder: Path, *, home: Path, global_dir: Path, listed: bool = False
) -> Project | None:
    """The project that a folder, given by its real path, is; None where it is none.

    listed: the user has trusted it, so that it is one even if nothing is left in it.
    """
    if not (listed or _brings_something(folder / HERMES)):
        return None
    if _is_the_users(folder, home, global_dir):
        return None
    return Project(folder, refusal(folder) or _home_fault(Project(folder), home))


def repository_root(directory: Path) -> Path | None:
    """As `project_of`, but None without a repository. Raises OSError: too many links."""
    return _nearest_repository(real_path(directory))


def project_of(directory: Path) -> Path | None:
    """The project that a directory is in: the nearest folder upwards with a `.git`, else itself.

    Never `/` or a home folder: many keep a repository there, and it is nobody's project.
    """
    found = _nearest_repository(directory)
    return found or (None if _identity(directory) in _homes() else directory)


def real_path(path: str | Path, *, strict: bool = False) -> Path:
    """The path without links, of which no more are followed than the system itself follows.

    Raises OSError where it leads through too many; with `strict`, also where it is not there.
    """
    try:
        os.stat(path)  # at most 40 links; Python takes one more call for each, without an end
    except OSError as error:
        if strict or error.errno == errno.ELOOP:
            raise
    try:
        return Path(os.path.realpath(path, strict=strict))
    except RecursionError:  # past what is not there, or it has just changed
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def refusal(root: Path) -> str | None:
    """Why what lies in a project is never used, None if it may be: owners, links, kinds."""
    hermes = root / HERMES
    return (
        _fault(hermes, root, "folder")
        or _fault(hermes / EXTENSIONS, root, "folder")
        or _fault(hermes / SETTINGS, root, "regular file")
    )


def _nearest_repository(directory: Path) -> Path | None:
    passed = []
    for folder in (directory, *directory.parents):
        passed.append(folder)
        if os.path.exists(folder / ".git"):  # first, because most of what is asked has none
            return folder if _homes().isdisjoint(map(_identity, passed)) else None
    return None


def _homes() -> set[Hashable]:
    """The folders that are nobody's project: `/`, and the home by the environment and by right."""
    listed = _home_in_the_database(os.geteuid()) if hasattr(os, "geteuid") else ()
    return {_identity(path) for path in (os.sep, os.path.expanduser("~"), *listed)}


@functools.cache
def _home_in_the_database(user: int) -> tuple[str, ...]:
    # $HOME may be set to anything. Asked once: the database can be on another machine.
    import pwd

    try:
        return (pwd.getpwuid(user).pw_dir,)
    except KeyError:
        return ()


def _identity(path: str | Path) -> Hashable:
    """Equal for two paths of one place: by links, mounts, or another case of the letters."""
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino
    except ValueError:  # a NUL in it
        return str(path)
    except OSError:
        with contextlib.suppress(OSError):
            return str(real_path(path))
        return str(path)


def _brings_something(hermes: Path) -> bool:
    if not _is_there(hermes):
        return False
    return _is_there(hermes / SETTINGS, closed=True) or _holds_something(hermes / EXTENSIONS)


def _holds_something(extensions: Path) -> bool:
    """Whether there is more than bytecode; also what cannot be looked into, or is not a folder."""
    if not _is_there(extensions, closed=True):
        return False
    try:
        with os.scandir(extensions) as entries:
            return any(not _is_bytecode(entry.name) for entry in entries)
    except OSError:
        return True


def _is_bytecode(name: str) -> bool:
    return name == "__pycache__" or name.endswith((".pyc", ".pyo"))


def _is_there(path: Path, *, closed: bool = False) -> bool:
    """closed: the answer where the system does not let us look."""
    try:
        os.lstat(path)
    except OSError as error:
        nothing = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
        return closed and error.errno not in nothing
    return True


def _is_the_users(folder: Path, home: Path, global_dir: Path) -> bool:
    """Whether what lies there is the user's own: the home's, or all projects' extensions."""
    # A profile is a home inside of another: `.hermes/profiles/NAME`.
    profiles = default_host().layout.profiles
    homes = (home, home.parent.parent) if home.parent.name == profiles else (home,)
    hermes = folder / HERMES
    return (
        _identity(folder) in _homes()
        or _identity(hermes) in map(_identity, homes)
        or _identity(hermes / EXTENSIONS) == _identity(global_dir)
    )


def _fault(path: Path, root: Path, kind: _Kind) -> str | None:
    link = f"{printable(path)} is a link"
    try:
        real = real_path(path)
        link = f"{link} to {printable(real)}"
        own = os.lstat(path)
        target = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"{link}, which is not there" if os.path.islink(path) else None
    except OSError as error:
        return f"{printable(path)} cannot be looked at: {error.strerror or error}"
    if not real.is_relative_to(root):
        return f"{link}, which is outside of the project"
    is_right = stat.S_ISDIR if kind == "folder" else stat.S_ISREG
    if not is_right(target.st_mode):
        return f"{printable(path)} is not a {kind}"
    return _owner_fault(path, {own.st_uid, target.st_uid}) if kind == "folder" else None


def _owner_fault(path: Path, owners: set[int]) -> str | None:
    others = owners - {os.geteuid()} if hasattr(os, "geteuid") else set()
    if not others:
        return None
    return f"{printable(path)} belongs to another user (uid {min(others)})"


def _home_fault(project: Project, home: Path) -> str | None:
    """With the list of trusted projects in the tree, to trust it would change it."""
    try:
        inside = real_path(home).is_relative_to(real_path(project.extensions))
    except OSError as error:
        return f"{printable(home)} cannot be looked at: {error.strerror or error}"
    if not inside:
        return None
    return f"the Hermes home {printable(home)} lies in {printable(project.extensions)}"
