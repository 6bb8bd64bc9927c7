"""What lies in an extensions folder and is not an extension: why not, and what to do.

Nothing here opens a file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from hermes_ext._regular import kind_of
from hermes_ext._text import printable
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.records import Status

_DEPTH: Final = 3  # folders below an entry that are searched for the extension itself
_ENTRIES: Final = 500
_NOT_SEARCHED: Final = frozenset({"tests", "test", "docs", "node_modules"})
_BYTECODE: Final = (".pyc", ".pyo")
_NATIVE: Final = (".so", ".pyd", ".dylib", ".dll")
_MISNAMED: Final = r"(?i)(.+)\.py([wx]|\.txt|)"  # `.PY` is not found either
_ARCHIVES: Final = (".zip", ".whl", ".egg", ".tar", ".gz", ".tgz")
_PROJECT_FILES: Final = frozenset({"extension.yaml", "pyproject.toml", "setup.py"})
_DOCUMENT: Final = r"(?i)(readme|licen[cs]e|changelog)(\W|$)"
_SUFFIX: Final = "only .py files and folders are extensions"


def is_minor(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is expected beside extensions, so that only `list --all` shows it.

    Hidden entries, `__pycache__`, and documents called README, LICENSE or CHANGELOG.
    """
    name = entry.name
    if name.startswith("."):
        return True
    if name == "__pycache__":
        return is_kind(entry, stat.S_ISDIR)
    code = name.lower().endswith((".py", *_BYTECODE, *_NATIVE))
    return bool(re.match(_DOCUMENT, name)) and not code and is_kind(entry, stat.S_ISREG)


def minor(path: Path, source: Source) -> Candidate:
    """The row of an entry that `is_minor`."""
    if path.name == "__pycache__":
        return _row(path, source, "it is Python's cache", meant=False)
    if path.name.startswith("."):
        return _row(path, source, "its name begins with a dot, so it is hidden", meant=False)
    return _row(path, source, "it is a document", meant=False)


def uncounted(path: Path, source: Source) -> Candidate:
    """The row of an entry whose name says that it is private or a backup."""
    if path.name == "__init__.py":
        why = f"the folder {printable(path.parent)} is not a package. Put the code in a folder"
        return _row(path, source, f"{why} of {printable(path.parent)}", meant=True)
    if path.name.endswith("~"):
        return _row(path, source, "a name that ends with ~ is a backup's. Rename it", meant=False)
    why = "a name that begins with an underscore is private. Rename it if it is an extension"
    return _row(path, source, why, meant=False)


def special(path: Path, source: Source, mode: int) -> Candidate:
    """The row of a pipe, a socket or a device."""
    kind = kind_of(mode)
    return _row(path, source, f"it is {kind}, not a file or folder. Remove it", meant=True)


def other_file(path: Path, source: Source) -> Candidate:
    """The row of a regular file that is not called NAME.py."""
    lower = path.name.lower()
    if lower.endswith(_BYTECODE):
        return _bytecode(path, source)
    if lower.endswith(_NATIVE):
        why = "it is a compiled module. Put it in a folder with an __init__.py that imports it"
        return _row(path, source, why, meant=True)
    if lower.endswith(_ARCHIVES):
        why = "it is an archive. Unpack it, or install it with pip"
        return _row(path, source, why, meant=True)
    misnamed = re.fullmatch(_MISNAMED, path.name)
    if misnamed is not None:
        return _row(path, source, f"{_SUFFIX}. Rename it to {misnamed[1]}.py", meant=True)
    return _row(path, source, _SUFFIX, meant=False)


def no_extension(folder: Path, source: Source, files: Iterable[str]) -> Candidate:
    """The row of a folder without `__init__.py`.

    files: the names of what is in it.
    """
    names = set(files)
    if not names:
        return _row(folder, source, "it is empty: it has no __init__.py; add one")
    what = _lacking(folder, names)
    if what is None:
        return _row(folder, source, "it has no Python code", meant=False)
    return _row(folder, source, f"it has no __init__.py{what}")


def _lacking(folder: Path, names: set[str]) -> str | None:
    """Where the code of a folder without `__init__.py` is, and what to do; None if it has none."""
    inside = [*_inside(folder)]
    package = next((each for each in inside if each.name == "__init__.py"), None)
    if package is not None:
        return f"; {_elsewhere(folder, package.parent, names)}"
    if "pyproject.toml" in names:
        return "; install it with pip, or link to its package"
    code = [each for each in inside if each.suffix == ".py"]
    if any(each.parent == folder for each in code) or _PROJECT_FILES & names:
        return "; add one"
    if code:
        return f"; its code is in {printable(code[0].relative_to(folder))}. Move it up"
    return next(filter(None, (_instead(each, folder) for each in inside)), None)


def _instead(file: Path, folder: Path) -> str | None:
    """What a file is that Python's code may be meant by, and what to do; None if it is not one."""
    told, lower = printable(file.relative_to(folder)), file.name.lower()
    if lower.endswith(_BYTECODE):
        return f", only bytecode ({told}); put the source there"
    if lower.endswith(_NATIVE):
        return f", only a compiled module ({told}); add one that imports it"
    if lower.endswith(_ARCHIVES):
        return f", only an archive ({told}). Unpack it, or install it with pip"
    misnamed = re.fullmatch(_MISNAMED, file.name)
    return None if misnamed is None else f"; rename {told} to {printable(misnamed[1])}.py"


def _elsewhere(folder: Path, package: Path, names: set[str]) -> str:
    told = f"the extension seems to be {printable(package)}"
    if "pyproject.toml" in names:
        return f"{told}. Install it with pip, or link to it from {printable(folder.parent)}"
    return f"{told}. Move it to {printable(folder.parent)}, or link to it from there"


def _bytecode(path: Path, source: Source) -> Candidate:
    stem = path.name.partition(".")[0]
    if any(path.with_name(name).exists() for name in (f"{stem}.py", stem)):
        return _row(path, source, "it is bytecode; its source is beside it", meant=False)
    why = f"it is bytecode without its source. Put {printable(stem)}.py there"
    return _row(path, source, why, meant=True)


def _row(path: Path, source: Source, why: str, *, meant: bool = True) -> Candidate:
    """meant: whether it may have been meant as an extension, so that each start says so."""
    name = path.stem if path.suffix == ".py" else path.name
    reason = f"{printable(path)} is not an extension: {why}"
    return Candidate(
        printable(name), source, path, status=Status.NOT_AN_EXTENSION, reason=reason, meant=meant
    )


def _inside(folder: Path) -> Iterator[Path]:
    """Files below a folder, the nearest first; links to folders are not followed."""
    left = _ENTRIES
    level = [folder]
    for _ in range(_DEPTH + 1):
        below: list[Path] = []
        for each in level:
            for entry in listed(each):
                left -= 1
                if left < 0:
                    return
                if entry.is_dir(follow_symlinks=False):
                    searched = not entry.name.startswith(".") and entry.name not in _NOT_SEARCHED
                    below += [Path(entry.path)] if searched else []
                elif is_kind(entry, stat.S_ISREG):
                    yield Path(entry.path)
        level = below


def listed(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where it is missing or closed, which is reported elsewhere."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def is_kind(entry: os.DirEntry[str], kind: Callable[[int], bool]) -> bool:
    """Whether an entry is of a kind, links followed; False where that cannot be told."""
    try:
        return kind(entry.stat().st_mode)
    except OSError:
        return False
