"""Programs whose words say more than a table can tell, each by the name that the data gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hermes_ext.effects._programs.call import Call

__all__ = ["PROGRAMS"]

PROGRAMS: Final[dict[str, Callable[[Call], None]]] = {}
