"""Shell text, read as bash reads it."""

from __future__ import annotations

from hermes_ext.effects._record import Recorder


def read_text(text: str, recorder: Recorder) -> None:
    """Announce what a shell text does."""
    recorder.unknown("shell commands are not looked into", text)
