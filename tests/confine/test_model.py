"""What two confinements allow together, for any paths: what both allow, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext.confine import Confinement, ConfinementError, Reason

NAMES = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(NAMES, max_size=4).map(lambda names: Path("/p").joinpath(*names))
CONFINEMENTS = st.builds(
    lambda paths, network, name: Confinement(tuple(paths), network, (Reason(name, "why"),)),
    st.lists(PATHS, max_size=3),
    st.sampled_from(["host", "none"]),
    NAMES,
)


@given(CONFINEMENTS, CONFINEMENTS, PATHS)
def test_what_both_allow(one: Confinement, other: Confinement, path: Path) -> None:
    """A path may be changed if both let it be, and the network is there if both leave it."""
    both = one & other
    assert both.covers(path) is (one.covers(path) and other.covers(path))
    assert (both.network == "host") is (one.network == other.network == "host")


@given(CONFINEMENTS, CONFINEMENTS, CONFINEMENTS)
def test_the_order_does_not_matter(
    one: Confinement, other: Confinement, third: Confinement
) -> None:
    """Nor who comes first, nor which two are taken together first."""

    def allowed(confinement: Confinement) -> tuple[set[Path], str]:
        return set(confinement.writable), confinement.network

    assert allowed(one & other) == allowed(other & one)
    assert allowed((one & other) & third) == allowed(one & (other & third))


@given(CONFINEMENTS, CONFINEMENTS)
def test_together_they_are_at_least_as_strict(one: Confinement, other: Confinement) -> None:
    """As each of them; who wants it is told of both."""
    both = one & other
    assert one.holds(one)
    assert both.holds(one)
    assert both.holds(other)
    assert set(both.reasons) == {*one.reasons, *other.reasons}


REASON = Reason("rule", "no plan yet")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"network": "off"}, "network= is 'off'"),
        ({"network": None}, "network= is None"),
        ({"writable": "build"}, "writable= needs a list, got 'build'"),
        ({"writable": 5}, "writable= needs a list, got 5"),
        ({"writable": [5]}, "writable= has 5"),
        ({"reason": "why"}, "a reason is 'why'"),
    ],
)
def test_what_cannot_be_right(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    """A wrong argument is an error that says what to write; nothing is confined less for it."""
    arguments = {"writable": [], "root": tmp_path, "reason": REASON, **arguments}
    with pytest.raises(ConfinementError) as raised:
        Confinement.of(**arguments)
    assert raised.value.message == told
    assert raised.value.hint
    assert ("writable=['build']" in raised.value.hint) is (arguments["writable"] == "build")


def test_a_relative_path_is_no_path_of_a_confinement() -> None:
    """Only `Confinement.of` knows where a relative path starts."""
    with pytest.raises(ConfinementError, match="writable= has"):
        Confinement(writable=(Path("build"),))
