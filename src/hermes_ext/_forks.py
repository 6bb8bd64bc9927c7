"""Locks in a forked child: a thread that holds one may be in the parent only, and never let go.

A child has only the thread that forked. What the others held is held for ever there, so that locks
are made anew; what they were changing under them is whole, because each change is one step.
"""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakValueDictionary


class HasLocks(Protocol):
    """An object with locks, living as long as somebody uses it."""

    def renew_locks(self) -> None:
        """Make all locks anew; called in the child, where there is no other thread."""


_known: Final[WeakValueDictionary[int, HasLocks]] = WeakValueDictionary()


def has_locks(owner: HasLocks) -> None:
    """Have `owner.renew_locks()` called in each forked child."""
    _known[id(owner)] = owner


def _renew_all() -> None:
    for ref in _known.valuerefs():
        owner = ref()
        if owner is not None:
            owner.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
