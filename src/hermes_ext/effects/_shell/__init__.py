"""Shell text, read as bash runs it."""

from __future__ import annotations

from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell.reading import Reading
from hermes_ext.effects._words import Hole

__all__ = ["Reading", "read_text"]


def read_text(text: str, recorder: Recorder, stdin: str | Hole | None = None) -> None:
    """Announce what a shell text does, run where `recorder.cwd` says."""
    Reading(recorder, stdin).text(text)
