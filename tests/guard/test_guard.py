"""The guard as a handler."""

from __future__ import annotations

from pathlib import Path

from hermes_ext.guard.guard import own_guard
from hermes_ext.guard.places import Protected
from hermes_ext.hooks.source import OWN


def test_it_is_a_guard_that_closes(tmp_path: Path) -> None:
    """It judges tool calls in the caller's thread, before others, and blocks if it fails."""
    handler = own_guard(Protected.of(tmp_path, tmp_path / "extensions"))
    assert (handler.extension, handler.guard, handler.on_error) == (OWN, True, "block")
    assert handler.inline
    assert handler.priority < 0
