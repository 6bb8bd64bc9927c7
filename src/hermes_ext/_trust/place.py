"""Where a project's extensions lie, seen from a session's directory, and whether to look at all.

Nothing is read here. A place that other people may have made (a folder of another owner, a link
that leads out of the project) is found and refused, so that the person is told why.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Literal, TypeAlias

from attrs import frozen

from hermes_ext._hooks.text import printable

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
    """The project that work in `directory` belongs to, None if there is none. Never raises.

    The nearest folder that has extensions or settings, from the directory up to the root of its
    repository; without a repository only the directory itself. Never `/`, a home folder, the
    Hermes home or the global directory of extensions.

    Args:
        directory: where the session works.
        home: the Hermes home.
        global_dir: where the user's own extensions are.
    """
    try:
        start = Path(os.path.realpath(directory))
        root = repository_root(start) or start
    except (OSError, ValueError):  # the working directory is gone, or the path has a NUL
        return None
    for folder in (start, *start.parents):
        if _brings_something(folder / HERMES) and not _is_the_users(folder, home, global_dir):
            return Project(folder, refusal(folder) or _home_fault(Project(folder), home))
        if folder == root:
            break
    return None


def repository_root(directory: Path) -> Path | None:
    """The real path of the nearest folder upwards with a `.git`; None if there is none.

    Never `/` or a home folder: many keep a repository there, and it is nobody's project.
    """
    return _nearest_repository(Path(os.path.realpath(directory)))


def project_of(directory: Path) -> Path | None:
    """The project that a directory is in: the nearest folder upwards with a `.git`, else itself.

    Never `/` or a home folder: many keep a repository there, and it is nobody's project.
    """
    found = _nearest_repository(directory)
    return found or (None if _identity(directory) in _homes() else directory)


def refusal(root: Path) -> str | None:
    """Why what lies in a project is never used, None if it may be: owners, links, kinds."""
    hermes = root / HERMES
    return (
        _fault(hermes, root, "folder")
        or _fault(hermes / EXTENSIONS, root, "folder")
        or _fault(hermes / SETTINGS, root, "regular file")
    )


def _nearest_repository(directory: Path) -> Path | None:
    homes = _homes()
    for folder in (directory, *directory.parents):
        if _identity(folder) in homes:
            return None
        if os.path.exists(folder / ".git"):
            return folder
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
        return os.path.realpath(path)


def _brings_something(hermes: Path) -> bool:
    if not _is_there(hermes):
        return False
    return any(_is_there(hermes / name, closed=True) for name in (EXTENSIONS, SETTINGS))


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
    homes = (home, home.parent.parent) if home.parent.name == "profiles" else (home,)
    hermes = folder / HERMES
    return (
        _identity(folder) in _homes()
        or _identity(hermes) in map(_identity, homes)
        or _identity(hermes / EXTENSIONS) == _identity(global_dir)
    )


def _fault(path: Path, root: Path, kind: _Kind) -> str | None:
    real = Path(os.path.realpath(path))
    link = f"{printable(path)} is a link to {printable(real)}"
    try:
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
        return f"{printable(path)} is no {kind}"
    return _owner_fault(path, {own.st_uid, target.st_uid}) if kind == "folder" else None


def _owner_fault(path: Path, owners: set[int]) -> str | None:
    others = owners - {os.geteuid()} if hasattr(os, "geteuid") else set()
    if not others:
        return None
    return f"{printable(path)} belongs to another user (uid {min(others)})"


def _home_fault(project: Project, home: Path) -> str | None:
    """With the list of trusted projects in the tree, to trust it would change it."""
    if not Path(os.path.realpath(home)).is_relative_to(os.path.realpath(project.extensions)):
        return None
    return f"the Hermes home {printable(home)} lies in {printable(project.extensions)}"
