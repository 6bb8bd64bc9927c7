"""Which calls a turn has made, and how often each since something has changed."""

from __future__ import annotations


class Calls:
    """The calls of one turn, by the digest of tool and arguments. Used under the turn's lock.

    A call is known by its id, so that one that is judged twice is counted once, and keeps its
    number, whatever other calls were made in between.
    """

    def __init__(self) -> None:
        self._made: dict[str, int] = {}
        self._same: dict[str, list[str]] = {}
        self._changed: set[str] = set()

    def add(self, digest: str, call_id: str, window: int | None) -> int:
        """The number of this call among those that are the same, of the last so many calls."""
        if call_id in self._made:  # judged again, maybe with other arguments
            for other, ids in self._same.items():
                if other != digest and call_id in ids:
                    ids.remove(call_id)
        now = self._made.setdefault(call_id, len(self._made))
        same = self._same.setdefault(digest, [])
        if call_id not in same:
            same.append(call_id)
        if window is not None:
            same[:] = [each for each in same if self._made[each] > now - window]
        return same.index(call_id) + 1

    def number(self, digest: str, call_id: str) -> int:
        """The number that `add` gave; 0 if something has changed since."""
        same = self._same.get(digest, [])
        return same.index(call_id) + 1 if call_id in same else 0

    def changed(self, digest: str) -> None:
        """This call may have changed something: all others begin anew.

        Only the first time in a turn. Whoever makes the same changes again and again goes in
        circles too.
        """
        if digest not in self._changed:
            self._changed.add(digest)
            self._same = {digest: self._same.get(digest, [])}
