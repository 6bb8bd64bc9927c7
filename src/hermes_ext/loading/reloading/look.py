"""How the places of extensions look: told by the system's own notes on each file, nothing is read.

A file's times of change and of its status, size, number and device are taken together: the time of
the status cannot be set by a program, so that neither an edit of equal size nor `os.utime` nor
another file of the same name passes for what was there. Only the section of `config.yaml` is
compared by what it means, because Hermes writes the file itself, in the middle of turns.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs

from hermes_ext._regular import Signature, signature
from hermes_ext._text import printable
from hermes_ext.loading.finding.candidate import Candidate, counts
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.manifest import MANIFEST_FILE

MAX_ENTRIES: Final = 5_000  # of one extension; each costs a microsecond at every turn

_CTIME: Final = 5
_NO_CODE: Final = frozenset(
    {"__pycache__", ".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv",
     "node_modules"}
)  # fmt: skip
_NO_FILES: Final = (".pyc", ".pyo", "~", ".swp", ".swx")


class TooMuchError(Exception):
    """An extension of more files than are looked at in each turn. `str()` is its folder."""


class Look(NamedTuple):  # not attrs: to make such a class takes longer than a look
    """What was seen.

    Attributes:
        file: `config.yaml`; `config_file` is how it looked, `read` the configuration in it, and
            `config` what its section means. None was read of what is no regular file.
        global_dir: the folder of extensions.
        files: how those of extensions looked, by path.
        folders: the same of folders whose listings were seen.
    """

    file: str
    config_file: Signature
    config: str
    read: ExtensionsConfig | None
    global_dir: Path
    files: Mapping[str, Signature]
    folders: Mapping[str, Signature]

    def is_now(self) -> bool:
        """Whether all looks as it did. Cheap: the files are neither opened nor listed."""
        if signature(self.file) != self.config_file:
            return False
        for seen in (self.folders, self.files):
            for path, before in seen.items():
                if signature(path) != before:
                    return False
        return True

    def changed(self, other: Look) -> set[str]:
        """The files that differ from another look, `config.yaml` only where its section does."""
        paths = self.files.keys() | other.files.keys()
        found = {path for path in paths if self.files.get(path) != other.files.get(path)}
        if self.config != other.config:
            found.add(self.file)
        return found

    def age(self, paths: set[str]) -> float:
        """Seconds since the newest of these changed; of those that are gone nothing is known."""
        seen = [self.files.get(path, ()) for path in paths]
        if self.file in paths:
            seen.append(self.config_file)
        times = [each[_CTIME] for each in seen if len(each) > _CTIME]
        return (time.time_ns() - max(times)) / 1e9 if times else float("inf")

    def all_after(self, paths: set[str], moment: float) -> bool:
        """Whether all of these changed after a moment; of those that are gone it is not known.

        moment: in seconds since the epoch.
        """
        seen = [self.config_file if path == self.file else self.files.get(path) for path in paths]
        return all(each and len(each) > _CTIME and each[_CTIME] > moment * 1e9 for each in seen)

    def irregular(self) -> str | None:
        """A place of what is no file, on which reading might wait for ever; None: there is none."""
        for path, seen in ((self.file, self.config_file), *self.files.items()):
            if len(seen) > _CTIME and not stat.S_ISREG(seen[0]):
                return path
        return None

    def same_code(self, candidate: Candidate, other: Look) -> bool:
        """Whether an extension's files look as they do in another look."""
        if candidate.path is None:
            return False
        alone, inside = str(candidate.path), f"{candidate.path}{os.sep}"
        mine, others = (
            {file: seen for file, seen in files.items() if file == alone or file.startswith(inside)}
            for files in (self.files, other.files)
        )
        return mine == others


def look(home: Path, before: Look | None = None) -> Look:
    """Look at the configuration and at all that lies in the folder of global extensions.

    before: an earlier look, whose reading of the configuration holds as long as the file does.
    Raises TooMuchError where an extension has more files than can be looked at.
    """
    file = os.path.join(home, "config.yaml")
    seen = signature(file)
    if before is not None and before.config_file == seen:
        meaning, read = before.config, before.read
    else:
        meaning, read = _meaning(home, seen)
        # Read after it was looked at: what changed in between shows in the next look.
    global_dir = home / "extensions" if read is None else read.global_dir
    scan = _Scan()
    scan.all(str(global_dir))
    return Look(file, seen, meaning, read, global_dir, scan.files, scan.folders)


def is_code(path: str) -> bool:
    """Whether loading an extension reads this file, and nobody writes it in passing."""
    return path.endswith((".py", ".so", ".pyd")) or os.path.basename(path) in {
        MANIFEST_FILE,
        "config.yaml",
    }


def _meaning(home: Path, seen: Signature) -> tuple[str, ExtensionsConfig | None]:
    if len(seen) > _CTIME and not stat.S_ISREG(seen[0]):
        return "no regular file", None
    config = read_config(home)
    if not config.readable:
        return "; ".join(map(str, config.problems)), config
    there = len(seen) > _CTIME
    section = config.has_section
    told = [(each.key, each.message) for each in config.problems]
    return repr((there, section, told, _plain(_values(config)))), config


def _values(config: ExtensionsConfig) -> dict[str, Any]:
    left = {"problems", "file", "root", "_section", "_spelled"}
    names = [each.name for each in attrs.fields(ExtensionsConfig) if each.name not in left]
    return {name: getattr(config, name) for name in names}


def _plain(value: Any) -> Any:
    """A value whose `repr` is the same for what means the same."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


class _Scan:
    """One walk over the folder of extensions; links are followed, each folder once."""

    def __init__(self) -> None:
        self.files: dict[str, Signature] = {}
        self.folders: dict[str, Signature] = {}
        self._left = 0
        self._top = ""

    def all(self, root: str) -> None:
        for name in self._listed(root, signature(root)):
            if not counts(name):
                continue
            path = f"{root}{os.sep}{name}"
            seen = signature(path)
            if stat.S_ISDIR(seen[0]):
                self._left, self._top = MAX_ENTRIES, path
                names = self._listed(path, seen)
                if "__init__.py" in names or MANIFEST_FILE in names:
                    self._tree(path, names, frozenset())
            elif name.endswith(".py") or len(seen) == 1:
                self.files[path] = seen

    def _tree(self, folder: str, names: list[str], above: frozenset[tuple[int, ...]]) -> None:
        here = self.folders[folder][1:3]
        if here in above:  # a link to a folder that it lies in
            return
        self._left -= len(names)
        if self._left < 0:
            raise TooMuchError(printable(self._top))
        for name in names:
            if name in _NO_CODE or name.endswith(_NO_FILES):
                continue
            path = f"{folder}{os.sep}{name}"
            seen = signature(path)
            if stat.S_ISDIR(seen[0]):
                self._tree(path, self._listed(path, seen), above | {here})
            else:
                self.files[path] = seen

    def _listed(self, folder: str, seen: Signature) -> list[str]:
        """What is in a folder that was looked at before: what changes since shows the next time."""
        self.folders[folder] = seen
        try:
            return os.listdir(folder)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self.files[folder] = (error.errno or -1,)
            return []
