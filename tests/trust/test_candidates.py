"""Which folders above a directory may be projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext.trust.possible_projects import Listed, possible_projects


@pytest.mark.parametrize("listed", [True, False])
def test_above_the_repository_only_what_the_user_has_listed(tmp_path: Path, listed: bool) -> None:
    outer = tmp_path.resolve() / "outer"
    inner, home = outer / "inner", tmp_path / "home"
    (inner / ".git").mkdir(parents=True)
    (outer / ".hermes" / "extensions").mkdir(parents=True)
    (outer / ".hermes" / "extensions" / "a.py").write_text("a = 1\n")
    known = Listed({outer: "0" * 64} if listed else {}, "now")

    found = [
        each.project.root
        for each in possible_projects(inner, known, home=home, global_dir=home / "extensions")
    ]

    assert found == ([outer] if listed else [])
