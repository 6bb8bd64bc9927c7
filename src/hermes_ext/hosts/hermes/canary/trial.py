"""The trial: all surfaces at once, and who is to blame if one fails."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from hermes_ext._values import frozen
from hermes_ext.hosts.hermes.canary.proofs import Proof, Surface, judge, skipped
from hermes_ext.hosts.hermes.canary.scratch import UsersPlugins, users_plugins
from hermes_ext.hosts.hermes.canary.surfaces import SURFACES, Children, one_turn, why_not_on
from hermes_ext.hosts.hermes.canary.turn import Seen
from hermes_ext.hosts.hermes.process.home import why_not
from hermes_ext.hosts.hermes.process.processes import Start, cold_start

Tell = Callable[[str], None]


@frozen
class Canary:
    """What the trial came to.

    proofs: a row for each surface and hook, () where none was tried. why_not: why none was.
    plugins: the user's plugins that were there. absent: those of `plugins.enabled` that Hermes did
    not load. culprits: the plugins without which it would have gone well. seconds: how long it all
    took.
    """

    proofs: tuple[Proof, ...] = ()
    why_not: str | None = None
    plugins: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    culprits: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values."""
        return {
            "why_not": self.why_not,
            "proofs": [proof.to_json() for proof in self.proofs],
            "plugins": [*self.plugins],
            "absent": [*self.absent],
            "culprits": [*self.culprits],
            "seconds": round(self.seconds, 3),
        }


def try_canary(
    home: Path,
    *,
    seconds: float = 120.0,
    surfaces: Sequence[Surface] = SURFACES,
    start: Start = cold_start,
    tell: Tell = lambda doing: None,
) -> Canary:
    """Have the installed Hermes take a turn on each surface, in scratch homes.

    home: the user's, of which only the plugins and their settings are read. seconds: how long all
    of it may take. tell: gets what is being done, whenever that changes. No process is left behind,
    however it ends.
    """
    reason = why_not()
    if reason is not None:
        return Canary(why_not=reason)
    begun = time.monotonic()
    deadline = begun + seconds
    plugins = users_plugins(home)
    tried = [surface for surface in surfaces if why_not_on(surface) is None]
    with _workshop(start) as workshop:
        seen = workshop.turns({surface: (surface, plugins) for surface in tried}, deadline, tell)
        proofs = tuple(
            proof
            for surface in surfaces
            for proof in (
                judge(surface, seen[surface])
                if surface in seen
                else skipped(surface, why_not_on(surface) or "")
            )
        )
        culprits = _culprits(workshop, proofs, plugins, deadline, tell)
    loaded = tuple(dict.fromkeys(name for each in seen.values() for name in each.plugins))
    users = [name for name in plugins.enabled if _is_among(name, loaded)]
    return Canary(
        proofs,
        plugins=tuple(users),
        # Without a turn nothing is known of them.
        absent=tuple(
            name
            for name in plugins.enabled
            if name not in users and any(each.seams for each in seen.values())
        ),
        culprits=culprits,
        seconds=time.monotonic() - begun,
    )


def _is_among(name: str, loaded: Sequence[str]) -> bool:
    return any(name in (each, each.rpartition("/")[2]) for each in loaded)


def _culprits(
    workshop: _Workshop, proofs: Sequence[Proof], plugins: UsersPlugins, deadline: float, tell: Tell
) -> tuple[str, ...]:
    """Whose functions stand in the way; else, by leaving plugins out, whose absence mends it."""
    failed = [proof for proof in proofs if proof.failed]
    named = dict.fromkeys(
        suspect.plugin
        for proof in failed
        for suspect in proof.suspects
        if suspect.plugin is not None
    )
    if named or not failed or not plugins.enabled or time.monotonic() > deadline:
        return tuple(named)
    surface = failed[0].surface
    tell(f"Trying {surface} without your plugins, to see whose fault it is")
    alone = workshop.turns({"none": (surface, plugins.only())}, deadline, lambda _: None)
    if any(proof.failed for proof in judge(surface, alone["none"])):
        return ()
    if len(plugins.enabled) == 1:
        return plugins.enabled
    each = {name: (surface, plugins.only(name)) for name in plugins.enabled}
    tell(f"Trying {surface} with one plugin at a time, to see whose fault it is")
    tries = workshop.turns(each, deadline, lambda _: None)
    return tuple(
        name
        for name, one in tries.items()
        if not one.late and any(proof.failed for proof in judge(surface, one))
    )


class _Workshop:
    """A folder for scratch homes, and threads that have Hermes take turns in them."""

    def __init__(self, folder: Path, start: Start, threads: ThreadPoolExecutor) -> None:
        self._folder = folder
        self._start = start
        self._threads = threads
        self._children: list[Children] = []

    def turns(
        self, wanted: dict[str, tuple[Surface, UsersPlugins]], deadline: float, tell: Tell
    ) -> dict[str, Seen]:
        """A turn for each name, side by side."""
        running: dict[Future[Seen], str] = {}
        for name, (surface, plugins) in wanted.items():
            children = Children(self._start)
            self._children.append(children)
            base = self._folder / str(len(self._children))
            future = self._threads.submit(one_turn, base, surface, plugins, deadline, children)
            running[future] = name
        waiting = set(running)
        while waiting:
            left = [name for future, name in running.items() if future in waiting]
            tell(f"Trying the hooks in Hermes: {', '.join(left)}")
            _, waiting = wait(waiting, return_when="FIRST_COMPLETED")
        return {name: future.result() for future, name in running.items()}

    def end(self) -> None:
        """Kill what still runs."""
        for children in self._children:
            children.end()


@contextlib.contextmanager
def _workshop(start: Start) -> Iterator[_Workshop]:
    with (
        tempfile.TemporaryDirectory(
            prefix="hermes-ext-canary-", ignore_cleanup_errors=True
        ) as folder,
        _ended_by_signals(),
        ThreadPoolExecutor(max_workers=3) as threads,  # not of the pool: leaving waits for them
    ):
        workshop = _Workshop(Path(folder), start, threads)
        try:
            yield workshop
        finally:
            # Before the threads are waited for, which wait for what runs.
            workshop.end()
            threads.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Has a polite request to end be an exception, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    free = [number for number in asked if signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)
