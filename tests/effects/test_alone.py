"""`hermes_ext.effects` stands alone: it can be read, and used, without the rest of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hermes_ext.effects

ROOT = Path(hermes_ext.effects.__file__).parent


def imported() -> Iterator[str]:
    """Each module of the package that a file of the effects imports, wherever it does."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                yield str(node.module)


def test_effects_import_nothing_of_the_package_but_exceptions() -> None:
    """Also for types, and within functions."""
    ours = {name for name in imported() if name.split(".")[0] == "hermes_ext"}
    own = {name for name in ours if name.startswith("hermes_ext.effects")}
    assert own
    assert ours - own <= {"hermes_ext.exceptions"}
