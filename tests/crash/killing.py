"""What is on the disk after `kill -9`, round by round: a script, since only a small process forks.

    python killing.py WHAT FOLDER SEED

Everything is imported once; each round forks a child that does the work, and kills it: at a random
moment, or at one of its own calls that touch the disk (before it, or just after). Then what is
there must be whole, and the same work must go through at once. Fails by an AssertionError.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from hermes_ext.cli import main
from hermes_ext.settings.editing import ListEdit, edit_lists
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import TrustStore
from hermes_ext.trust.tree import Tree, read_tree
from hermes_ext.turns.session_state import SessionState
from hermes_ext.turns.sqlite_store import SQLiteStore

ROUNDS = 100
EXTENSION = "from hermes_ext import register_hook\n"

# Calls after which the disk may be different, or a lock; not those that only read.
_TOUCHING = frozenset(
    {
        *("posix.open", "posix.mkdir", "posix.replace", "posix.rename", "posix.unlink"),
        *("write", "flush", "close", "fsync", "fchmod", "fchown", "flock", "execute"),
    }
)


# -- killing --------------------------------------------------------------------------------------


class Moments:
    """When to kill: learned from runs of each kind that are let alone, then drawn at random."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seconds: dict[str, float] = {}
        self._calls: dict[str, range] = {}
        self._rounds = 0
        self.reached = 0

    def learn(self, kind: str, work: Callable[[], object]) -> None:
        """Do the work in a child: the first time to know how long it takes, then what it calls."""
        if kind not in self._seconds:
            begun = time.perf_counter()
            _forked(work)
            self._seconds[kind] = time.perf_counter() - begun
            return
        calls = _forked(work, watch=0) or []
        # From a little before it takes its lock until a little after it has let go of it.
        first, last = calls.index("flock"), len(calls) - calls[::-1].index("flock")
        self._calls[kind] = range(max(1, first - 6), min(last + 6, len(calls)) + 1)

    def kill(self, kind: str, work: Callable[[], object]) -> None:
        """Do the work in a child and kill it: by turns at one of its calls, and after a while."""
        self._rounds += 1
        if self._rounds % 2:
            ended = _forked(work, watch=self._random.choice(self._calls[kind]))
        else:
            ended = _forked(work, late=self._random.uniform(0, self._seconds[kind]))
        self.reached += ended is None


def _forked(
    work: Callable[[], object], *, watch: int | None = None, late: float | None = None
) -> list[str] | None:
    """Do the work in a child. None if it was killed, else its watched calls that touch the disk.

    watch: kill it at this of those calls, counted from 1; 0 watches only.
    late: kill it after so many seconds.
    """
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(hear)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.write(tell, b"begun\n")
            calls = [] if watch is None else _watched(watch)
            work()
            sys.setprofile(None)
            os.write(tell, " ".join(calls).encode())
            os._exit(0)
        os._exit(1)
    os.close(tell)
    with open(hear) as told:
        assert told.readline() == "begun\n"
        if late is not None:
            time.sleep(late)
            os.kill(child, signal.SIGKILL)
        calls = told.read().split()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the work itself failed: {code}"
    return calls if code == 0 else None


def _watched(kill_at: int) -> list[str]:
    """The calls of this thread that touch the disk, each at its begin and its end."""
    calls: list[str] = []

    def look(_frame: Any, event: str, called: Any) -> None:
        if event not in ("c_call", "c_return"):
            return
        if {called.__name__, f"{called.__module__}.{called.__name__}"} & _TOUCHING:
            calls.append(called.__name__)
            if len(calls) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)
    return calls


def together(*works: Callable[[], object]) -> None:
    """Do all of this at once, each in a process of its own."""
    ready, go = os.pipe()
    children = []
    for work in works:
        children.append(os.fork())
        if children[-1] == 0:
            code = 1
            with contextlib.suppress(BaseException):
                os.close(go)
                os.read(ready, 1)
                work()
                code = 0
            os._exit(code)
    os.close(ready)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * len(works)


