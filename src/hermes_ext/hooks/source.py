"""Where an extension comes from."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

OWN: Final = "hermes-ext"
"""The name that the package itself bears in messages, logs and orders; no extension has it."""


class Source(StrEnum):
    """Where an extension comes from, in the order in which ties between handlers are broken."""

    BUNDLED = "bundled"
    ENTRY_POINT = "entry-point"
    GLOBAL = "global"
    PROJECT = "project"

    @property
    def rank(self) -> int:
        """0 for bundled up to 3 for project."""
        return _RANKS[self]


_RANKS: Final = {source: rank for rank, source in enumerate(Source)}
