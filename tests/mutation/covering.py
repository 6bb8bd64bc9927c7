"""Which tests run a line, as `coverage` saw them: the quick way to a test that sees a fault."""

from __future__ import annotations

import ast
import functools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:  # not among what the tests need
    from coverage import CoverageData

__all__ = ["FIRST", "Covering"]

FIRST: Final = 25
_LONGEST: Final = 8


@frozen
class Covering:
    """The data of a run with `dynamic_context = test_function`.

    Attributes:
        root: the checkout that the tests ran in.
        data: by file and line, which tests.
        sizes: of each test, how much code it runs: those that run little are quick, and precise.
    """

    root: Path
    data: CoverageData
    sizes: dict[str, int]

    @classmethod
    def of(cls, root: Path, file: Path) -> Covering:
        from coverage import CoverageData

        data = CoverageData(basename=str(file))
        data.read()
        with closing(sqlite3.connect(file)) as database:
            rows = database.execute(
                "SELECT context, SUM(LENGTH(numbits)) FROM line_bits"
                " JOIN context ON context.id = context_id GROUP BY context"
            )
            return cls(root, data, dict(rows.fetchall()))

    def of_line(self, file: str, line: int) -> list[list[str]]:
        """Groups of tests that run a line, the smallest first; [] if it runs at import only."""
        by_line = self.data.contexts_by_lineno(str(self.root / file))
        # A statement of several lines is known by its first.
        near = (by_line.get(line - back, []) for back in range(_LONGEST))
        contexts: list[str] = next(filter(any, near), [])
        ordered = sorted(filter(None, contexts), key=lambda each: (self.sizes[each], each))
        tests = [test for test in map(self._test, ordered) if test is not None]
        return [group for group in (tests[:FIRST], tests[FIRST:]) if group]

    def _test(self, context: str) -> str | None:
        """pytest's name for `tests.chain.test_fold.test_blocks`."""
        if "<locals>" in context:  # a test that another one makes
            return None
        parts = context.split(".")
        for count in range(len(parts) - 1, 0, -1):
            file = Path(*parts[:count]).with_suffix(".py")
            if (self.root / file).is_file():
                is_test = parts[-1] in _functions(self.root / file)
                return "::".join([file.as_posix(), *parts[count:]]) if is_test else None
        return None


@functools.cache
def _functions(file: Path) -> frozenset[str]:
    """The functions of a test module and of its classes, not those inside of functions."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes = [*tree.body, *(node for each in classes for node in each.body)]
    return frozenset(
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
