"""What goes on when the machine does not: a script, since each needs a process of its own.

    python -m tests.load.outages fork FOLDER
    python -m tests.load.outages clock FOLDER
    python -m tests.load.outages full FOLDER        # with mounts of its own, as their root
    python -m tests.load.outages read-only FOLDER   # likewise

Fails by an AssertionError, and says what it did on standard output.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.load import clocks  # first: the package takes the time from it
from tests.projects import Place

from hermes_ext import Runtime, register_hook
from hermes_ext.exceptions import ConfigError
from hermes_ext.loading.reloading.in_force import InForce
from hermes_ext.settings.editing import ListEdit, edit_lists
from hermes_ext.trust.place import find_project
from hermes_ext.trust.store import Standing, TrustStore, judge
from hermes_ext.trust.tree import read_tree
from hermes_ext.turns.decisions.reading import read_decisions
from hermes_ext.turns.session_state import SessionState
from hermes_ext.turns.sqlite_store import SQLiteStore

GUARD = """\
from hermes_ext import HookResult, register_hook


@register_hook("intercept_tool_call", on_store_error="pass")
async def tally(tool_name, state, session_state):
    state.count("calls")
    session_state.count("calls")


@register_hook("intercept_tool_call", guard=True)
def judge(tool_args):
    return HookResult.block("not that") if tool_args["what"] == "bad" else None
"""
CONFIG = "# mine\nextensions:\n  on: [redact-secrets]\nmodel: scripted\n"


def place_in(folder: Path) -> Place:
    """A home with a guard, and a trusted project with another one."""
    place = Place(folder)
    place.add("guard", GUARD, to_home=True)
    place.add("only", GUARD.replace("bad", "worse"))
    (place.home / "config.yaml").write_text(CONFIG)
    place.trust()
    return place


def runtime_in(place: Place) -> Runtime:
    """As a host starts it, in the project."""
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    loaded = {one.name for one in runtime.records if one.loaded}
    assert loaded == {"redact-secrets", "guard", "only"}, runtime.records
    return runtime


def three_calls(runtime: Runtime, session: str, prefix: str = "") -> None:
    """Both guards hold, and what they have nothing against passes."""
    with runtime.turn(session_id=session) as turn:
        for what, blocked in (("good", None), ("bad", "guard"), ("worse", "only")):
            call = f"{prefix}{session}-{what}"
            outcome = turn.intercept_tool_call("tool", {"what": what}, tool_call_id=call)
            assert outcome.blocked_by == blocked, (what, outcome.message)
        assert turn.state["calls"] == 6  # each extension counts what it is asked


class Told(logging.Handler):
    """What the person is told."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        logging.getLogger("hermes_ext").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


# -- forks ----------------------------------------------------------------------------------------


