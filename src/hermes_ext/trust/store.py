"""Which projects the user trusts, and with which content.

One file in the Hermes home lists, by the project's real path, the digest that the user trusted.
Beside it lie copies of small trees, to show what changed since. `HERMES_EXT_TRUST` trusts exact
digests without the file, for machines where nobody can be asked.

A list that others may write, or that is damaged, trusts nothing.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import stat
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from hermes_ext._files import locked, remove_leftovers, replace_file
from hermes_ext._regular import READING
from hermes_ext._text import as_name, printable
from hermes_ext._values import frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.trust.diff import changed_paths
from hermes_ext.trust.place import Project, real_path, refusal
from hermes_ext.trust.tree import KEPT_BYTES, Tree, digest_of, kept_tree, read_tree, stamp_of
from hermes_ext.trust.walk import TreeError

PIN = "HERMES_EXT_TRUST"

_FORMAT: Final = 1
_FOLDER: Final = "extensions-trust"
_STORE_BYTES: Final = 16_000_000
_SHOWN: Final = 5
_LONGEST: Final = 100  # characters of a path in a reason
_DIGEST: Final = r"[0-9a-f]{64}"
# What Python imports, a program that an extension may start, or what loading reads.
_RUN: Final = (
    r"(?i)"
    r"\.(pyi?|pyw|pyz|pth|so|pyd|dll|dylib|zip|egg|whl|pkl|pickle|sh|bash|zsh|fish|m?js|ts|rb|pl"
    r"|lua|exe|bat|cmd|ps1)$|(^|/)extensions?\.yaml$"
)
_OURS: Final = r"[0-9a-f]{64}\.zip|\.[0-9a-f]{64}\.zip\..*\.tmp"
_EVIL: Final = stat.S_IWGRP | stat.S_IWOTH


class Standing(StrEnum):
    """What is thought of a project."""

    TRUSTED = "trusted"
    CHANGED = "changed"
    UNTRUSTED = "untrusted"
    REFUSED = "refused"


@frozen
class Entry:
    """One trusted project.

    path: its real path. digest: of what was trusted. at: when, in ISO format. names: of its
    extensions then, printable.
    """

    path: Path
    digest: str
    at: str
    names: tuple[str, ...] = ()


class _Unequal:
    """A stamp that equals no other: it is to be judged again."""


@frozen(eq=False)
class Verdict:
    """What is thought of a project as it is on the disk.

    reason: why it is not trusted, printable, for a sentence that names the project; "" where it
    is. names: of its extensions, printable. tree: what may be loaded, None where it could not be
    read; of a trusted project what was trusted. pinned: whether the environment trusts it.
    changed: the files that differ from what was trusted, as they are named on the disk, () where
    that is not known; of a trusted project those that its extensions may have left beside their
    code. stamp: what `stamp_now` said before. trusted_at: the project whose trust this is, another
    than itself in a linked work tree.
    """

    project: Project
    standing: Standing
    reason: str
    names: tuple[str, ...]
    tree: Tree | None
    pinned: bool
    changed: tuple[str, ...]
    stamp: Hashable
    trusted_at: Path | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether its tree may be loaded."""
        return self.standing is Standing.TRUSTED and self.tree is not None


def judge(project: Project, home: Path, twin: Path | None = None) -> Verdict:
    """Read a project and say whether the user trusts what it is now. Never raises.

    twin: the same project in the main work tree; what the user trusts there is trusted here.
    """
    stamp = stamp_now(project, home)
    fault = project.refused or refusal(project.root)
    if fault is not None:
        return Verdict(project, Standing.REFUSED, fault, (), None, False, (), stamp)
    try:
        is_gone = project.root.is_dir() and not os.path.lexists(project.folder)
        tree = kept_tree(project.root, {}) if is_gone else read_tree(project)
    except TreeError as error:
        stamp = _Unequal() if error.passing else stamp
        return Verdict(project, Standing.REFUSED, str(error), (), None, False, (), stamp)
    if tree.digest in pins():
        names = tuple(map(printable, tree.names()))
        return Verdict(project, Standing.TRUSTED, "", names, tree, True, (), stamp, project.root)
    standing, reason, changed, tree, root = _standing(tree, TrustStore(home), twin)
    names = tuple(map(printable, tree.names()))
    return Verdict(project, standing, reason, names, tree, False, changed, stamp, root)


