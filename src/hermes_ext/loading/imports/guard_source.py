"""Whether code that is not loaded registers a guard, as its source says. None of it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from hermes_ext._regular import read_regular

_FILES: Final = 200  # of one extension


def registers_guard(path: Path | None) -> bool:
    """Whether a folder or file has a `guard=` that is not plainly False.

    Code that cannot be read may register one, so it counts as registering one.
    """
    if path is None:
        return True
    files = path.rglob("*.py") if path.is_dir() else iter([path])
    return any(map(_has_guard, islice(files, _FILES)))


def _has_guard(file: Path) -> bool:
    try:
        tree = ast.parse(read_regular(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_may_be_true(value) for value in _guard_arguments(tree))


def _guard_arguments(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "guard")


def _may_be_true(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and not value.value)
