"""What two confinements allow together, for any paths: what both allow, and nothing else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes_ext.confine import Confinement, Reason

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
