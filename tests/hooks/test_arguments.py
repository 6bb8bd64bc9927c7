"""`Arguments`: taken once; whoever may change them gets a copy."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hooks.payloads import ToolCall, ToolResult

FLAT = {"path": "a.py", "n": 1}
NESTED = {"edits": [{"old": "a", "new": "b"}]}


@pytest.mark.parametrize("given", [FLAT, NESTED], ids=["flat", "nested"])
def test_what_the_host_changes_later_is_not_taken(given: dict[str, Any]) -> None:
    """The host's dict, and what is in it, may change after it was taken."""
    own = {key: [dict(one) for one in each] if isinstance(each, list) else each
           for key, each in given.items()}  # fmt: skip
    arguments = Arguments.of(own)
    own["more"] = True
    if "edits" in own:
        own["edits"][0]["new"] = "c"
    assert arguments.shared == given


@pytest.mark.parametrize("given", [FLAT, NESTED], ids=["flat", "nested"])
def test_a_copy_is_the_callers_own(given: dict[str, Any]) -> None:
    arguments = Arguments.of(given)
    copy = arguments.copy()
    assert type(copy) is dict
    for each in copy.values():
        if isinstance(each, list):
            each[0].clear()
    copy["more"] = True
    assert arguments.shared == given
    assert arguments.copy() == given


def test_a_class_of_its_own_becomes_a_dict() -> None:
    """Methods of a subclass may tell a guard one thing and the tool another."""

    class Liar(dict[str, Any]):
        def items(self) -> Any:
            return ()

        def copy(self) -> Any:
            return {}

    for given in (Liar(FLAT), MappingProxyType(FLAT)):
        arguments = Arguments.of(given)
        assert type(arguments.shared) is dict
        assert arguments.copy() == FLAT


def test_what_is_taken_is_not_copied_again() -> None:
    arguments = Arguments.of(FLAT)
    assert Arguments.of(arguments) is arguments
    call = ToolCall("write_file", arguments)
    result = ToolResult("write_file", call.arguments, result="done")
    assert call.arguments is result.arguments is arguments


def test_what_is_found_is_kept_for_the_chain_and_not_for_what_a_handler_made_of_its_copy() -> None:
    """A handler that changes its own event finds out about that; no other handler does."""
    call = ToolCall("write_file", FLAT)
    asked: list[dict[str, Any]] = []

    def find(args: dict[str, Any]) -> int:
        asked.append(dict(args))
        return len(args)

    first, second = call.lend(), call.lend()
    assert first.remembered("size", find) == 2
    second.tool_args["more"] = True
    assert second.remembered("size", find) == 3
    assert call.lend().remembered("size", find) == call.remembered("size", find) == 2
    assert asked == [FLAT, {**FLAT, "more": True}]
    rewritten = call.rewritten({})
    assert rewritten.remembered("size", find) == 0
