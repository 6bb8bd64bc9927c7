"""Turns of Hermes's batch runner, which gives its agents no platform to be known by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from hermes_ext.hosts.hermes.adapter.state import state

BATCH: Final = "batch"
"""The origin of such a turn, and its platform."""

_RUNNER: Final = "batch_runner.py"


def is_batch(agent: Any) -> bool:
    """Whether the batch runner runs an agent; known from the first time it is asked in its call.

    Neither a name of the module nor of the process tells: it is run as `__main__`, imported, or
    started anew in each worker, as the platform has it.
    """
    platform = str(getattr(agent, "platform", "") or "")
    if platform:
        return platform == BATCH
    if agent not in state.batch_agents and is_called_by(_is_of_runner):
        state.batch_agents.add(agent)
    return agent in state.batch_agents


def _is_of_runner(frame: FrameType) -> bool:
    return os.path.basename(frame.f_code.co_filename) == _RUNNER


def is_called_by(matches: Callable[[FrameType], bool]) -> bool:
    """Whether a frame of this thread, from the caller outwards, matches."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not matches(frame):
        frame = frame.f_back
    return frame is not None
