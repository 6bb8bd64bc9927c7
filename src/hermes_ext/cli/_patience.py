"""Says in a terminal what takes so long; nothing where it does not, or where nobody looks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from hermes_ext._hooks.text import printable

_SECONDS = 1.0


@contextmanager
def patience(doing: str) -> Iterator[None]:
    """Shows `doing` on stderr, if it is a terminal, while the block takes longer than a second."""
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        yield
        return
    done = threading.Event()
    waiting = threading.Thread(target=_show, args=(console, printable(doing), done), daemon=True)
    waiting.start()
    try:
        yield
    finally:
        done.set()
        waiting.join()


def _show(console: Console, doing: str, done: threading.Event) -> None:
    if done.wait(_SECONDS):
        return
    with console.status(Text(doing)):
        done.wait()
