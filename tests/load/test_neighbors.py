"""Sessions whose handlers misbehave, beside others; `python -m tests.load.neighbors` measures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.load import neighbors

pytestmark = pytest.mark.hermes


COMPUTING = pytest.param(
    True,
    id="computing",
    marks=pytest.mark.skipif("LONG" not in os.environ, reason="LONG=1 runs it: half a minute"),
)


@pytest.mark.parametrize("spin", [pytest.param(False, id="waiting"), COMPUTING])
def test_the_others_have_their_verdicts(tmp_path: Path, spin: bool) -> None:
    """Whatever five sessions do, the others' verdicts are their own, and little is left behind."""
    figures = neighbors.run(tmp_path, 1, spin=spin)
    assert figures.wrong == ()
    assert figures.turns == 2 * neighbors.GOOD
    assert figures.most_left <= neighbors.MOST_LEFT
    assert spin or figures.most_left > 0
    assert figures.threads_of_ours <= neighbors.MOST_LEFT + 32