def command(*argv: str) -> None:
    """One of our commands, which must go through."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(argv) == 0, out.getvalue()


def without_other_packages(work: Callable[[], object]) -> None:
    """From now on commands look for entry points in no installed package: most of their time.

    work: what imports all that is needed later.
    """
    work()
    work()
    sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# -- enable and disable ---------------------------------------------------------------------------

CONFIG = """\
# what Hermes needs
model: {default: m}   # and more
extensions:
  log: steps  # loud
  disabled: [other]
ünïcode: ☃
"""


def config(folder: Path, seed: int) -> None:
    """`enable` and `disable`: the file is byte for byte the one text or the other."""
    home, file = folder / "home", folder / "home" / "config.yaml"
    (home / "extensions").mkdir(parents=True)
    for name in ("alpha", "other"):
        (home / "extensions" / f"{name}.py").write_text(EXTENSION)
    file.write_text(CONFIG)

    def switch() -> None:
        off = b"alpha" in file.read_bytes()
        command("enable" if off else "disable", "alpha", "--home", str(home))

    on, off = CONFIG.encode(), CONFIG.replace("[other]", "[other, alpha]").encode()
    without_other_packages(switch)
    kinds = {on: "disable", off: "enable"}
    moments = Moments(seed)
    for _ in range(4):
        moments.learn(kinds[file.read_bytes()], switch)
    there = names(home)
    changed = 0
    for number in range(ROUNDS):
        before = file.read_bytes()
        moments.kill(kinds[before], switch)
        after = file.read_bytes()
        assert after in kinds
        assert set(yaml.safe_load(after)) == {"model", "extensions", "ünïcode"}
        assert len(names(home) - there) <= 1
        changed += after != before
        if number % 4 == 3:
            switch()
            assert file.read_bytes() == (off if after == on else on)
            assert names(home) == there
    enough(moments, changed)


def enough(moments: Moments, changed: int) -> None:
    """Kills that all came before the first change, or after the last, would show nothing."""
    assert moments.reached >= ROUNDS // 2, moments.reached
    assert 3 < changed < ROUNDS - 3, changed


def two_enable(folder: Path, _seed: int) -> None:
    """Two processes that each put 100 names into the same list lose none."""
    file = folder / "config.yaml"
    file.write_text(CONFIG)

    def put(letter: str) -> Callable[[], None]:
        def each() -> None:
            for number in range(100):
                edit_lists(file, [ListEdit("extensions", "on", add=(f"{letter}-{number}",))])

        return each

    together(put("a"), put("b"))
    told = yaml.safe_load(file.read_text())["extensions"]
    # YAML 1.1 reads the key `on` as a yes.
    assert sorted(told[True]) == sorted(f"{each}-{n}" for each in "ab" for n in range(100))
    assert told["disabled"] == ["other"]
    assert names(folder) == {"config.yaml", ".config.yaml.lock"}


# -- trust and untrust ----------------------------------------------------------------------------


def project(root: Path) -> Tree:
    """A project with one extension, read."""
    folder = root / ".hermes" / "extensions"
    folder.mkdir(parents=True)
    (root / ".git").mkdir()
    (folder / "rule.py").write_text(f"{EXTENSION}# {root.name}\n")
    return read_tree(Project(root))


def trusted(home: Path) -> dict[str, str]:
    """The trusted projects by name; each has its copy, and there are no others."""
    store = TrustStore(home)
    entries = store.entries()
    for entry in entries:
        assert store.copy(entry.digest) is not None, entry
    return {entry.path.name: entry.digest for entry in entries}


def trust(folder: Path, seed: int) -> None:
    """`trust` and `untrust`: the list is the one or the other, each entry with a whole copy."""
    home = folder / "home"
    trees = {root.name: project(root) for root in (folder / "one", folder / "two", folder / "it")}
    for tree in trees.values():
        TrustStore(home).trust(tree)
    kept = {name: tree.digest for name, tree in trees.items()}
    gone = {name: digest for name, digest in kept.items() if name != "it"}

    def switch() -> None:
        if "it" in trusted(home):
            command("untrust", str(folder / "it"), "--home", str(home))
        else:
            command("trust", str(folder / "it"), "--yes", "--home", str(home))

    without_other_packages(switch)
    moments = Moments(seed)
    for kind in ("untrust", "trust") * 2:
        moments.learn(kind, switch)
    there = names(home / "extensions-trust")
    changed = 0
    for number in range(ROUNDS):
        before = trusted(home)
        moments.kill("untrust" if before == kept else "trust", switch)
        after = trusted(home)
        assert after in (kept, gone)
        changed += after != before
        if number % 4 == 3:  # what killed runs left is gone after the next one
            switch()
            assert trusted(home) == (gone if after == kept else kept)
            assert names(home / "extensions-trust") == there
            copies = {f"{digest}.zip" for digest in trusted(home).values()}
            assert names(home / "extensions-trust" / "copies") == copies
    enough(moments, changed)


def two_trust(folder: Path, _seed: int) -> None:
    """Two processes that each trust 50 projects lose none."""
    home = folder / "home"
    trees = [[project(folder / f"{each}-{n}") for n in range(50)] for each in "ab"]

    def put(some: Iterable[Tree]) -> Callable[[], None]:
        def each() -> None:
            for tree in some:
                TrustStore(home).trust(tree)

        return each

    together(*map(put, trees))
    assert trusted(home) == {tree.root.name: tree.digest for some in trees for tree in some}
    assert len(names(home / "extensions-trust" / "copies")) == 100
    assert len(names(home / "extensions-trust")) == 3  # the list, its lock, the copies


# -- session state --------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path) -> Iterator[SessionState]:
    with contextlib.closing(SQLiteStore(path)) as store:
        yield SessionState(store, "talk", "killed")
        assert store.problem is None


def state(folder: Path, seed: int) -> None:
    """Session state: what a write returned for is there, and the file passes SQLite's check."""
    path = folder / "state.db"
    chance = random.Random(seed)
    reported = 0
    for _ in range(ROUNDS):
        reported = _killed_while_it_counts(path, chance.uniform(0, 0.015)) or reported
        if not path.exists():
            continue  # killed before the first of all writes
        with opened(path) as kept:
            number = kept.get("n", 0)
            # The one whose report was on its way may be in or out.
            assert number in (reported, reported + 1), (number, reported)
            if reported:
                assert kept[f"key-{reported % 7}"] == [reported] * 50
            assert all(value == [value[0]] * 50 for key, value in kept.items() if key != "n")
            if number > reported:
                kept[f"key-{number % 7}"] = [number] * 50
            reported = number
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert names(folder) == {"state.db", "state.db.lock"}
    assert reported > ROUNDS


