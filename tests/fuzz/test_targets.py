"""Each target over its seeds and a few hundred generated inputs; `run.py` does it for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fuzz.made import inputs
from tests.fuzz.targets import TARGETS

_SLOW = {"start": 25, "config": 60, "regex": 120, "tree": 60, "decision_log": 120, "chat": 100}
"""How many inputs for those that take long; 200 for the others."""

NAMES = sorted(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_the_seeds_break_no_promise(name: str) -> None:
    """Inputs that once broke something are among them, each in a file."""
    assert TARGETS[name].seeds
    for seed in TARGETS[name].seeds:
        TARGETS[name].run(seed)


@pytest.mark.parametrize("name", NAMES)
def test_generated_inputs_break_no_promise(name: str) -> None:
    """The same inputs in each run."""
    found = TARGETS[name]

    @settings(
        max_examples=_SLOW.get(name, 200),
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(found))
    def tried(data: bytes) -> None:
        found.run(data)

    tried()


def test_the_documents_list_every_target() -> None:
    """With what it tries, in the words of the code."""
    text = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    for name, each in TARGETS.items():
        assert f"| `{name}` | {each.promises} |" in text
