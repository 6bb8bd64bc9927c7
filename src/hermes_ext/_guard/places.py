"""What is protected: the files that the rules are made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen


@frozen
class Protected:
    """The protected places of one Hermes home.

    home: the Hermes home. global_dir: where its extensions are. places: where loaded extensions
    really lie.
    """

    home: Path
    global_dir: Path
    places: tuple[Path, ...] = ()

    @classmethod
    def of(cls, home: Path, global_dir: Path, places: Iterable[Path] = ()) -> Protected:
        """The places of `home`, looked up on the disk now."""
        return cls(home, global_dir, tuple(places))
