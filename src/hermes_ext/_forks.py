"""Locks in a forked child: a thread that holds one may be in the parent only, and never let go.

A child has only the thread that forked. What the others held is held for ever there, so that locks
are made anew; what they were changing under them is whole, because each change is one step. A
module that another one is importing is not, so a fork waits for it.
"""

from __future__ import annotations

import os
import time
from importlib import _bootstrap
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

_Owner = TypeVar("_Owner")


class HasLocks(Protocol):
    """An object with locks, living as long as somebody uses it."""

    def renew_locks(self) -> None:
        """Make all locks anew; called in the child, where there is no other thread."""


_LONGEST_IMPORT: Final = 2.0  # seconds that a fork waits; an import may itself wait for the forker

_known: Final[WeakValueDictionary[int, HasLocks]] = WeakValueDictionary()


def has_locks(owner: HasLocks) -> None:
    """Have `owner.renew_locks()` called in each forked child."""
    _known[id(owner)] = owner


def living(known: WeakValueDictionary[int, _Owner]) -> list[_Owner]:
    """Those that somebody still uses."""
    # valuerefs() copies in one step; iterating fails when another thread adds one meanwhile.
    return [owner for ref in known.valuerefs() if (owner := ref()) is not None]


def _renew_all() -> None:
    for owner in living(_known):
        owner.renew_locks()


def _wait_for_imports() -> None:
    """Many modules are imported when they are first used, which may be in any thread."""
    until = time.monotonic() + _LONGEST_IMPORT
    while _others_import() and time.monotonic() < until:
        time.sleep(0.001)


def _others_import() -> bool:
    locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
    held = [ref() for name, ref in tuple(locks.items()) if name.startswith("hermes_ext")]
    return any(getattr(lock, "owner", None) not in (None, get_ident()) for lock in held)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_renew_all)
