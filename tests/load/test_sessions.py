"""Sessions of the API server that run at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.load import sessions

pytestmark = pytest.mark.hermes


def test_nothing_crosses(tmp_path: Path) -> None:
    """Sixteen sessions with seven calls at once: no verdict, state, secret or rule of another.

    `python -m tests.load.sessions` does it with 64.
    """
    figures = sessions.run(tmp_path, 16, 2)
    assert not figures.crossed, "\n".join(figures.crossed)
    allowed = [len(sessions.plan_of(n) - {n % sessions.PROJECTS}) for n in range(16)]
    assert figures.tool_calls == 16 * 2 * (sessions.FILES + 1)
    assert figures.allowed == 2 * sum(allowed)
    assert figures.model_requests == 16 * 2 * 2
