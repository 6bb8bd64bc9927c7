"""What a handler will certainly answer wrong, read from its source.

A handler that returns a string, a dict or True fails whenever it gets there, and its policy decides
what then happens. Whether it does is known before: the literals behind `return` tell.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Final

_LITERALS: Final = {
    ast.JoinedStr: "a str",
    ast.Dict: "a dict",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Tuple: "a tuple",
}
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def wrong_return(function: Callable[..., Any]) -> str | None:
    """The first literal that a handler returns and no hook takes, as a sentence; else None.

    Args:
        function: the handler. Where its source cannot be had (built, not written) nothing is
            known, and None is returned.
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
        kind = _kind(statement.value)
        if kind is not None:
            return (
                f"line {first + statement.lineno - 1} returns {kind}, "
                "which no hook takes: return a HookResult or None"
            )
    return None


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
