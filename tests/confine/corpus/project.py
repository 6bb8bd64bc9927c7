"""The project that the commands look at: a git repository and the files that `filling` names."""

import base64
import bz2
import gzip
import hashlib
import itertools
import json
import lzma
import os
import sqlite3
import struct
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen
from tests.confine.corpus import machine, runs
from tests.confine.corpus.machine import Person
from tests.confine.corpus.runs import Answer

_TIME: Final = 1_767_500_000  # 2026-01-04; nothing in the project is younger
_PEOPLE: Final = [
    {
        "id": number,
        "name": name,
        "email": f"{name}@example.com",
        "age": age,
        "status": "active" if number % 2 else "inactive",
        "role": "admin" if number == 1 else "user",
        "address": {"city": city},
        "tags": ["a", "b"],
    }
    for number, (name, age, city) in enumerate(
        [("anna", 41, "Oslo"), ("bob", 28, "Lyon"), ("carla", 33, "Porto"), ("dev", 19, "Graz")], 1
    )
]
_LOG: Final = "".join(
    f'10.0.0.{number % 5} - - [04/Jan/2026:10:{number:02}:00 +0000] "GET /page/{number % 7} '
    f'HTTP/1.1" {(200, 200, 404, 500)[number % 4]} {100 * number}\n'
    for number in range(60)
)
_TEXTS: Final = {
    "README.md": "# Sample\n\nA small project.\n\n## Use\n\n    make\n\nTODO: more words.\n",
    "docs/guide.md": "# Guide\n\nSee the README. Write to anna@example.com.\n",
    "notes.txt": "the quick brown fox\njumps over\nthe lazy dog\nTODO error: none\n\nthe end\n",
    "words.txt": "apple\nbanana\ncherry\nerror\nfox\n",
    "numbers.txt": "10\n9\n2\n33\n1\n2\n",
    "logs/app.log": "2026-01-04 INFO start\n2026-01-04 ERROR error: timeout\n"
    "2026-01-04 WARNING retry\n2026-01-05 INFO done\n",
    "logs/access.log": _LOG,
    "data/users.csv": "id,name,age\n"
    + "".join(f"{p['id']},{p['name']},{p['age']}\n" for p in _PEOPLE),
    "data/sales.csv": "id,amount,city\n1,200,Oslo\n2,50,Lyon\n3,75,Porto\n",
    "data/users.tsv": "id\tname\n1\tanna\n2\tbob\n",
    "data/books.xml": "<?xml version='1.0'?>\n"
    "<books><book id='1'><title>One</title></book></books>\n",
    "config.yaml": "name: sample\nserver:\n  port: 8080\n  hosts: [a, b]\n",
    "compose.yaml": "services:\n  web:\n    image: sample:1\n",
    "web/index.html": "<!doctype html>\n<title>Sample</title>\n<p>Words &amp; more\n",
    "web/index.js": "export function total(list) {\n  return list.length; // TODO\n}\n",
    "src/app.py": '"""The program."""\n\nimport sys\n\nfrom tables import TABLES\n\n\n'
    'def main() -> int:\n    """Say hello."""\n    print("hello", len(TABLES))\n    return 0\n\n\n'
    'if __name__ == "__main__":\n    sys.exit(main())\n',
    "src/tables.py": '"""Tables."""\n\nTABLES = {"a": 1, "b": 2}  # TODO\n',
    "native/hello.c": '#include <stdio.h>\n#include "hello.h"\n\n'
    "int main(void) {\n    puts(HELLO);\n    return 0;\n}\n",
    "native/hello.h": '#define HELLO "hello"\n',
    "bin/build.sh": '#!/bin/sh\n# Build.\necho "building $1"\n',
    "db/schema.sql": "CREATE TABLE users\n"
    "(id INTEGER PRIMARY KEY, name TEXT, email TEXT, age INTEGER);\n",
    "etc/app.conf": "# settings\nport = 8080\nhost = localhost\n\nPermitRootLogin no\n",
    "etc/app.conf.bak": "# settings\nport = 80\nhost = localhost\n",
    "etc/app.ini": "[server]\nport = 8080\nname = sample\n",
    "changes.patch": "--- a/words.txt\n+++ b/words.txt\n@@ -1,2 +1,3 @@\n"
    " apple\n+avocado\n banana\n",
    "Makefile": "all: check\n\ncheck:\n\t@echo checked\n\n.PHONY: all check\n",
    ".gitignore": "*.pyc\n/build/\n",
}
_CERTIFICATE: Final = (
    "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
    "-subj", "/CN=sample.example.com", "-keyout", "etc/key.pem", "-out", "etc/cert.pem",
)  # fmt: skip
_IDENTITY: Final = (
    "[user]\n\tname = Anna\n\temail = anna@example.com\n[init]\n\tdefaultBranch = main\n"
)
# Times and sizes are enough: a copy of the system has other inodes, and owners change.
_STAT: Final = "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"


