"""What files hold that the call itself writes: a script that is written and run in one call."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from hermes_ext.effects._record import Recorder
from hermes_ext.effects._words import Hole, Word, shown, tags_of

_MOST: Final = 4  # texts that a file may hold
_LONGEST: Final = 2_000_000
# These leave a file's text as it is.
_KEEPING: Final = frozenset({"chmod", "chown", "chgrp", "touch"})
# Programs are told to show or carry such files, and seldom to run them.
_PROSE: Final = re.compile(
    r"\.(?:adoc|cfg|conf|css|csv|env|html?|ini|json|lock|log|md|patch|diff|rst|svg|toml|tsv|txt|xml"
    r"|ya?ml)\Z|(?:\A|/)(?:LICENSE|CHANGELOG|README|\.gitignore|\.env[^/]*)\Z",
    re.IGNORECASE,
)
_RUN_ALL_THE_SAME: Final = re.compile(r"(?:\A|/)package\.json\Z")


class Files:
    """The texts of the files that a call writes, each in all ways in which they may be.

    Attributes:
        all: the text of the call, for what of it may be in a file.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._rec = recorder
        self._held: dict[Word, tuple[Word, ...]] = {}
        self._by: dict[Word, set[str]] = {}
        self.all = Hole()

    def put(
        self, word: Word, content: Word, by: str, *, append: bool = False, certain: bool = True
    ) -> None:
        """A file gets a text; `certain`: it surely does."""
        keys = self._keys(word)
        for key in keys:
            known = self._held.get(key, ())
            before = known or (self._before(key),)
            sure = certain and len(keys) == 1 and self._is_writable(key, by)
            kept = known if sure else before
            if append:
                added = [_joined(each, content) for each in before]
                new = tuple(added if sure else dict.fromkeys((*kept, *added)))
            else:
                new = tuple(dict.fromkeys((*kept, content)))
            if len(new) > _MOST or any(len(shown(each)) > _LONGEST for each in new):
                text = "\n".join(map(shown, new))
                new = (Hole(text=text[:_LONGEST], tags=tags_of(new)),)
            self._held[key] = new
            self._by.setdefault(key, set()).add(by)

    def get(self, word: Word) -> Sequence[Word]:
        """What a file may hold; nothing if the call has not written it."""
        if not (self._held or self._rec.has_written()):
            return ()
        found: dict[Word, None] = {}
        for key in self._keys(word):
            found |= dict.fromkeys(self._held.get(key, ()))
            by = self._rec.changed_by(key) if isinstance(key, str) else {"?"}
            if by - self._by.get(key, set()) - _KEEPING and (found or isinstance(key, str)):
                found[self.all] = None
        return tuple(found)

    def given(self, words: Sequence[Word]) -> Iterator[Word]:
        """What a program may run: those of its words, and all files that may be code."""
        named = {key for each in words for key in self._keys(each)} if self._held else set()
        for key, contents in self._held.items():
            name = "" if isinstance(key, Hole) else key
            if key in named or not _PROSE.search(name) or _RUN_ALL_THE_SAME.search(name):
                yield from contents

    def blur(self) -> None:
        """Files may have further names from now on, by which they change."""
        for key, texts in self._held.items():
            self._held[key] = tuple(dict.fromkeys((*texts, self.all)))

    def below(self, folder: str) -> Iterator[Word]:
        """What files in a directory of this name hold: hooks of git."""
        for key, contents in self._held.items():
            if isinstance(key, str) and f"/{folder}/" in key:
                yield from contents

    def _before(self, key: Word) -> Word:
        there = isinstance(key, Hole) or not self._rec.machine.local or os.path.lexists(key)
        return Hole() if there else ""

    def _is_writable(self, key: Word, by: str) -> bool:
        """Whether a redirection there does not fail, as far as the file itself can tell."""
        if isinstance(key, Hole) or not self._rec.machine.local:
            return False
        if self._rec.changed_by(key) - self._by.get(key, set()) - {by}:
            return False  # by chmod, for one
        return not os.path.lexists(key) or os.access(key, os.W_OK)

    def _keys(self, word: Word) -> list[Word]:
        if isinstance(word, Hole):
            return [word]
        return list(dict.fromkeys(each.leads_to for each in self._rec.places(word)))


def _joined(one: Word, other: Word) -> Word:
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    return Hole(text=shown(one) + shown(other), tags=tags_of((one, other)))
