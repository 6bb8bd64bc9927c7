"""Who has called: some ways to start Hermes show only in its own frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def is_called_by(matches: Callable[[FrameType], bool]) -> bool:
    """Whether a frame of this thread, from the caller outwards, matches."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not matches(frame):
        frame = frame.f_back
    return frame is not None
