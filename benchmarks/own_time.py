"""What of Hermes's time is ours: a clock that runs on our side of each seam.

Two whole turns differ by far more than we cost, whatever is compared of them. So the time of our
own code is taken, in the very turn that it is a part of.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from attrs import evolve

from hermes_ext.hosts.hermes.adapter.wraps import seams

_TIMED = "__own_time__"
_OF_IT = "__own_time_of_it__"


class OwnTime:
    """Nanoseconds that were spent in this package since `attach`, in whatever thread."""

    def __init__(self) -> None:
        self.nanoseconds = 0
        self._side = _Side()

    def attach(self) -> None:
        """Have it run at all seams. Before the plugin attaches them."""
        seams.SEAMS = tuple(
            evolve(seam, wrapper=self._timed(seam.wrapper, ours=True)) for seam in seams.SEAMS
        )

    def _timed(self, function: Callable[..., Any], *, ours: bool) -> Callable[..., Any]:
        """The function on this side; functions that it is given from the other are on that."""

        clock, side = time.perf_counter_ns, self._side

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            now = clock()
            before = side.ours
            if before:
                self.nanoseconds += now - side.since
            # What measuring takes is nobody's.
            given = [self._from_the_other(each, ours) for each in args]
            named = {name: self._from_the_other(each, ours) for name, each in kwargs.items()}
            side.ours = ours
            side.since = clock()
            try:
                return function(*given, **named)
            finally:
                now = clock()
                if ours:
                    self.nanoseconds += now - side.since
                side.ours = before
                side.since = clock()

        setattr(call, _TIMED, True)
        return call

    def _from_the_other(self, value: Any, ours: bool) -> Any:
        if not isinstance(value, (FunctionType, MethodType)) or getattr(value, _TIMED, False):
            return value
        is_ours = str(value.__module__).startswith("hermes_ext.")
        if is_ours == ours:
            return value
        known = vars(value).get(_OF_IT)
        if known is None:
            known = self._timed(value, ours=is_ours)
            if isinstance(value, FunctionType):  # the same for the same, as without a clock
                setattr(value, _OF_IT, known)
        return known


class _Side(threading.local):
    """On which side a thread is, and since when, by `time.perf_counter_ns`."""

    ours = False
    since = 0
