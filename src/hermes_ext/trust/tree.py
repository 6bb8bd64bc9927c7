"""What a project's extensions are: every file of theirs, its content, and one digest of it all.

The tree is `.hermes/extensions` with all below it and `.hermes/extensions.yaml`, without bytecode.
It is read once, and what was read is what is hashed, judged, shown and run.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import io
import itertools
import os
import re
import time
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from hermes_ext._text import printable
from hermes_ext._values import asdict, field, frozen
from hermes_ext.trust.place import EXTENSIONS, HERMES, SETTINGS, Project
from hermes_ext.trust.walk import (
    MAX_BYTES,
    Place,
    Stamp,
    TooSlowError,
    TreeError,
    Walk,
    stamp_from,
    walking,
)

KEPT_BYTES: Final = 5_000_000
_CODINGS: Final = frozenset({"utf-8", "utf-8-sig", "ascii", "iso8859-1", "iso8859-15", "cp1252"})
_ALWAYS_KEPT: Final = frozenset({"extension.yaml", SETTINGS})

# What changes twice in one tick of the clock bears the same times; no system's tick is longer.
_TICK_NS: Final = 20_000_000
_CHUNK: Final = 1 << 20


@frozen
class TreeFile:
    """One file as it was read. data: None for a data file of a big tree; see `Tree.read`."""

    sha256: str
    size: int
    data: bytes | None = field(default=None, repr=False)


@frozen(eq=False)
class Tree:
    """A project's extensions and settings as they were read.

    root: the project's folder. files: by path below `.hermes`, with `/`. digest: of all of them.
    stamp: what `stamp_of` said before they were read.
    """

    root: Path
    files: Mapping[str, TreeFile] = field(repr=False)
    digest: str
    stamp: Stamp
    _places: Mapping[str, Place] = field(factory=dict, repr=False)

    def read(self, relative: str) -> bytes:
        """The content of a file as it was hashed.

        Raises FileNotFoundError for what is not in the tree, and TreeError where the file had to be
        read again and is not what it was.
        """
        known = self.files.get(relative)
        if known is None:
            path = printable(self.root / HERMES / relative)
            raise FileNotFoundError(errno.ENOENT, "no file of the project's extensions", path)
        if known.data is not None:
            return known.data
        place = self._places[relative]
        with walking(Project(self.root)) as walk, walk.folder_of(place) as folder:
            try:
                again = _content(walk, place, folder, keep=True, limit=known.size)
            except OSError as error:
                raise walk.unreadable(relative, error) from None
        if again.data is None or again.sha256 != known.sha256:
            raise TreeError(
                self.root / HERMES / relative,
                "is no longer what it was when the project was judged",
                "Start anew to have it judged again",
            )
        return again.data

    def packed(self) -> Mapping[str, Any]:
        """What `unpacked` makes the same tree of, in another process too."""
        values = asdict(self, recurse=False)
        return {name.lstrip("_"): value for name, value in values.items()} | {
            "files": dict(self.files)
        }

    @classmethod
    def unpacked(cls, values: Mapping[str, Any]) -> Self:
        """The tree of what `packed` gave."""
        return cls(**{**values, "files": MappingProxyType(values["files"])})

    def starts_with(self, relative: str, data: bytes) -> bool:
        """Whether a file is this content, with or without more behind it. Raises as `read`."""
        return self.files[relative].size >= len(data) and self.read(relative).startswith(data)

    def names(self) -> tuple[str, ...]:
        """The names of what looks like extensions, `NAME/__init__.py` and `NAME.py`, sorted."""
        found = set()
        for relative in self.files:
            top, _, inner = relative.partition("/")
            name, _, rest = inner.partition("/")
            if top != EXTENSIONS or name.startswith((".", "_")) or name.endswith("~"):
                continue
            if rest == "__init__.py":
                found.add(name)
            elif not rest and name.endswith(".py"):
                found.add(name.removesuffix(".py"))
        return tuple(sorted(found))


def read_tree(project: Project) -> Tree:
    """Read a project's extensions and settings.

    Raises TreeError for what is not read, more than is read, or what cannot be read.
    """
    with walking(project) as walk:
        walk.run()
        _wait_for_the_clock(walk.newest)
        files = dict(sorted(_read_all(walk)))
    places = {each.shown: each for each in walk.files}
    return Tree(project.root, MappingProxyType(files), _digest(files), walk.stamp, places)


def kept_tree(root: Path, files: Mapping[str, bytes]) -> Tree:
    """The tree that these are all files of, whatever is on the disk now."""
    kept = {
        path: TreeFile(hashlib.sha256(data).hexdigest(), len(data), data)
        for path, data in sorted(files.items())
    }
    digest = _digest(kept)
    return Tree(root, MappingProxyType(kept), digest, stamp_from(digest))


def stamp_of(project: Project) -> Stamp | None:
    """Tells, from what `stat` says of every entry, whether anything changed.

    Also of a tree that `read_tree` refuses. None where it cannot be told in time.
    """
    try:
        with walking(project) as walk:
            try:
                walk.run()
            except TooSlowError:
                return None
            except TreeError as error:
                return stamp_from((walk.stamp, str(error)))
            return walk.stamp
    except TreeError as error:
        return stamp_from(str(error))


def _digest(files: Mapping[str, TreeFile]) -> str:
    return digest_of({path: each.sha256 for path, each in files.items()})


def digest_of(hashes: Mapping[str, str]) -> str:
    """The digest of a tree with these files: paths below `.hermes`, and their SHA-256 sums."""
    lines = (b"%s\0%s\n" % (os.fsencode(path), hashes[path].encode()) for path in hashes)
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


def _wait_for_the_clock(newest: int) -> None:
    """Let the clock tick, so that what changes from now on bears another time."""
    left = newest + _TICK_NS - time.time_ns()
    if left > 0:
        time.sleep(min(left, _TICK_NS) / 1e9)


def _read_all(walk: Walk) -> Iterator[tuple[str, TreeFile]]:
    keep_all = walk.size <= KEPT_BYTES
    left = MAX_BYTES
    in_order = sorted(walk.files, key=lambda each: each.parts)
    for _, together in itertools.groupby(in_order, key=lambda each: each.parts[:-1]):
        places = list(together)
        with walk.folder_of(places[0]) as folder:
            for place in places:
                name = place.shown.rpartition("/")[2]
                keep = keep_all or name.endswith(".py") or name in _ALWAYS_KEPT
                try:
                    file = _content(walk, place, folder, keep=keep, limit=left)
                except FileNotFoundError:
                    continue  # it went since it was listed
                except OSError as error:
                    raise walk.unreadable(place.shown, error) from None
                left -= file.size
                if left < 0:
                    raise walk.too_big([(place.shown, file.size)], f"{MAX_BYTES // 10**6} MB")
                _check_coding(walk, place, file)
                yield place.shown, file


def _check_coding(walk: Walk, place: Place, file: TreeFile) -> None:
    """What Python makes of a source must be what a person sees, who reads it as UTF-8."""
    if file.data is None or not place.shown.endswith(".py"):
        return
    cookie = _foreign_coding(file.data)
    if cookie is not None:
        raise TreeError(
            walk.project.folder / place.shown,
            f"is not what it looks like: it declares the encoding {printable(repr(cookie))}",
            "Save it as UTF-8, without such a line",
        )


def _foreign_coding(source: bytes) -> str | None:
    """The encoding that a source declares, if it is another than those that are read alike."""
    # Python ends lines at a lone carriage return too, `detect_encoding` does not.
    start = b"\n".join(re.split(rb"\r\n?|\n", source, maxsplit=2)[:2]) + b"\n"
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(start).readline)
    except SyntaxError:  # nobody knows it yet, or Python refuses to run such bytes
        declared = re.search(rb"coding[:=][ \t]*([-\w.]+)", start)
        name = declared[1].decode("ascii", "replace") if declared else "utf-8"
    try:
        return None if codecs.lookup(name).name in _CODINGS else name
    except (LookupError, ValueError):
        return name


def _content(walk: Walk, place: Place, folder: int, *, keep: bool, limit: int) -> TreeFile:
    """What is in a file, up to a little more than `limit` bytes."""
    digest, size, chunks = hashlib.sha256(), 0, []
    length = min(_CHUNK, place.size + 4096)  # one read, and one that finds the end
    with contextlib.closing(os.fdopen(walk.open_file(place, folder), "rb", buffering=0)) as file:
        while size <= limit and (chunk := file.read(length)):
            walk.check_time()
            size += len(chunk)
            digest.update(chunk)
            if keep:
                chunks.append(chunk)
    return TreeFile(digest.hexdigest(), size, b"".join(chunks) if keep else None)
