"""Handlers that are exchanged while threads call them."""

from __future__ import annotations

from tests.load import swaps


def test_no_call_is_torn() -> None:
    """Eight threads call while the handlers are exchanged: each call has one generation, whole.

    `python -m tests.load.swaps` does it a million times.
    """
    figures = swaps.run(3_000)
    assert figures.torn == ()
    assert figures.calls >= 8
    assert figures.generations > 1
