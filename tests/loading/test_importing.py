"""`one_by_one`: calls in another thread, one hand-over for all, each with a deadline of its own."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

import pytest

from hermes_ext.loading.imports.importing import EndlessImport, one_by_one


def test_all_are_made_in_order_in_one_other_thread() -> None:
    made: list[threading.Thread] = []

    def call(number: int) -> Callable[[], int]:
        def make() -> int:
            made.append(threading.current_thread())
            return number

        return make

    assert list(one_by_one([(str(n), call(n)) for n in range(20)], 30)) == list(range(20))
    assert len(set(made)) == 1
    assert threading.current_thread() not in made


def test_one_that_never_ends_costs_its_own_deadline_only() -> None:
    """Those before and behind it come out as they are, and it goes on being left behind."""
    gate, late = threading.Event(), threading.Event()
    names: list[str] = []

    def hangs() -> str:
        names.append(threading.current_thread().name)
        gate.wait()
        late.set()
        return "late"

    calls: list[tuple[str, Callable[[], str]]] = [
        ("a", lambda: "a"),
        ("b", hangs),
        ("c", lambda: "c"),
        ("d", hangs),
    ]
    found = list(one_by_one(calls, 1.5))
    assert [found[0], found[2]] == ["a", "c"]
    for each in (found[1], found[3]):
        assert isinstance(each, EndlessImport)
        assert "1.5 s" in str(each)
    assert names == ["hermes-ext import b", "hermes-ext import d"]
    gate.set()
    assert late.wait(30)
    assert list(one_by_one([("e", lambda: "e")], 30)) == ["e"]


def test_what_a_call_raises_comes_out_and_none_is_made_behind_it() -> None:
    made: list[str] = []

    def raises() -> str:
        raise KeyError("k")

    calls: list[tuple[str, Callable[[], str]]] = [
        ("a", lambda: "a"),
        ("b", raises),
        ("c", lambda: made.append("c") or "c"),  # type: ignore[func-returns-value]
    ]
    found = one_by_one(calls, 30)
    assert next(found) == "a"
    with pytest.raises(KeyError):
        next(found)
    assert made == []


def test_each_has_the_callers_context_to_itself() -> None:
    """Variables set by one are not seen by the next."""
    seen: list[str] = []
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("caller's")

    def call() -> None:
        seen.append(variable.get())
        variable.set("its own")

    list(one_by_one([("a", call), ("b", call)], 30))
    assert seen == ["caller's"] * 2
