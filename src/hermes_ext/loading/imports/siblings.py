"""Imports of an extension that read like its own files and are somebody else's.

`import utils` beside a `utils.py` is Hermes's own `utils`: an extension's folder is not on
`sys.path`. Where there is no other module of that name the import fails and says so; where there
is one, only the source tells.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from hermes_ext._regular import read_regular
from hermes_ext._text import printable


def taken_for_own(modules: Iterable[ModuleType]) -> Iterator[str]:
    """One sentence for each absolute import, in these modules, of a file that lies beside them.

    Names of the standard library are left alone: nobody means another module by them.
    """
    for module in modules:
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py"):
            yield from _in_file(Path(file))


def _in_file(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(read_regular(file))
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        for name in _absolute(node):
            beside = _beside(file.parent, name)
            if beside is not None:
                yield (
                    f"{printable(file)}:{getattr(node, 'lineno', 1)}: `import {name}` is not "
                    f"{printable(beside.name)} beside it but another module of that name. "
                    f"Write `from . import {name}`"
                )


def _absolute(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        names = {alias.name.partition(".")[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        names = {node.module.partition(".")[0]}
    else:
        names = set()
    return names - sys.stdlib_module_names


def _beside(folder: Path, name: str) -> Path | None:
    for place in (folder / f"{name}.py", folder / name / "__init__.py"):
        if os.path.isfile(place):
            return place if place.name != "__init__.py" else place.parent
    return None
