"""Every way of the table: with a guard nothing comes of it, and without one it would."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.enforcement.groups import GROUPS
from tests.enforcement.report import expected, page
from tests.enforcement.table import Group, Way, check

ROWS = [pytest.param(group, way, id=way.name) for group in GROUPS for way in group.ways]


@pytest.mark.hermes
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "taken out"])
@pytest.mark.parametrize(("group", "way"), ROWS)
def test_a_way(
    tmp_path_factory: pytest.TempPathFactory, group: Group, way: Way, guarded: bool
) -> None:
    check(group, way, tmp_path_factory, guarded=guarded)


def test_the_page_says_what_is_tried() -> None:
    """The docs have every way, with the result that it has to have."""
    written = Path(__file__).parents[2] / "docs" / "enforcement.md"
    made = page({group.key: expected(group) for group in GROUPS})
    assert written.read_text(encoding="utf-8") == made, (
        "run python -m tests.enforcement.report --expected > docs/enforcement.md"
    )
