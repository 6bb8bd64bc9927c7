"""Literals behind `return` that no hook takes are found before the handler is ever called."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ext import HookResult
from hermes_ext.loading.imports.source_code import wrong_return


def returns_text(tool_name: str) -> Any:
    if tool_name == "a":
        return HookResult.block("no")
    return "block"


def returns_dict() -> Any:
    return {"action": "block"}


def returns_true_sometimes(tool_name: str) -> Any:
    return True if tool_name else None


def returns_format(tool_name: str) -> Any:
    return f"no {tool_name}"


async def returns_tuple() -> Any:
    return ("block", "x")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (returns_text, "a str"),
        (returns_dict, "a dict"),
        (returns_true_sometimes, "a bool"),
        (returns_format, "a str"),
        (returns_tuple, "a tuple"),
    ],
)
def test_wrong_literals(function: Any, kind: str) -> None:
    """The sentence names the kind and the line in the file."""
    told = wrong_return(function)
    assert told is not None
    assert f"returns {kind}," in told
    line = int(told.split()[1])
    with open(__file__, encoding="utf-8") as source:
        assert source.read().splitlines()[line - 1].lstrip().startswith("return")


def returns_result(tool_name: str) -> Any:
    def inner() -> str:
        return "text of an inner function"

    names = list(map(lambda _: "x", range(2)))  # noqa: C417 - a lambda is wanted here
    if tool_name == inner():
        return None
    if names:
        return None
    return HookResult.pass_()


@pytest.mark.parametrize("function", [returns_result, len, type, eval("lambda: 'x'")])
def test_nothing_to_say(function: Any) -> None:
    """Results, None, inner functions and functions without a source are left alone."""
    assert wrong_return(function) is None


def rewrites(tool_args: Any) -> Any:
    return HookResult.rewrite(tool_args) if tool_args else None


def rewrites_by_name(tool_args: Any) -> Any:
    return HookResult("rewrite", tool_args)


@pytest.mark.parametrize("function", [rewrites, rewrites_by_name])
def test_what_a_guard_may_not_return(function: Any) -> None:
    """A guard that rewrites would block each call as one that failed; that is told before."""
    told = wrong_return(function, {"pass", "block"})
    assert told is not None
    assert "returns 'rewrite', which this handler may not: open to it are block, pass" in told
    assert wrong_return(function, {"pass", "rewrite"}) is None
    assert wrong_return(function) is None
