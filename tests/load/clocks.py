"""A time of day that can be wrong: to be imported before anything of the package."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

_years: list[Iterator[int]] = [itertools.repeat(0)]
_real = time.time


def set_off_by(years: Iterator[int]) -> None:
    """How far the time of day is off, for each look at it."""
    _years[0] = years


def _wrong() -> float:
    return _real() + next(_years[0]) * 365 * 86_400


time.time = _wrong
