"""Protected files under other names: a hard link is the file itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from stat import S_ISREG
from typing import Final

from attrs import define, field

from hermes_ext._text import printable
from hermes_ext.guard.places import Protected

__all__ = ["Identities"]

_FILES: Final = 5_000  # of the protected files whose identity is compared


@define
class Identities:
    """The protected files by what they are, not by name; looked up when first needed."""

    protected: Protected
    _known: frozenset[tuple[int, int]] | None = field(default=None, init=False)

    def of(self, path: str) -> str | None:
        """The protected file that a path is another name of, for a message."""
        with suppress(OSError, ValueError):
            status = os.stat(path)
            if S_ISREG(status.st_mode) and status.st_nlink > 1:
                if self._known is None:
                    self._known = frozenset(islice(self._all(), _FILES))
                if (status.st_dev, status.st_ino) in self._known:
                    return f"another name of a protected file: {printable(path)}"
        return None

    def _all(self) -> Iterator[tuple[int, int]]:
        for _, place in self.protected.known():
            for file in (place, *_files_below(place)):
                with suppress(OSError):
                    status = os.lstat(file)
                    if status.st_nlink > 1:
                        yield (status.st_dev, status.st_ino)


def _files_below(place: str) -> Iterator[str]:
    for folder, _, files in os.walk(place):
        yield from (os.path.join(folder, name) for name in files)