def stamp_now(project: Project, home: Path) -> Hashable:
    """Tells, without reading, whether a project is to be judged again: by tree, store and pin."""
    stamp = stamp_of(project)
    told = (project, refusal(project.root), TrustStore(home).stamp(), os.environ.get(PIN))
    return told, _Unequal() if stamp is None else stamp


def is_still_trusted(root: Path, digest: str, home: Path) -> bool:
    """Whether the user trusts this content of a project, whatever is on the disk now.

    Raises ConfigError as `TrustStore.entries` does.
    """
    if digest in pins():
        return True
    return any(each.path == root and each.digest == digest for each in TrustStore(home).entries())


def pin_fault() -> str | None:
    """What is wrong with the value of `HERMES_EXT_TRUST`; None if nothing is."""
    wrong = [printable(part) for part in _pin_parts() if not re.fullmatch(_DIGEST, part.lower())]
    if not wrong:
        return None
    return f"${PIN} trusts nothing by {', '.join(map(repr, wrong))}: a digest has 64 hex digits"


def pins() -> set[str]:
    """The digests that the environment trusts."""
    return {part.lower() for part in _pin_parts() if re.fullmatch(_DIGEST, part.lower())}


class TrustStore:
    """The list of trusted projects in a Hermes home, and the copies of what was trusted.

    Nothing is made in the home before something is trusted.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.folder = home / _FOLDER
        self.file = self.folder / "trusted.json"
        self._copies = self.folder / "copies"

    def entries(self) -> tuple[Entry, ...]:
        """The trusted projects, by path.

        Raises ConfigError where the list is damaged, cannot be read, or others may write it.
        """
        raw = self._read()
        if raw is None:
            return ()
        try:
            return _parsed(raw)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise _DamagedError(self.file, str(error)) from None

    def trust(self, tree: Tree) -> Entry:
        """Trust a project with this content, instead of what was trusted of it before.

        A damaged list is set aside. Raises ConfigError, with nothing changed, where others may
        write the list, or it cannot be written.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(tree.root, tree.digest, at, tuple(map(printable, tree.names())))
        with self._changing():
            entries = self._entries_or_anew()
            try:
                self._keep_copy(tree)
                self._write([*(each for each in entries if each.path != tree.root), entry])
            finally:
                self._sweep()
        return entry

    def untrust(self, root: Path) -> Entry | None:
        """Trust a project no longer; returns what was trusted, None if nothing was.

        root: its folder, which need not be there any more. Raises ConfigError as `entries` and
        `trust` do.
        """
        places = {Path(os.path.abspath(root))}
        with contextlib.suppress(OSError):
            places.add(real_path(root))
        if not any(each.path in places for each in self.entries()):
            return None
        with self._changing():
            entries = self.entries()
            found = [each for each in entries if each.path in places]
            if found:
                self._write(each for each in entries if each not in found)
                self._sweep()
        return found[0] if found else None

    def copy(self, digest: str) -> Mapping[str, bytes] | None:
        """The files of a tree that was trusted, None if no copy was kept or it is damaged."""
        if not re.fullmatch(_DIGEST, digest):
            return None
        try:
            files = _unpacked(_bounded(self._copy_file(digest), 2 * KEPT_BYTES))
        except (OSError, ValueError):
            return None
        hashes = {path: sha256(data).hexdigest() for path, data in files.items()}
        return files if digest_of(hashes) == digest else None

    def stamp(self) -> Hashable:
        """Tells, without reading, whether the list may have changed."""
        return tuple(map(_stat_of, (self._home, self.folder, self.file)))

    def _read(self) -> bytes | None:
        try:
            self._check_folders()
            return _bounded(self.file, _STORE_BYTES, check=_check_private)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise _DamagedError(self.file, str(error)) from None
        except OSError as error:
            raise ConfigError(
                f"the list of trusted projects cannot be read: {error.strerror or error};"
                " no project is trusted",
                path=self.file,
                hint="Check its owner and permissions",
            ) from None

    def _check_folders(self) -> None:
        """The folder must be the user's, and nobody else may put another into its place."""
        found = os.lstat(self.folder)
        if stat.S_ISLNK(found.st_mode):
            told = "the folder of the list of trusted projects is a link; no project is trusted"
            hint = "Remove the link, and trust your projects again"
            raise ConfigError(told, path=self.folder, hint=hint)
        _check_private(self.folder, found)
        home = os.stat(self._home)
        _check_private(self._home, home, what="the Hermes home", own_group=True)

    def _entries_or_anew(self) -> tuple[Entry, ...]:
        try:
            return self.entries()
        except _DamagedError:
            names = (f"{self.file.name}.damaged-{number}" for number in itertools.count(1))
            free = (name for name in names if not os.path.lexists(self.folder / name))
            os.rename(self.file, self.folder / next(free))
            return ()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Alone with the list; what the system refuses becomes an error that names the file."""
        try:
            for folder in (self.folder, self._copies):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_folders()
            with locked(self.file):
                yield
        except OSError as error:
            raise ConfigError(
                f"the list of trusted projects cannot be written: {error.strerror or error};"
                " nothing was changed",
                path=Path(os.fsdecode(error.filename or self.file)),
                hint="Check the owner and the permissions of the file and its folders",
            ) from None

    def _write(self, entries: Iterable[Entry]) -> None:
        listed = [
            {"path": str(each.path), "digest": each.digest, "at": each.at, "names": each.names}
            for each in sorted(entries, key=lambda each: str(each.path))
        ]
        text = json.dumps({"format": _FORMAT, "trusted": listed}, indent=1)
        replace_file(self.file, text.encode(), mode=0o600)

    def _copy_file(self, digest: str) -> Path:
        return self._copies / f"{digest}.zip"

    def _keep_copy(self, tree: Tree) -> None:
        files = {path: each.data for path, each in tree.files.items()}
        known = {path: data for path, data in files.items() if data is not None}
        if len(known) < len(files) or sum(map(len, known.values())) > KEPT_BYTES:
            return
        if self.copy(tree.digest) is None:
            replace_file(self._copy_file(tree.digest), _packed(known), mode=0o600)

    def _sweep(self) -> None:
        """Removes copies of what nobody trusts, and what killed runs left."""
        with contextlib.suppress(OSError, ConfigError):
            kept = {self._copy_file(each.digest).name for each in self.entries()}
            remove_leftovers(self.file)
            for each in self._copies.iterdir():
                if each.name not in kept and re.fullmatch(_OURS, each.name):
                    each.unlink()


class _DamagedError(ConfigError):
    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"the list of trusted projects is damaged ({printable(why)}); no project is trusted",
            path=file,
            hint="`hermes extensions trust` sets it aside and begins a new one",
        )


_Judged: TypeAlias = tuple[Standing, str, tuple[str, ...], Tree, Path | None]


def _standing(tree: Tree, store: TrustStore, twin: Path | None) -> _Judged:
    """The standing, its reason, what changed, what may be loaded, and whose trust it is."""
    try:
        entries = store.entries()
    except ConfigError as error:
        return Standing.UNTRUSTED, printable(str(error)), (), tree, None
    by_path = {each.path: each for each in entries}
    here = by_path.get(tree.root)
    for entry in filter(None, (here, by_path.get(twin or tree.root))):
        if entry.digest == tree.digest:
            return Standing.TRUSTED, "", (), tree, entry.path
        old = store.copy(entry.digest)
        if old is not None and _only_has_more(tree, old):
            kept = kept_tree(tree.root, old)
            return Standing.TRUSTED, "", changed_paths(old, tree), kept, entry.path
    if here is None:
        return Standing.UNTRUSTED, _never_trusted(tree, entries), (), tree, None
    old = store.copy(here.digest)
    changed = () if old is None else changed_paths(old, tree)
    what = "are no longer there" if not tree.files else "changed since you trusted them"
    told = f": {listed_paths(changed)}" if changed and tree.files else ""
    return Standing.CHANGED, f"{what}{told}", changed, tree, None


def _only_has_more(tree: Tree, old: Mapping[str, bytes]) -> bool:
    """Whether all that was trusted is there, and the rest is nothing that could be run.

    That is what an extension leaves that writes beside its own code: new files, and files that
    grew. What was trusted is loaded then, and not what is on the disk.
    """
    if not old or not old.keys() <= tree.files.keys():
        return False
    try:
        return all(
            not _may_be_run(tree, path) and (path not in old or tree.starts_with(path, old[path]))
            for path in changed_paths(old, tree)
        )
    except TreeError:  # it is being written
        return False


def _may_be_run(tree: Tree, path: str) -> bool:
    """Whether loading reads a file, or it is a program: what may well be, is one."""
    file = tree.files[path]
    start = b"" if file.data is None else file.data[:2]
    return re.search(_RUN, path) is not None or start == b"#!"


def _never_trusted(tree: Tree, entries: Iterable[Entry]) -> str:
    if not tree.files:
        return "there is nothing in them yet"
    moved = next((each.path for each in entries if each.digest == tree.digest), None)
    told = "you have not trusted them"
    if moved is not None:
        told = f"you trusted the same content in {printable(moved)}, not here"
    return "; ".join(filter(None, [told, pin_fault()]))


def listed_paths(paths: tuple[str, ...]) -> str:
    """Some of the paths, and how many there are besides, for a sentence."""
    more = len(paths) - _SHOWN
    shown = ", ".join(as_name(path, _LONGEST) for path in paths[:_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _pin_parts() -> list[str]:
    return [part.strip() for part in os.environ.get(PIN, "").split(",") if part.strip()]


def _parsed(raw: bytes) -> tuple[Entry, ...]:
    told = json.loads(raw)
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        raise ValueError("it has another format")
    return tuple(_entry(each) for each in told["trusted"])


def _entry(told: Any) -> Entry:
    entry = Entry(Path(told["path"]), told["digest"], told["at"], tuple(told["names"]))
    texts = (entry.at, *entry.names)
    if not (entry.path.is_absolute() and all(isinstance(text, str) for text in texts)):
        raise ValueError("an entry has a wrong value")
    if not re.fullmatch(_DIGEST, entry.digest):
        raise ValueError("a digest has not 64 hex digits")
    return entry


def _check_private(
    path: Path,
    found: os.stat_result,
    what: str = "the list of trusted projects",
    *,
    own_group: bool = False,
) -> None:
    """own_group: the user's own group may write, as where everybody has one for himself."""
    if os.name != "posix":
        return
    if found.st_uid != os.geteuid():
        told = f"{what} belongs to another user (uid {found.st_uid}); no project is trusted"
        hint = "Remove it, and trust your projects again"
        if own_group:
            hint = "Use one of your own, or give it to yourself with `chown`"
        raise ConfigError(told, path=path, hint=hint)
    evil = stat.S_IWOTH if own_group and found.st_gid == os.getegid() else _EVIL
    if found.st_mode & evil:
        told = f"others may write {what}; no project is trusted"
        hint = "Look at what it lists, then take the right away with `chmod go-w`"
        raise ConfigError(told, path=path, hint=hint)


