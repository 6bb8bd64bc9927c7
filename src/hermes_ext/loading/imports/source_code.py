"""The source of an extension: to code, and what it says without being run.

`import utils` beside a `utils.py` is Hermes's own `utils`: an extension's folder is not on
`sys.path`. A handler that returns a string, a dict or True fails whenever it gets there. Both are
known before, from the source.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from hermes_ext._regular import read_regular
from hermes_ext._text import printable

_FILES: Final = 200  # of one extension
_LITERALS: Final = {
    ast.JoinedStr: "a str",
    ast.Dict: "a dict",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Tuple: "a tuple",
}
_CONFINE: Final = re.compile(rb"""\.confine\(|["']confine["']""")
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def compiled(data: bytes, path: str) -> CodeType:
    """The code of a module. Raises SyntaxError with file and line."""
    if b"\0" in data:  # told alike by all versions of Python, and with a line
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise SyntaxError(
            "source code holds null bytes; save it as UTF-8", (path, line, None, None)
        )
    code: CodeType = compile(data, path, "exec", dont_inherit=True)
    return code


def wrong_return(function: Callable[..., Any], allowed: Collection[str] = ()) -> str | None:
    """The first thing that a handler returns and that it may not, as a sentence; else None.

    None too where its source cannot be had. allowed: the actions that are open to it; () where that
    is not to be looked at.
    """
    plain = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(plain)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    body = tree.body[0] if tree.body else None
    if not isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    for statement in _returns(body):
        told = f"line {first + statement.lineno - 1} returns"
        kind = _kind(statement.value)
        if kind is not None:
            return f"{told} {kind}, which no hook takes: return a HookResult or None"
        for action in _actions(statement.value):
            if allowed and action not in allowed:
                open_to = ", ".join(sorted(allowed))
                return f"{told} {action!r}, which this handler may not: open to it are {open_to}"
    return None


def _actions(value: ast.expr | None) -> Iterator[str]:
    """The actions of the results that an expression makes: of `HookResult.block(…)`, `block`."""
    if isinstance(value, ast.IfExp):
        yield from _actions(value.body)
        yield from _actions(value.orelse)
    elif isinstance(value, ast.Call):
        made = value.func
        if isinstance(made, ast.Attribute) and ast.unparse(made.value).endswith("HookResult"):
            yield made.attr.rstrip("_")
        elif ast.unparse(made).endswith("HookResult") and value.args:
            first = value.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, _INNER):
            yield from _returns(child)


def _kind(value: ast.expr | None) -> str | None:
    if isinstance(value, ast.Constant):
        return None if value.value is None else f"a {type(value.value).__name__}"
    if isinstance(value, ast.IfExp):
        return _kind(value.body) or _kind(value.orelse)
    return _LITERALS.get(type(value)) if value is not None else None


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


def registers_guard(path: Path | None) -> bool:
    """Whether a folder or file has a `guard=` that is not plainly False.

    Code that cannot be read may register one, so it counts as registering one.
    """
    return path is None or any(map(_has_guard, _files(path)))


def confines(path: Path | None) -> bool:
    """Whether the source in a folder or file makes results that confine, as far as it shows."""
    return path is not None and any(map(_has_confine, _files(path)))


def _files(path: Path) -> Iterator[Path]:
    return islice(path.rglob("*.py") if path.is_dir() else iter([path]), _FILES)


def _has_confine(file: Path) -> bool:
    try:
        return _CONFINE.search(read_regular(file)) is not None
    except OSError:
        return False


def _has_guard(file: Path) -> bool:
    try:
        tree = ast.parse(read_regular(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    given = (each.value for call in calls for each in call.keywords if each.arg == "guard")
    return any(not isinstance(value, ast.Constant) or value.value for value in given)
