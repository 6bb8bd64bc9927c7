"""What a handler will certainly answer wrong, read from its source.

A handler that returns a string, a dict or True fails whenever it gets there, and its policy
decides what then happens; so does a guard that rewrites. Whether it does is known before: what
stands behind `return` tells.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

_LITERALS: Final = {
    ast.JoinedStr: "a str",
    ast.Dict: "a dict",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Tuple: "a tuple",
}
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def wrong_return(function: Callable[..., Any], allowed: Collection[str] = ()) -> str | None:
    """The first thing that a handler returns and that it may not, as a sentence; else None.

    Args:
        function: the handler. Where its source cannot be had (built, not written) nothing is
            known, and None is returned.
        allowed: the actions that are open to it; () where that is not to be looked at.
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
        for action in _actions(statement.value):
            if allowed and action not in allowed:
                return (
                    f"line {first + statement.lineno - 1} returns {action!r}, which this handler "
                    f"may not: open to it are {', '.join(sorted(allowed))}"
                )
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
