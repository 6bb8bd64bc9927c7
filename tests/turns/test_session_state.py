"""What extensions keep for conversations: the mapping, the stores, and bad days of the disk."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from hermes_ext.exceptions import StateError
from hermes_ext.turns import session_state as _session_state
from hermes_ext.turns import sqlite_store as _sqlite_store
from hermes_ext.turns.session_state import SessionState
from hermes_ext.turns.sqlite_store import SQLiteStore
from hermes_ext.turns.state import judging_again
from hermes_ext.turns.store import MemoryStore, SessionStore

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
needs_rlimit = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="file size limits are relied on as Linux has them"
)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def forward(self, *, days: float = 0, seconds: float = 0) -> None:
        self.now += days * 86_400 + seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


@pytest.fixture
def sqlite_store(path: Path, clock: Clock) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(path, busy_timeout=0.05, clock=clock)) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: Clock) -> SessionStore:
    if request.param == "memory":
        return MemoryStore(clock=clock)
    return request.getfixturevalue("sqlite_store")


def state_of(
    store: SessionStore, conversation: str = "talk", extension: str = "planner"
) -> SessionState:
    return SessionState(store, conversation, extension)


def python(code: str, *args: object, **options: Any) -> subprocess.Popen[str]:
    """Starts an interpreter with `store` opened on the first argument."""
    prelude = (
        "import os, sys, threading\n"
        "from hermes_ext.turns.session_state import SessionState\n"
        "from hermes_ext.turns.sqlite_store import SQLiteStore\n"
        "store = SQLiteStore(sys.argv[1])\n"
        "state = SessionState(store, 'talk', 'planner')\n"
    )
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", prelude + code, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# Root reads and writes everything by two capabilities, which a child can give up.
WITHOUT_RIGHTS = """
import ctypes
if os.geteuid() == 0:
    version, nobody = 0x20080522, (ctypes.c_uint32 * 6)()
    header = (ctypes.c_uint32 * 2)(version, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capset(header, nobody) == 0, ctypes.get_errno()
"""


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out


def started_together(*processes: subprocess.Popen[str]) -> tuple[subprocess.Popen[str], ...]:
    """Gives each process the line that it waits for."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


class TestMapping:
    """The mapping that handlers get, over either store."""

    def test_behaves_like_a_dict(self, store: SessionStore) -> None:
        """Every operation of a mapping gives what a plain dict gives."""
        state, plain = state_of(store), {}
        for mapping in (state, plain):
            mapping["b"] = [1, {"deep": None}]
            mapping["a"] = "text"
            mapping.update({"c": 1.5, "d": True})
            del mapping["d"]
            assert mapping.pop("c") == 1.5
            assert mapping.pop("c", "gone") == "gone"
            assert mapping.setdefault("a", "other") == "text"
            assert mapping.setdefault("e") is None
        assert dict(state) == plain
        assert sorted(state) == sorted(plain)
        assert sorted(state.items(), key=str) == sorted(plain.items(), key=str)
        assert len(state) == len(plain)
        assert state == plain
        assert "a" in state
        assert "z" not in state
        assert state.get("z", 5) == 5
        assert sorted(map(str, state.values())) == sorted(map(str, plain.values()))
        assert list(state.keys()) == list(state)

    def test_takes_everything_out(self, store: SessionStore) -> None:
        """popitem removes one key and says which; clear leaves an empty mapping."""
        state = state_of(store)
        state.update({"a": 1, "b": 2})
        key, value = state.popitem()
        assert (key, value) in {("a", 1), ("b", 2)}
        assert key not in state
        state.clear()
        assert not state
        with pytest.raises(KeyError, match="empty"):
            state.popitem()

    @pytest.mark.parametrize("key", ["absent", 5, None, "\ud800", ("a",)], ids=ascii)
    def test_absent_keys_raise_key_error(self, store: SessionStore, key: Any) -> None:
        """A key that is not there, or never could be, is a KeyError as in a dict."""
        state = state_of(store)
        assert key not in state
        with pytest.raises(KeyError):
            state[key]
        with pytest.raises(KeyError):
            del state[key]
        with pytest.raises(KeyError):
            state.pop(key)

    def test_reads_are_copies(self, store: SessionStore) -> None:
        """Changing what was read, or what was set, changes nothing until it is set again."""
        state = state_of(store)
        given = [1]
        state["list"] = given
        given.append(2)
        state["list"].append(3)
        state.snapshot()["list"].append(4)
        assert state["list"] == [1]

    def test_is_private_to_extension_and_conversation(self, store: SessionStore) -> None:
        """Neither another extension nor another conversation sees, counts or clears a value."""
        mine = state_of(store)
        mine["key"] = 1
        for other in (
            state_of(store, extension="other"),
            state_of(store, conversation="other"),
            state_of(store, conversation="planner", extension="talk"),
        ):
            assert dict(other) == {}
            assert other.count("key") == 1
            other.clear()
        assert dict(mine) == {"key": 1}
        assert dict(state_of(store)) == {"key": 1}

    @pytest.mark.parametrize(
        ("value", "says"),
        [
            ({1, 2}, "of type set"),
            (b"x", "of type bytes"),
            ((1, 2), "of type tuple"),
            (Path("x"), "Path"),
            (float("nan"), "JSON"),
            (float("inf"), "JSON"),
            ({"a": [1, object()]}, "value['a'][1] is of type object"),
            ({"a": {5: "five"}}, "value['a'] has the key 5"),
            (lambda: None, "of type function"),
            (10**5000, "cannot be written"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_other_values_are_refused(self, store: SessionStore, value: Any, says: str) -> None:
        """What JSON cannot hold, or would change, is refused with extension, key and reason."""
        state = state_of(store)
        with pytest.raises(StateError) as caught:
            state["seen"] = value
        assert (caught.value.extension, caught.value.key) == ("planner", "seen")
        text = str(caught.value)
        assert all(part in text for part in ("planner", "seen", "JSON values only", says, "Use "))
        assert "seen" not in state

    def test_endless_values_are_refused(self, store: SessionStore) -> None:
        """A list that holds itself is a StateError and no crash."""
        endless: list[Any] = []
        endless.append(endless)
        with pytest.raises(StateError, match="JSON values only"):
            state_of(store)["x"] = endless

    @pytest.mark.parametrize("key", [5, None, "\ud800"], ids=ascii)
    def test_other_keys_are_refused(self, store: SessionStore, key: Any) -> None:
        """A key that is not storable text is a StateError that names the extension."""
        with pytest.raises(StateError, match=r"planner.*cannot be a key"):
            state_of(store)[key] = 1
        with pytest.raises(StateError, match=r"planner.*cannot be a key"):
            state_of(store).count(key)

    @pytest.mark.parametrize(
        "text", ["", "\x00", "\ud800 lone", "日本語 🙂", "'; DROP TABLE value; --"], ids=ascii
    )
    def test_any_text_comes_back(self, store: SessionStore, text: str) -> None:
        """Conversation ids and values may be any text; so may keys that UTF-8 can hold."""
        state = state_of(store, conversation=text)
        state["value"] = text
        assert state["value"] == text
        key = text.replace("\ud800", "")
        state[key] = 1
        assert state[key] == 1
        assert set(state) == {"value", key}

    def test_repr_shows_whose_it_is_and_no_values(self, store: SessionStore) -> None:
        """The repr is safe to log."""
        state = state_of(store)
        state["secret"] = "hunter2"
        assert "planner" in repr(state)
        assert "talk" in repr(state)
        assert "hunter2" not in repr(state)


class TestCount:
    """The atomic counter."""

    def test_counts_and_returns_the_sum(self, store: SessionStore) -> None:
        """A counter begins at 0, moves by any integer, and is an ordinary value."""
        state = state_of(store)
        assert [state.count("n"), state.count("n", 5), state.count("n", -2)] == [1, 6, 4]
        assert state["n"] == 4
        state["n"] = 10**30
        assert state.count("n") == 10**30 + 1

    @pytest.mark.parametrize("value", ["1", 1.0, True, None, [1]], ids=repr)
    def test_other_values_cannot_be_counted(self, store: SessionStore, value: Any) -> None:
        """Counting over a value that is no integer is a StateError and leaves the value."""
        state = state_of(store)
        state["n"] = value
        with pytest.raises(StateError, match=r"planner, n: .*not an integer"):
            state.count("n")
        assert state["n"] == value
        state["other"] = 1
        assert state["other"] == 1

    @pytest.mark.parametrize("by", ["1", 1.0, True, None], ids=repr)
    def test_counts_by_integers_only(self, store: SessionStore, by: Any) -> None:
        """`by` that is no integer is a StateError."""
        with pytest.raises(StateError, match="count by"):
            state_of(store).count("n", by)

    def test_a_call_judged_twice_counts_once(self, store: SessionStore) -> None:
        """While a call is judged again the counter stands still, as the turn's counter does."""
        state = state_of(store)
        with judging_again():
            assert state.count("n") == 0
        state.count("n")
        with judging_again():
            assert state.count("n") == 1
        assert state["n"] == 1


class TestThreads:
    """Parallel tool calls of one process."""

    def test_counts_are_exact(self, store: SessionStore) -> None:
        """No increment of eight threads is lost, and each got a number of its own."""
        seen: list[int] = []
        in_threads(lambda: seen.extend(state_of(store).count("n") for _ in range(100)))
        assert state_of(store)["n"] == 800
        assert sorted(seen) == list(range(1, 801))

    def test_the_lock_makes_steps_one(self, store: SessionStore) -> None:
        """Under `lock`, which two objects of the same state share, `+=` loses nothing."""
        state_of(store)["n"] = 0

        def add() -> None:
            state = state_of(store)
            for _ in range(50):
                with state.lock, state.lock:
                    state["n"] += 1

        in_threads(add)
        assert state_of(store)["n"] == 400

    def test_iterating_while_others_write_never_raises(self, store: SessionStore) -> None:
        """Iterating, snapshots, pops and clears go on while other threads insert and delete."""

        def write() -> None:
            state = state_of(store)
            for number in range(25):
                state[f"{threading.get_ident()}-{number}"] = number
                state.pop(f"{threading.get_ident()}-{number // 2}", None)
                assert all(isinstance(value, int) for value in state.values())
                assert all(key.partition("-")[2].isdigit() for key in state)
                assert all(int(key.partition("-")[2]) == value for key, value in state.items())
                if number == 20:
                    state.clear()

        in_threads(write)

    def test_locks_go_with_their_users(self, store: SessionStore) -> None:
        """Nothing of a conversation stays in memory when nobody holds its state."""

        def held() -> set[str]:
            # Not all: a thread that another test has left behind may hold its own still.
            found = (owner[1] for owner in list(_session_state._locks.by_owner))
            return {each for each in found if each.startswith("talk ")}

        for number in range(100):
            with state_of(store, conversation=f"talk {number}").lock:
                assert held() == {f"talk {number}"}
        assert held() == set()


def in_threads(work: Callable[[], None], number: int = 8) -> None:
    """Runs `work` in several threads at once; the first failure is the test's."""
    failures: list[BaseException] = []
    together = threading.Barrier(number)

    def run() -> None:
        together.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


class TestSweep:
    """Forgetting conversations that nobody uses."""

    def test_idle_conversations_are_forgotten(self, store: SessionStore, clock: Clock) -> None:
        """After `days` without a read or write all of a conversation goes, and nothing else."""
        for name in ("idle", "written", "read"):
            state_of(store, name)["n"] = 1
            state_of(store, name, "other")["n"] = 2
        clock.forward(days=20)
        state_of(store, "written")["n"] = 3
        assert state_of(store, "read")["n"] == 1
        clock.forward(days=20)
        assert store.sweep(30) == 0  # nobody was here in the meantime, or the clock is wrong
        state_of(store, "new")["n"] = 4
        assert store.sweep(30) == 1
        assert dict(state_of(store, "idle")) == {}
        assert dict(state_of(store, "idle", "other")) == {}
        assert dict(state_of(store, "written")) == {"n": 3}
        assert dict(state_of(store, "read", "other")) == {"n": 2}
        assert store.sweep(30) == 0

    def test_a_clock_that_jumps_forgets_nothing(self, store: SessionStore, clock: Clock) -> None:
        """A start in the far future, or before the clock was set, and what was used meanwhile."""
        for name in ("idle", "used"):
            state_of(store, name)["n"] = 1
        right = clock.now
        clock.forward(days=3650)
        assert store.sweep(30) == 0
        clock.now = 0
        for name in ("used", "new"):
            state_of(store, name)["n"] = 2
        assert store.sweep(30) == 0
        clock.now = right
        clock.forward(days=29)
        state_of(store, "newer")["n"] = 3
        assert store.sweep(30) == 0
        assert [state_of(store, name)["n"] for name in ("idle", "used", "new")] == [1, 2, 2]

    def test_asking_for_an_absent_key_is_use(self, store: SessionStore, clock: Clock) -> None:
        """A conversation whose extension only looks for a key that is not there is in use."""
        state_of(store)["n"] = 1
        clock.forward(days=29)
        assert "plan" not in state_of(store)
        clock.forward(days=29)
        assert store.sweep(30) == 0

    @pytest.mark.parametrize("days", [0, -1])
    def test_zero_days_keep_everything(
        self, store: SessionStore, clock: Clock, days: float
    ) -> None:
        """`state_days: 0` turns sweeping off and empties nothing."""
        state_of(store)["n"] = 1
        clock.forward(days=1000)
        assert store.sweep(days) == 0
        assert state_of(store)["n"] == 1


class TestFile:
    """The SQLite file."""

    def test_is_made_by_the_first_write(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """Reading, iterating and sweeping make neither file nor directory."""
        state = state_of(sqlite_store)
        assert dict(state) == {}
        assert "x" not in state
        state.clear()
        sqlite_store.sweep(30)
        sqlite_store.close()
        assert not path.parent.exists()
        state["x"] = 1
        assert path.exists()

    def test_is_private(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """The file and those beside it are readable and writable by their owner only."""
        state_of(sqlite_store)["x"] = 1
        files = list(path.parent.iterdir())
        assert {f"{path.name}{suffix}" for suffix in ("", "-wal")} <= {f.name for f in files}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    def test_keeps_values_over_a_restart(self, path: Path) -> None:
        """What one store wrote, the next one reads, and only one file of data is left."""
        with closing(SQLiteStore(path)) as store:
            state_of(store)["plan"] = {"steps": [1, 2]}
        assert not Path(f"{path}-wal").exists()
        with closing(SQLiteStore(path)) as store:
            assert dict(state_of(store)) == {"plan": {"steps": [1, 2]}}

    def test_two_stores_see_each_other(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """Nothing is cached: what another store wrote shows in the next read."""
        with closing(SQLiteStore(path)) as other:
            mine, theirs = state_of(sqlite_store), state_of(other)
            mine["x"] = 1
            assert theirs["x"] == 1
            theirs["x"] = 2
            assert mine["x"] == 2
            del theirs["x"]
            assert dict(mine) == {}

    def test_works_again_after_close(self, sqlite_store: SQLiteStore) -> None:
        """Closing lets go of the file; a later call opens it again."""
        state = state_of(sqlite_store)
        state["x"] = 1
        sqlite_store.close()
        assert state["x"] == 1

    def test_importing_costs_no_sqlite(self) -> None:
        """Importing the module, and making a store, imports neither sqlite3 nor filelock."""
        code = "assert not {'sqlite3', 'filelock'} & set(sys.modules)"
        finished(python(code, "never.db"))

    @pytest.mark.parametrize("swap", ["removed", "replaced"])
    def test_follows_its_path(self, sqlite_store: SQLiteStore, path: Path, swap: str) -> None:
        """Where the file was removed or replaced under us, writes go to what is there now."""
        state = state_of(sqlite_store)
        state["old"] = 1
        for file in list(path.parent.glob("state.db*")):
            file.unlink()
        if swap == "replaced":
            with closing(SQLiteStore(path)) as other:
                state_of(other)["theirs"] = 2
        state["new"] = 3
        expected = {"new": 3} | ({"theirs": 2} if swap == "replaced" else {})
        assert dict(state) == expected
        with closing(SQLiteStore(path)) as other:
            assert dict(state_of(other)) == expected
        assert sqlite_store.problem is None

    def test_a_link_is_followed(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """Where the path is a link, also to a file that is not there yet, its target is used."""
        target = path.parent / "elsewhere.db"
        path.parent.mkdir()
        path.symlink_to(target)
        state = state_of(sqlite_store)
        assert state.count("n") == 1
        sqlite_store.close()
        assert state.count("n") == 2
        assert path.is_symlink()
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert sqlite_store.problem is None


class TestProcesses:
    """Several processes, and forked ones; `tests/crash` has killed ones."""

    def test_two_processes_count_exactly(self, path: Path) -> None:
        """2 x 2,000 parallel increments, by four threads each, give 4,000 numbers of their own."""
        code = (
            "seen = []\n"
            "def count():\n"
            "    mine = [state.count('n') for _ in range(500)]\n"
            "    assert mine == sorted(mine)\n"
            "    seen.extend(mine)\n"
            "threads = [threading.Thread(target=count) for _ in range(4)]\n"
            "input()\n"
            "for thread in threads: thread.start()\n"
            "for thread in threads: thread.join()\n"
            "assert store.problem is None\n"
            "print(*seen)"
        )
        both = started_together(*[python(code, path, stdin=subprocess.PIPE) for _ in range(2)])
        seen = [int(number) for process in both for number in finished(process).split()]
        assert sorted(seen) == list(range(1, 4001))
        with closing(SQLiteStore(path)) as store:
            assert dict(state_of(store)) == {"n": 4000}

    @needs_fork
    def test_a_fork_is_harmless(self, path: Path) -> None:
        """Parent and child of a fork both go on counting exactly, whoever ends first."""
        code = (
            "state.count('n')\n"
            "children = []\n"
            "for _ in range(3):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        for _ in range(100): state.count('n')\n"
            "        os._exit(0 if not store.problem else 1)\n"
            "    children.append(child)\n"
            "for _ in range(100): state.count('n')\n"
            "store.close()\n"
            "for child in children: assert os.waitpid(child, 0)[1] == 0\n"
            "print(state['n'], store.problem)"
        )
        assert finished(python(code, path)) == "401 None\n"
        with closing(SQLiteStore(path)) as store:
            assert state_of(store)["n"] == 401

    @needs_fork
    def test_a_fork_beside_busy_threads_leaves_no_lock_behind(self, path: Path) -> None:
        """A child works although other threads of its parent held the store and `state.lock`."""
        code = (
            "import warnings\n"
            "warnings.simplefilter('ignore', DeprecationWarning)\n"
            "state['first'] = 'made'\n"
            "held, done = threading.Event(), threading.Event()\n"
            "def hold():\n"
            "    with state.lock:\n"
            "        held.set()\n"
            "        while not done.is_set(): state.count('busy')\n"
            "thread = threading.Thread(target=hold)\n"
            "thread.start()\n"
            "held.wait()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    with state.lock: state['child'] = 'wrote'\n"
            "    os._exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "done.set()\n"
            "thread.join()\n"
            "print(state['child'], store.problem)"
        )
        assert finished(python(code, path)) == "wrote None\n"

    @needs_fork
    def test_a_fork_leaves_no_lock_of_a_memory_store_behind(self, path: Path) -> None:
        """Whatever another thread of the parent does in the store."""
        code = (
            "import signal, warnings\n"
            "from hermes_ext.turns.store import MemoryStore\n"
            "warnings.simplefilter('ignore', DeprecationWarning)\n"
            "held, done = threading.Event(), threading.Event()\n"
            "def clock():\n"
            "    if threading.current_thread() is thread:\n"
            "        held.set()\n"
            "        done.wait()\n"
            "    return 0.0\n"
            "memory = MemoryStore(clock=clock)\n"
            "thread = threading.Thread(target=memory.set, args=('talk', 'planner', 'k', '1'))\n"
            "thread.start()\n"
            "held.wait()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    signal.alarm(20)\n"
            "    memory.set('talk', 'planner', 'k', '2')\n"
            "    os._exit(0)\n"
            "code = os.waitpid(child, 0)[1]\n"
            "done.set()\n"
            "thread.join()\n"
            "print(code)"
        )
        assert finished(python(code, path)) == "0\n"


def garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database, it is a note\n" * 200)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3000])


def overwrite(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xa5" * (len(content) - 100))


def unavailable(work: Callable[[], object], match: str = "session state is unavailable") -> None:
    """Assert that it fails because the store does."""
    with pytest.raises(StateError, match=match) as failed:
        work()
    assert failed.value.unavailable


def every_use(state: SessionState) -> list[Callable[[], object]]:
    """Each way to read or write."""
    return [
        lambda: state["n"],
        lambda: state.get("n"),
        lambda: state.setdefault("n", 1),
        lambda: state.count("n"),
        lambda: dict(state),
        lambda: "n" in state,
        lambda: len(state),
        lambda: state.__setitem__("n", 1),
        lambda: state.pop("n", None),
        state.clear,
    ]


class TestDamage:
    """A file that SQLite cannot use."""

    @pytest.mark.parametrize("damage", [garbage, cut, overwrite])
    def test_is_left_alone_and_fails(
        self, path: Path, damage: Callable[[Path], None], clock: Clock
    ) -> None:
        """What was kept cannot be known, so that nothing passes for it; moved away, all is new."""
        with closing(SQLiteStore(path, clock=clock)) as store:
            for number in range(200):
                state_of(store, f"talk {number}")["n"] = "x" * 100
        damage(path)
        content = path.read_bytes()
        told: list[str] = []
        with closing(SQLiteStore(path, notify=told.append, clock=clock)) as store:
            for use in every_use(state_of(store, "talk 1")):
                unavailable(use, "is damaged")
            unavailable(store.check)
            [line] = told
            assert str(path) in line
            assert "Move the file away" in line
            assert store.problem == line
            assert path.read_bytes() == content
            path.rename(path.with_name("away"))
            assert state_of(store, "talk 1").count("n") == 1
            assert store.problem is None

    @pytest.mark.parametrize("damage", [garbage, cut, overwrite])
    def test_while_it_is_in_use(self, path: Path, damage: Callable[[Path], None]) -> None:
        """A file that is damaged under a process gives what was kept, or fails."""
        with closing(SQLiteStore(path)) as store:
            for number in range(200):
                state_of(store, f"talk {number}")["text"] = "x" * 100
        with closing(SQLiteStore(path)) as store:
            assert state_of(store, "talk 1")["text"] == "x" * 100
            damage(path)
            for number in range(200):
                with suppress(StateError):
                    assert state_of(store, f"talk {number}").get("text") == "x" * 100

    def test_a_damaged_value_reads_as_absent(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """A stored text that is no JSON any more is not there, and can be set and counted anew."""
        state = state_of(sqlite_store)
        state.update({"bad": 1, "good": 2})
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE value SET json = '{' WHERE key = 'bad'")
            connection.commit()
        assert "bad" not in state
        assert dict(state) == {"good": 2}
        with pytest.raises(KeyError):
            state["bad"]

    def test_a_newer_file_is_left_alone(self, path: Path) -> None:
        """A file of a later version of the package is neither changed nor read."""
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 99")
        content = path.read_bytes()
        with closing(SQLiteStore(path)) as store:
            for use in every_use(state_of(store)):
                unavailable(use, "newer version")
        assert path.read_bytes() == content


def in_the_way(path: Path, obstacle: str) -> Callable[[], None]:
    """Put something where the file would be, and return what takes it away."""
    if obstacle == "home is a file":
        path.parent.write_text("in the way")
        return path.parent.unlink
    path.mkdir(parents=True)
    return path.rmdir


class TestOutage:
    """A disk that takes nothing: each use fails, until it takes something again."""

    @pytest.mark.parametrize("obstacle", ["home is a file", "path is a directory"])
    def test_every_use_fails_until_the_obstacle_is_gone(
        self, path: Path, obstacle: str, clock: Clock
    ) -> None:
        """Said once; afterwards what was stored before the outage is there, and nothing else."""
        clear = in_the_way(path, obstacle)
        told: list[str] = []
        with closing(SQLiteStore(path, notify=told.append, clock=clock)) as store:
            state = state_of(store)
            for use in every_use(state):
                unavailable(use)
            unavailable(lambda: store.sweep(30))
            unavailable(store.check)
            [line] = told
            assert str(path) in line
            if obstacle == "path is a directory":
                assert "it is a folder. Remove the folder" in line
            clear()
            assert state.count("n") == 1
            assert store.problem is None

    def test_another_outage_is_said_again(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a minute; a full disk that takes a little now and then says it once."""
        told: list[str] = []
        with closing(SQLiteStore(path, notify=told.append)) as store:
            for number in (1, 2):
                clear = in_the_way(path, "path is a directory")
                unavailable(lambda: state_of(store).count("n"))
                clear()
                assert state_of(store).count("n") == 1
                assert len(told) == number
                store.close()
                path.unlink()
                monkeypatch.setattr(_sqlite_store, "_SAY_AGAIN_AFTER", 0.0 if number == 1 else 60.0)
                if number == 2:
                    in_the_way(path, "path is a directory")
                    unavailable(lambda: state_of(store).count("n"))
                    assert len(told) == number

    def test_a_lock_is_waited_for_within_bounds(self, path: Path) -> None:
        """A writer waits for another process; if that holds on, those after it do not wait."""
        with closing(SQLiteStore(path, busy_timeout=1)) as store:
            state = state_of(store)
            state["n"] = 10
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                begun = time.monotonic()
                unavailable(lambda: state.count("n"), "Another process holds it")
                waited = time.monotonic()
                assert 0.9 < waited - begun < 5
                for _ in range(20):
                    unavailable(lambda: state.count("n"))
                    assert state["n"] == 10
                assert time.monotonic() - waited < 0.9
                other.execute("COMMIT")
            assert state.count("n") == 11
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                counted: list[int] = []
                thread = threading.Thread(target=lambda: counted.append(state.count("n")))
                thread.start()
                thread.join(0.2)  # it is waiting, or about to
                other.execute("COMMIT")
                thread.join(30)
            assert counted == [12]

    def test_a_lock_that_nobody_lets_go_of(self, path: Path) -> None:
        """The same where another process hangs while it makes the file."""
        path.parent.mkdir()
        with closing(SQLiteStore(path, busy_timeout=0.05)) as store:
            state = state_of(store)
            with FileLock(f"{path}.lock"):
                unavailable(lambda: state.count("n"), "Another process holds it")
            assert state.count("n") == 1

    def test_a_full_database_fails_until_there_is_room(
        self, sqlite_store: SQLiteStore, path: Path
    ) -> None:
        """Where SQLite finds no room for a page, nothing is half-stored."""
        state = state_of(sqlite_store)
        state["n"] = 1
        connection = sqlite_store._connected(create=False)
        assert connection is not None
        # As good as a full disk, on every platform; the next connection is free of it again.
        connection.execute("PRAGMA max_page_count = 1")
        unavailable(lambda: state.__setitem__("long", "x" * 100_000), "Free space on the disk")
        assert dict(state) == {"n": 1}
        state["long"] = "x" * 100_000
        assert sqlite_store.problem is None

    @needs_rlimit
    def test_a_full_disk(self, path: Path) -> None:
        """Wherever the disk is full, a count is stored or fails; with room again it goes on.

        A limit on the size of files stands for the disk: a small file system of one's own cannot
        be mounted by everybody. It is met while the database is made, in its WAL, in the first
        or in a later page, and when the WAL goes into the database.
        """
        code = (
            "import resource\n"
            "from hermes_ext.exceptions import StateError\n"
            "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
            "for size in (0, 1, 100, 4096, 8192, 12_400, 20_600, 32_768, 60_000):\n"
            "    for first in ('new', 'there'):\n"
            "        store = SQLiteStore(f'{sys.argv[1]}-{size}-{first}')\n"
            "        state = SessionState(store, 'talk', 'planner')\n"
            "        if first == 'there':\n"
            "            state['n'] = 0\n"
            "        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))\n"
            "        counted = failed = 0\n"
            "        for _ in range(3):\n"
            "            try: counted = state.count('n')\n"
            "            except StateError as error:\n"
            "                assert error.unavailable; failed += 1\n"
            "        try: state['long'] = 'x' * 100_000\n"
            "        except StateError: pass\n"
            "        else: raise AssertionError(size)\n"
            "        assert counted + failed == 3, (size, first, counted, failed)\n"
            "        assert failed == 3 or size >= 4096, (size, first)\n"
            "        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
            "        assert state.count('n') == counted + 1, (size, first)\n"
            "        assert store.problem is None\n"
            "        store.close()\n"
        )
        finished(python(code, path))

    @pytest.mark.skipif(sys.platform != "linux", reason="root's rights are given up as in Linux")
    def test_a_read_only_home_still_gives_what_was_kept(self, path: Path) -> None:
        """In a read-only home earlier values are read, and nothing can be stored."""
        with closing(SQLiteStore(path)) as store:
            state_of(store)["n"] = 5
        there = sorted(path.parent.iterdir())
        path.chmod(0o400)
        path.parent.chmod(0o500)
        code = WITHOUT_RIGHTS + (
            "from hermes_ext.exceptions import StateError\n"
            "assert not os.access(store.path, os.W_OK)\n"
            "for use in (lambda: state.count('n'), store.check):\n"
            "    assert state['n'] == 5\n"
            "    try: use()\n"
            "    except StateError as error: assert error.unavailable\n"
            "    else: raise AssertionError\n"
            "assert store.sweep(30) == 0\n"
            "print(store.problem)\n"
            "store.close()\n"
        )
        try:
            assert "Make the file and its folder" in finished(python(code, path))
            assert sorted(path.parent.iterdir()) == there
        finally:
            path.parent.chmod(0o700)

    @pytest.mark.parametrize("kind", ["pipe", "device", "loop", "dangling", "lock", "wal"])
    def test_whatever_is_in_the_way(self, path: Path, kind: str) -> None:
        """Nothing waits for it, and `check` finds it too."""
        path.parent.mkdir()
        {
            "pipe": lambda: os.mkfifo(path),
            "device": lambda: path.symlink_to("/dev/full"),
            "loop": lambda: path.symlink_to(path),
            "dangling": lambda: path.symlink_to(path.parent / "no" / "where"),
            "lock": lambda: path.with_name("state.db.lock").mkdir(),
            "wal": lambda: path.with_name("state.db-wal").mkdir(),
        }[kind]()
        with closing(SQLiteStore(path, busy_timeout=1)) as store:
            unavailable(lambda: state_of(store).count("n"))
            unavailable(store.check)

    def test_checking_leaves_nothing_behind(self, sqlite_store: SQLiteStore, path: Path) -> None:
        """Also where there is no home yet."""
        sqlite_store.check()
        assert not path.parent.exists()
        path.parent.mkdir()
        sqlite_store.check()
        assert list(path.parent.iterdir()) == []