def one_report(folder: Path, _seed: int) -> None:
    """What a child reported before it was killed is known, also where that was one number."""

    def once(_path: Path, tell: int) -> None:
        os.write(tell, b"1\n")
        signal.pause()

    assert _killed_while_it_counts(folder / "state.db", 0.01, once) == 1


def _killed_while_it_counts(
    path: Path, seconds: float, count: Callable[[Path, int], None] | None = None
) -> int:
    """The last number that the child reported; 0 for none."""
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hear)
        with contextlib.suppress(BaseException):
            (count or _count)(path, tell)
        os._exit(1)
    os.close(tell)
    with open(hear, "rb") as lines:
        # At work; the others are killed while they open the file.
        first = lines.readline() if seconds > 0.002 else b""
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        told = (first + lines.read()).split()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    return int(told[-1]) if told else 0


def _count(path: Path, tell: int) -> None:
    store = SQLiteStore(path)
    kept = SessionState(store, "talk", "killed")
    while True:
        number = kept.count("n")
        kept[f"key-{number % 7}"] = [number] * 50
        if number % 5 == 0:
            kept.pop(f"key-{(number + 3) % 7}", None)
        os.write(tell, b"%d\n" % number)
        if number % 20 == 0:
            store.close()  # what is in the WAL goes into the file


if __name__ == "__main__":
    parts = (config, two_enable, trust, two_trust, state, one_report)
    work = {each.__name__: each for each in parts}
    work[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
