"""Whether what arrives at a gate is what was judged."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hosts.hermes.adapter.gate.verdicts import Arrived

pytest.importorskip("model_tools")


class Text(str):
    """A text of a class of its own, which is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Liar(dict[str, Any]):
    """What it holds is not what it says."""

    def items(self) -> Any:
        return {"path": "a"}.items()

    def __getitem__(self, key: str) -> Any:
        return "a"


SAME = [
    ({"path": "a"}, {"path": "a"}),
    ({"b": 1, "a": [1, {"x": None}]}, {"a": [1, {"x": None}], "b": 1}),
    ({"x": float("nan")}, {"x": float("nan")}),
    ({"path": Text("a")}, {"path": "a"}),
    (["no dict"], {}),
]
OTHER = [
    ({"path": "b"}, {"path": "a"}),
    ({"path": "a", "more": 1}, {"path": "a"}),
    ({}, {"path": "a"}),
    ({"n": 1}, {"n": True}),
    ({"n": 1.0}, {"n": 1}),
    ({"a": [1, 2]}, {"a": [1]}),
    ({"path": Text("b")}, {"path": "a"}),
    (Liar(path="b"), {"path": "a"}),
]


@pytest.mark.parametrize(("arrived", "judged"), SAME)
def test_the_same_arguments(arrived: Any, judged: dict[str, Any]) -> None:
    assert Arrived("t", arrived).has(Arguments(judged))


@pytest.mark.parametrize(("arrived", "judged"), OTHER)
def test_other_arguments(arrived: Any, judged: dict[str, Any]) -> None:
    """Also of classes that claim to be the same, and of types that Python takes for equal."""
    assert not Arrived("t", arrived).has(Arguments(judged))


def test_what_is_no_plain_value_cannot_be_judged() -> None:
    with pytest.raises(TypeError, match="not a JSON value"):
        Arrived("t", {"x": object()}).has(Arguments({"x": 1}))
