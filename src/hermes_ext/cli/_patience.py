"""Says in a terminal what takes so long; nothing where it does not, or where nobody looks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli._page import is_terminal

_SECONDS = 1.0
_LOOK_EVERY_SECONDS = 0.2


@contextmanager
def patience(doing: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Shows `doing` on stderr, if it is a terminal, while the block takes longer than a second.

    What it yields takes what is done next. quiet: shows nothing.
    """
    said = [doing]
    with _waiting(_show, said, shown=not quiet and is_terminal(sys.stderr)):
        yield lambda doing: said.__setitem__(0, doing)


@contextmanager
def progress(doing: str, at: Callable[[], Sequence[Any] | None]) -> Iterator[None]:
    """As `patience`, with a bar once `at` tells how far it is: (number, how many, …)."""
    with _waiting(_advance, doing, at, shown=is_terminal(sys.stderr)):
        yield


@contextmanager
def _waiting(show: Callable[..., None], *what: Any, shown: bool) -> Iterator[None]:
    """Has a thread show it after a second; rich is imported there, for those who have to wait."""
    if not shown:
        yield
        return
    done = threading.Event()
    # Not of the pool: it ends with this block, and a page that is printed needs nothing of `chain`.
    waiting = threading.Thread(target=_later, args=(show, what, done), daemon=True)
    waiting.start()
    try:
        yield
    finally:
        done.set()
        waiting.join()


def _later(show: Callable[..., None], what: Sequence[Any], done: threading.Event) -> None:
    if done.wait(_SECONDS):
        return
    from rich.console import Console

    show(Console(stderr=True, markup=False, emoji=False, highlight=False), done, *what)


def _advance(
    console: Any, done: threading.Event, doing: str, at: Callable[[], Sequence[Any] | None]
) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(printable(doing), total=None)
        while not done.wait(_LOOK_EVERY_SECONDS):
            known = at()
            if known is not None:
                bar.update(task, completed=known[0], total=known[1])


def _show(console: Any, done: threading.Event, said: Sequence[str]) -> None:
    from rich.text import Text

    with console.status(Text(printable(said[0]))) as status:
        while not done.wait(_LOOK_EVERY_SECONDS):
            status.update(Text(printable(said[0])))