@frozen
class Place:
    """A project, the home of whom it belongs to, and running commands in it."""

    project: Path
    home: Path
    owner: Person

    @classmethod
    def made(cls, root: Path, owner: Person) -> "Place":
        """Make `root/project` and `root/home`, the same at each place."""
        place = cls(root / "project", root / "home", owner)
        _build(place.project, place.home)
        for path in place.paths():
            os.utime(path, (_TIME, _TIME), follow_symlinks=False)
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
        # Git notes the files' times as they are now, so that looking needs no writing.
        place.run("git update-index -q --refresh")
        return place

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every run."""
        return machine.environment(self.home, self.owner)

    def run(self, line: str) -> Answer:
        """What `line` answers in the project."""
        return runs.run(line, self.project, self.variables, **self.owner.as_whom)

    def state(self) -> str:
        """A digest of everything in both folders."""
        return machine.state(self.paths())

    def paths(self) -> list[Path]:
        """Everything in both folders, and these."""
        return [
            each for top in (self.project, self.home) for each in (top, *sorted(top.rglob("*")))
        ]


def _build(project: Path, home: Path) -> None:
    home.mkdir(parents=True)
    Path(home, ".gitconfig").write_text(_IDENTITY + _STAT)
    for name, data in _files():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    Path(project, "bin/build.sh").chmod(0o755)
    Path(project, "latest").symlink_to("docs")
    Path(project, "gone").symlink_to("no-such-file")
    Path(project, "empty").mkdir()
    _database(project / "db/app.db")
    _run(project, home, "cc", "-o", "native/hello", "native/hello.c")
    _run(project, home, *_CERTIFICATE)
    _archives(project)
    _history(project, home)


def _files() -> Iterator[tuple[str, bytes]]:
    for name, text in _TEXTS.items():
        yield name, text.encode()
    blob = bytes(range(256)) * 16 + b"words in a binary file\0"
    yield "data/blob.bin", blob
    yield "data/blob2.bin", blob[:-8] + b"changed\0"
    yield "data/blob.b64", base64.encodebytes(blob)
    yield "data/users.json", json.dumps(_PEOPLE, indent=2).encode() + b"\n"
    config = {"name": "sample", "version": "1.2.0", "users": _PEOPLE, "address": {"city": "Oslo"}}
    yield "config.json", json.dumps(config).encode() + b"\n"
    yield "web/logo.png", _png()
    digests = [
        f"{hashlib.sha256(_TEXTS[name].encode()).hexdigest()}  {name}\n"
        for name in ("notes.txt", "words.txt")
    ]
    yield "SHA256SUMS", "".join(digests).encode()


def _png() -> bytes:
    """Four grey pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0\x40\x80\0\xc0\xff"))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"")


def _database(path: Path) -> None:
    with sqlite3.connect(path) as opened:
        opened.executescript(_TEXTS["db/schema.sql"])
        rows = [(each["id"], each["name"], each["email"], each["age"]) for each in _PEOPLE]
        opened.executemany("INSERT INTO users VALUES (?, ?, ?, ?)", rows)
    opened.close()


def _archives(project: Path) -> None:
    (project / "dist").mkdir()
    old = _LOG.encode()
    (project / "logs/old.log.gz").write_bytes(gzip.compress(old, mtime=_TIME))
    (project / "logs/old.log.bz2").write_bytes(bz2.compress(old))
    (project / "logs/old.log.xz").write_bytes(lzma.compress(old))
    for ending, mode in (("", "w"), (".gz", "w:gz"), (".bz2", "w:bz2"), (".xz", "w:xz")):
        with tarfile.open(project / f"dist/app.tar{ending}", mode) as packed:
            packed.add(project / "src", "app", filter=_dated)
    for name, folder in (("app", "src"), ("docs", "docs")):
        with zipfile.ZipFile(project / f"dist/{name}.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in sorted((project / folder).iterdir()):
                entry = zipfile.ZipInfo(f"{name}/{path.name}", (2026, 1, 4, 10, 0, 0))
                zipped.writestr(entry, path.read_bytes())


def _dated(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname = _TIME, 0, 0, "", ""
    return member


def _run(project: Path, home: Path, *words: str, **variables: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True)


def _history(project: Path, home: Path) -> None:
    """Five commits on `main`, a merged and an open branch, tags, a stash and an open change."""
    times = itertools.count(_TIME - 100_000, 3600)

    def git(*words: str) -> None:
        when = f"{next(times)} +0000"
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        _run(project, home, "git", "-c", "gc.auto=0", *words, **dates)

    def commit(name: str, text: str, message: str) -> None:
        path = project / name
        path.write_text(path.read_text() + text)
        git("add", "-A")
        git("commit", "-q", "-m", message)

    git("init", "-q")
    commit("README.md", "First.\n", "First version")
    git("tag", "v1.0.0")
    commit("src/app.py", "# more\n", "Add more to the app")
    git("switch", "-q", "-c", "feature")
    commit("docs/guide.md", "Feature.\n", "Describe the feature")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge feature", "feature")
    git("tag", "-a", "v1.1.0", "-m", "Version 1.1.0")
    git("branch", "develop", "HEAD~1")
    commit("notes.txt", "fix\n", "Fix a bug in the notes")
    with (project / "words.txt").open("a") as opened:
        opened.write("grape\n")
    git("stash")
    git("clone", "-q", "--bare", ".", str(home / "origin.git"))
    git("remote", "add", "origin", str(home / "origin.git"))
    git("fetch", "-q", "origin")
    with (project / "numbers.txt").open("a") as opened:
        opened.write("5\n")
    (project / "untracked.txt").write_text("new\n")