def in_child(work: Callable[[], None], seconds: int = 120) -> int:
    """Do the work in a forked child; its exit code, 0 if all went well, -14 if it hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            logging.getLogger("hermes_ext").exception("in the child")
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fork(folder: Path) -> None:
    """Children of a process whose threads are in the middle of everything."""
    warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of threads and forks
    place = place_in(folder)
    runtime = runtime_in(place)
    assert runtime.log is not None
    log = runtime.log.path

    # A child that finds everything held: by threads that it does not have.
    other = Place(folder, "other", place.home)
    other.add("only", GUARD.replace("bad", "worse"))
    other.trust()
    turn = runtime.turn(session_id="held")
    state = runtime.session_state("held", "guard")
    with ThreadPoolExecutor(1) as holder:
        go = threading.Event()
        held = threading.Event()

        def hold() -> None:
            in_force = runtime._book
            assert isinstance(in_force, InForce)
            known = in_force._projects
            ours = (in_force._loading, in_force._lock, known._lock)
            with contextlib.ExitStack() as locks:
                for lock in (turn.state.lock, turn.lock, state.lock, *ours):
                    locks.enter_context(lock)
                for each in known._known.values():
                    locks.enter_context(each.lock)
                held.set()
                go.wait()

        holding = holder.submit(hold)
        held.wait()

        def judged() -> None:
            assert turn.intercept_tool_call("tool", {"what": "bad"}).blocked_by == "guard"
            assert not turn.intercept_tool_call("tool", {"what": "good"}).blocked
            assert turn.state["calls"] == 4
            turn.bind(session_id="held-2")
            turn.close()
            three_calls(runtime, "child-of-held", "child-")
            # Another project's extensions are loaded by a thread that the child has not.
            with runtime.turn(session_id="other", cwd=other.root) as elsewhere:
                outcome = elsewhere.intercept_tool_call("tool", {"what": "worse"})
                assert outcome.blocked_by == "only", outcome
            assert runtime.log is not None
            assert runtime.log.flush(60)

        try:
            assert in_child(judged) == 0
        finally:
            go.set()
        holding.result()
    turn.close()

    # Children of a busy process: whatever its threads are doing at the moment.
    over = threading.Event()
    rounds = itertools.count()

    def busy(name: str) -> None:
        while not over.is_set():
            three_calls(runtime, f"{name}-{next(rounds)}", "parent-")

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(busy, f"thread{n}") for n in range(4)]
        codes = []
        with runtime.turn(session_id="main") as mine:
            assert not mine.intercept_tool_call("tool", {"what": "good"}).blocked
            for number in range(10):

                def goes_on(number: int = number) -> None:
                    assert mine.state["calls"] == 2
                    outcome = mine.intercept_tool_call("tool", {"what": "bad"})
                    assert outcome.blocked_by == "guard"
                    three_calls(runtime, f"child{number}", "child-")
                    assert runtime.log is not None
                    assert runtime.log.flush(60)

                codes.append(in_child(goes_on))
            assert mine.state["calls"] == 2
        over.set()
        for each in running:
            each.result()
    assert codes == [0] * 10, codes
    runtime.close()
    ids = [line.get("tool_call_id", "") for line in read_decisions(log)]
    named = [one for one in ids if one.startswith(("parent-", "child-"))]
    assert len(named) == len(set(named)), "a line stands twice in the log"
    done = next(rounds)
    assert len([one for one in named if one.startswith("parent-")]) == 3 * done
    assert len([one for one in named if one.startswith("child-")]) == 3 * 11
    print("forks: 11 children beside", done, "turns")


# -- the clock ------------------------------------------------------------------------------------


def clock(folder: Path) -> None:
    """The time of day is wrong, by years, now and then."""
    place = place_in(folder)

    def start(years: Iterator[int], *sessions: str) -> None:
        clocks.set_off_by(years)
        runtime = runtime_in(place)
        for session in sessions:
            three_calls(runtime, session)
        runtime.close()

    def kept(session: str) -> object:
        clocks.set_off_by(itertools.repeat(0))
        with contextlib.closing(SQLiteStore(place.home / "extensions-state.db")) as store:
            return SessionState(store, session, "guard").get("calls")

    # A start in the far future, or in the past before the clock was set, forgets nothing; nor does
    # the next one, by a clock that is right again.
    start(itertools.repeat(0), "idle", "used")
    start(itertools.repeat(10))
    assert (kept("idle"), kept("used")) == (3, 3)
    start(itertools.repeat(-40), "used", "new")
    start(itertools.repeat(0))
    assert (kept("idle"), kept("used"), kept("new")) == (3, 6, 3)
    start(itertools.repeat(10), "used")
    start(itertools.repeat(0), "used")
    assert (kept("idle"), kept("used"), kept("new")) == (3, 12, 3)

    # Years forth and back between any two looks at it.
    clocks.set_off_by(itertools.cycle([0, 10, -10, 40, -40, 1]))
    runtime = runtime_in(place)
    for number in range(20):
        three_calls(runtime, f"s{number}")
        assert SessionState(runtime.services.store, f"s{number}", "guard")["calls"] == 3
    runtime.close()
    assert runtime.log is not None
    lines = list(read_decisions(runtime.log.path))
    assert len(lines) == (6 * 3) + 20 * 3

    # Limits are not of that clock: one in time is not cut short, a late one is.
    go = threading.Event()

    @register_hook("intercept_tool_call", tools=["waits"], timeout=60)
    def waits(tool_name: str) -> None:
        threading.Event().wait(0.05)

    @register_hook("intercept_tool_call", tools=["late"], timeout=0.05)
    def late(tool_name: str) -> None:
        go.wait()

    limited = Runtime([waits, late])
    with limited.turn(session_id="s") as turn:
        for _ in range(6):
            assert not turn.intercept_tool_call("waits", {}).blocked
        begun = time.monotonic()
        assert turn.intercept_tool_call("late", {}).blocked
        assert time.monotonic() - begun < 30
    go.set()
    print("clock: 7 starts,", len(lines), "calls")


# -- the disk -------------------------------------------------------------------------------------


@contextlib.contextmanager
def full(home: Path) -> Iterator[None]:
    """A disk without a byte to spare."""
    fill(home)
    try:
        yield
    finally:
        (home / "ballast").unlink()


def fill(home: Path) -> None:
    """Take what is free: the session store gives room back whenever it lets go of its file."""
    with (home / "ballast").open("ab", buffering=0) as file:
        for size in (65_536, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass


@contextlib.contextmanager
def read_only(home: Path) -> Iterator[None]:
    """A disk that takes nothing, from root neither."""
    subprocess.run(["mount", "-o", "remount,ro", home], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", home], check=True)


def disk(folder: Path, outage: Callable[[Path], contextlib.AbstractContextManager[None]]) -> None:
    """The home on a small disk of its own; before, while and after it takes nothing."""
    home = folder / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", home], check=True)
    place = place_in(folder)
    told = Told()
    runtime = runtime_in(place)
    three_calls(runtime, "s")
    runtime.close()
    assert told.lines == []
    config = place.home / "config.yaml"
    project = find_project(place.root, home=home, global_dir=home / "extensions")
    assert project is not None
    trusted = TrustStore(home).entries()
    if outage is full:
        three_calls(runtime, "s")  # with its files open
    kept = {path: path.read_bytes() for path in _small_files(home)}

    with outage(home):
        for _ in range(12):  # in the end nothing fits into the log's last page any more
            if outage is full:
                fill(home)  # a store that has let go of its file in between has given room back
            three_calls(runtime, "s")
        assert runtime.log is not None
        runtime.log.flush(60)
        # A start in the middle of it.
        started = runtime_in(place)
        three_calls(started, "new")
        # What a person changes is changed or refused, and never half of it.
        if outage is full:
            fill(home)
        refused(lambda: edit_lists(config, [ListEdit("extensions", "on", add=("b",))]))
        place.add("more", GUARD)
        refused(lambda: TrustStore(home).trust(read_tree(project)))
        (place.hermes / "extensions" / "more" / "__init__.py").unlink()
        (place.hermes / "extensions" / "more").rmdir()
        assert judge(project, home).standing is Standing.TRUSTED
        assert TrustStore(home).entries() == trusted
        assert {path: path.read_bytes() for path in kept} == kept
        assert {path.name for path in home.iterdir()} <= {
            *(path.relative_to(home).parts[0] for path in kept),
            *("ballast", "logs", "extensions-state.db", "extensions-state.db-shm"),
            *("extensions-state.db-wal", "extensions-state.db.lock", ".config.yaml.lock"),
        }, list(home.iterdir())
        assert started.log is not None
        started.log.flush(60)
    failures = [line for line in told.lines if line.startswith("guard, ") or "only, " in line[:6]]
    notices = [line for line in told.lines if line not in failures]
    assert all("session state is unavailable" in line for line in failures), told.lines
    for about in ("the decision log cannot be written", "session state is unavailable"):
        lines = [line for line in notices if about in line]
        # Once by each of the two runtimes, which in life are two processes; a line of the second
        # may be so short that it still fits.
        assert 1 <= len(lines) <= 2, told.lines
        assert all(str(home) in line for line in lines)

    runtime.close()
    started.close()
    store = SQLiteStore(home / "extensions-state.db")
    expected = (14 if outage is full else 13) * 3
    for name in ("guard", "only of " + str(place.root.resolve())):
        # What could not be stored in the outage is not stored after it.
        assert SessionState(store, "s", name)["calls"] <= expected - 3, (name, expected)
    store.close()
    for each in (runtime, started):
        three_calls(each, "s")
        each.close()
    lines = list(read_decisions(home / "logs" / "extensions.jsonl"))
    assert sum(line.get("dropped", 0) for line in lines) > 0
    edit_lists(config, [ListEdit("extensions", "on", add=("b",))])
    assert config.read_text() == CONFIG.replace("[redact-secrets]", "[redact-secrets, b]")
    place.add("more", GUARD)
    TrustStore(home).trust(read_tree(project))
    assert judge(project, home).standing is Standing.TRUSTED
    print("disk:", len(told.lines), "notices")


def _small_files(home: Path) -> list[Path]:
    """What a person or a command wrote."""
    ours = ("logs", "extensions-state.db")
    files = [path for path in home.rglob("*") if path.is_file()]
    return [path for path in files if not path.relative_to(home).parts[0].startswith(ours)]


def refused(change: Callable[[], object]) -> None:
    """It is refused, naming the file."""
    named = None
    try:
        change()
    except ConfigError as error:
        named = error.path
    assert named is not None


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2]).resolve()
    if what == "fork":
        fork(where)
    elif what == "clock":
        clock(where)
    else:
        disk(where, {"full": full, "read-only": read_only}[what])
