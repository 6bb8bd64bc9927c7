"""Which turn of its conversation a turn is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from hermes_ext._forks import has_locks
from hermes_ext.exceptions import StateError
from hermes_ext.hooks.source import OWN
from hermes_ext.turns.store import SessionStore

_KEY: Final = "turns"
_REMEMBERED: Final = 1024  # conversations, for the time in which nothing can be stored


class TurnNumbers:
    """Numbers that never go back in a conversation and never repeat, over all its processes.

    They come from a counter in the session store. While that is unavailable there are none: what
    this process would count alone, another one, or the next, would count again.

    Args:
        store: where the counters are.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._last: OrderedDict[str, int] = OrderedDict()
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """After a fork."""
        self._lock = threading.Lock()

    def next(self, conversation_id: str, turns_before: int = 0) -> int:
        """The number of a turn that begins; 1 for the first.

        Raises:
            StateError: nothing can be counted at the moment. The turn has used up a number all the
                same, as far as this process knows.

        Args:
            conversation_id: the conversation.
            turns_before: how many came before as far as the host knows: what counting starts from
                in a conversation that is older than its counter.
        """
        # Ids come from hosts; a lone surrogate in one is no reason to fail a turn.
        name = conversation_id.encode("utf-8", "backslashreplace").decode()
        try:
            number = self._stored(name, turns_before)
        except StateError:
            self._remember(name, turns_before, None)
            raise
        return self._remember(name, turns_before, number)

    def _remember(self, name: str, turns_before: int, number: int | None) -> int:
        with self._lock:
            last = self._last.pop(name, 0)
            given = max(last, turns_before) + 1 if number is None else number
            self._last[name] = max(last, given)
            while len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)
        return given

    def _stored(self, name: str, turns_before: int) -> int | None:
        """The next number of the counter; None where something else is in its place."""
        with suppress(TypeError):
            number = self._store.count(name, OWN, _KEY, 1)
            # Those of turns that began while nothing could be stored are used up, too.
            used = max(self._last.get(name, 0), turns_before if number == 1 else 0)
            if number <= used:
                number = self._store.count(name, OWN, _KEY, used + 1 - number)
            return number
        return None
