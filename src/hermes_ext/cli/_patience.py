"""Says in a terminal what takes so long; nothing where it does not, or where nobody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from hermes_ext._text import printable

_SECONDS = 1.0
_LOOK_EVERY_SECONDS = 0.2


@contextmanager
def patience(doing: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Shows `doing` on stderr, if it is a terminal, while the block takes longer than a second.

    What it yields takes what is done next. quiet: shows nothing.
    """
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda doing: None
        return
    done = threading.Event()
    status = console.status(Text(printable(doing)))
    waiting = threading.Thread(target=_show, args=(status, done), daemon=True)
    waiting.start()
    try:
        yield lambda doing: status.update(Text(printable(doing)))
    finally:
        done.set()
        waiting.join()


@contextmanager
def progress(doing: str, at: Callable[[], Sequence[Any] | None]) -> Iterator[None]:
    """As `patience`, with a bar once `at` tells how far it is: (number, how many, …)."""
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        yield
        return
    done = threading.Event()
    waiting = threading.Thread(
        target=_advance, args=(console, printable(doing), at, done), daemon=True
    )
    waiting.start()
    try:
        yield
    finally:
        done.set()
        waiting.join()


def _advance(
    console: Console,
    doing: str,
    at: Callable[[], Sequence[Any] | None],
    done: threading.Event,
) -> None:
    if done.wait(_SECONDS):
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)
        while not done.wait(_LOOK_EVERY_SECONDS):
            known = at()
            if known is not None:
                bar.update(task, completed=known[0], total=known[1])


def _show(status: Status, done: threading.Event) -> None:
    if done.wait(_SECONDS):
        return
    with status:
        done.wait()
