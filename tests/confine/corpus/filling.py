"""Placeholders and the names of other people's files become files of the test's own project.

By rule, never by hand: what stands for a file is known by its ending or by a word such as `file`,
and becomes the project's file of that ending; the second different name of a command becomes the
second file of that ending, and so on. Only words without quotes are changed.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Final

from tests.confine.corpus.words import Piece, pieces

FILES: Final = {
    "txt": ("notes.txt", "words.txt", "numbers.txt"),
    "md": ("README.md", "docs/guide.md"),
    "log": ("logs/app.log", "logs/access.log"),
    "csv": ("data/users.csv", "data/sales.csv"),
    "tsv": ("data/users.tsv",),
    "json": ("data/users.json", "config.json"),
    "yaml": ("config.yaml", "compose.yaml"),
    "xml": ("data/books.xml",),
    "html": ("web/index.html",),
    "py": ("src/app.py", "src/tables.py"),
    "js": ("web/index.js",),
    "c": ("native/hello.c",),
    "h": ("native/hello.h",),
    "out": ("native/hello",),
    "sh": ("bin/build.sh",),
    "sql": ("db/schema.sql",),
    "conf": ("etc/app.conf", "etc/app.conf.bak"),
    "ini": ("etc/app.ini",),
    "bak": ("etc/app.conf.bak",),
    "patch": ("changes.patch",),
    "db": ("db/app.db",),
    "gz": ("logs/old.log.gz",),
    "bz2": ("logs/old.log.bz2",),
    "xz": ("logs/old.log.xz",),
    "tar": ("dist/app.tar",),
    "tar.gz": ("dist/app.tar.gz",),
    "tar.bz2": ("dist/app.tar.bz2",),
    "tar.xz": ("dist/app.tar.xz",),
    "zip": ("dist/app.zip", "dist/docs.zip"),
    "pem": ("etc/cert.pem",),
    "key": ("etc/key.pem",),
    "png": ("web/logo.png",),
    "bin": ("data/blob.bin", "data/blob2.bin"),
    "b64": ("data/blob.b64",),
    "sha256": ("SHA256SUMS",),
}
_SAME: Final = {
    "cfg": "conf", "cnf": "conf", "config": "conf", "service": "ini", "properties": "ini",
    "toml": "ini", "htm": "html", "yml": "yaml", "diff": "patch", "sqlite": "db", "sqlite3": "db",
    "tgz": "tar.gz", "tbz": "tar.bz2", "tbz2": "tar.bz2", "txz": "tar.xz", "crt": "pem",
    "cer": "pem", "jpg": "png", "jpeg": "png", "gif": "png", "img": "bin", "iso": "bin",
    "dat": "bin", "cpp": "c", "hpp": "h", "bash": "sh", "old": "bak", "orig": "bak", "ts": "js",
    "so": "out", "o": "out", "elf": "out", "core": "bin", "dump": "sql", "whl": "zip",
    "jar": "zip", "data": "txt", "text": "txt", "asc": "txt", "list": "txt", "tmp": "txt",
    "sha256sum": "sha256", "md5": "sha256",
}  # fmt: skip
_FILE_WORDS: Final = re.compile(
    r"(?:(?:some|my|your|old|new|the|input|source|large|big|text|first|second|pattern)_?)?"
    r"(?:file|filename|input|sample|example|foo|bar|infile)(?:_?name)?_?[0-9]?",
)
_FOLDER_WORDS: Final = re.compile(
    r"(?:(?:some|my|your|path|source)_?)?(?:dir|directory|folder|path|dirname)_?[0-9]?",
)
_KEPT: Final = ("/dev/null", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/services", "/bin/",
                "/usr/bin/")  # fmt: skip


def filled(line: str, project: Path) -> str:
    """`line` with the files of `project`; a leading `sudo` is left out."""
    line = re.sub(r"^sudo\s+(?!-)", "", line)
    line = re.sub(r"<([a-z][a-z0-9 _-]*)>", lambda found: _placeholder(found[1]), line)
    names: dict[str, str] = {}
    return "".join(_filled(piece, project, names) for piece in pieces(line))


def _placeholder(name: str) -> str:
    return "dir" if re.search("dir|folder|path", name) else "file"


def _filled(piece: Piece, project: Path, names: dict[str, str]) -> str:
    if piece.first or not piece.bare:
        return piece.text
    option, equals, value = piece.text.rpartition("=")
    if piece.text.startswith("-") and not equals:
        return piece.text
    if value not in names:
        names[value] = _file(value, project, list(names.values()))
    return option + equals + names[value]


def _file(word: str, project: Path, used: list[str]) -> str:
    """What `word` stands for: a file, a folder, or itself."""
    name = PurePosixPath(word).name
    if word.startswith(_KEPT) or "://" in word or re.search(r"[*?\[\]:,@]", word):
        return word
    if kind := _ending(name) or (_FILE_WORDS.fullmatch(name) and "txt"):
        return next((each for each in FILES[kind] if each not in used), FILES[kind][0])
    if _FOLDER_WORDS.fullmatch(name):
        return "src"
    if word.startswith(("/", "~")):
        return _outside(word)
    if re.fullmatch(r"[\w.-]+/[\w./-]*", word) and not Path(project, word).exists():
        return "src"
    return word


def _outside(word: str) -> str:
    """A path outside the project: its root, a configuration file, a log, or a folder."""
    if word in {"/", "~", "~/"}:
        return "."
    if word.startswith("/var/log/") and not word.endswith("/"):
        return FILES["log"][0]
    if word.startswith("/etc/") and not word.endswith("/"):
        return FILES["conf"][0]
    return "src"


def _ending(name: str) -> str | None:
    """The ending that the project has a file of, the longest first."""
    parts = name.lower().split(".")[1:]
    for ending in (".".join(parts[-2:]), parts[-1]) if parts else ():
        if (known := _SAME.get(ending, ending)) in FILES:
            return known
    return None