def _bounded(path: Path, limit: int, check: Any = None) -> bytes:
    descriptor = os.open(path, READING)
    try:
        found = os.fstat(descriptor)
        if check is not None:
            check(path, found)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise ValueError("it is too big")
    return data


def _stat_of(path: Path) -> Hashable:
    try:
        found = os.lstat(path) if path.name == _FOLDER else os.stat(path)
    except OSError as error:
        return error.errno
    owner = (found.st_gid, found.st_dev, found.st_ino, found.st_mode, found.st_uid)
    if stat.S_ISDIR(found.st_mode):
        return owner
    return (*owner, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _packed(files: Mapping[str, bytes]) -> bytes:
    import zipfile  # late: most starts have no kept copy to read

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            # Quoted, because a name in a zip file is text, and a name on the disk need not be.
            name = quote_from_bytes(os.fsencode(path), safe="/ ")
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _unpacked(raw: bytes) -> dict[str, bytes]:
    import struct
    import zipfile
    import zlib

    damaged = (zipfile.BadZipFile, zlib.error, struct.error, IndexError, RuntimeError, EOFError)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if sum(each.file_size for each in members) > KEPT_BYTES:
                raise ValueError("it is too big")
            return {
                os.fsdecode(unquote_to_bytes(each.filename)): archive.read(each) for each in members
            }
    except damaged as error:
        raise ValueError("it is damaged") from error
