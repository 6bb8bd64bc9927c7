"""Attacks on confinement, as root and as an ordinary user, on every rung of the ladder.

The page docs/confinement.md has what gets out; any difference fails. Write it anew with
`python -m tests.confine.attacks.table`.
"""

from __future__ import annotations

import os
import sys

import pytest
from tests.confine.attacks.attacking import ATTACKS
from tests.confine.attacks.table import CELLS, results, shown, written

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="confinement is for Linux"),
]


def _attacked(user: str, rung: str) -> dict[str, str]:
    if user == "root" and os.geteuid():
        pytest.skip("needs root")
    found = results(user, rung)
    if "unavailable" in found:
        pytest.skip(f"{rung} is not available here: {found['unavailable']}")
    return {name: each for name, each in found.items() if not each.startswith("not here")}


@pytest.mark.parametrize("user", ["root", "user"])
def test_unconfined_they_succeed(user: str) -> None:
    """Every attack does what it is to do where nothing is confined; otherwise it shows nothing."""
    found = _attacked(user, "bare")
    assert {name for name, result in found.items() if result == "held"} == set()


@pytest.mark.parametrize(("user", "rung"), CELLS)
def test_what_gets_out(user: str, rung: str) -> None:
    """What gets out is what the page says."""
    found = _attacked(user, rung)
    page = written()[user, rung]
    differ = {name: each for name, each in found.items() if shown(each) != page[name]}
    assert differ == {}, f"{rung} as {user}"


def test_what_the_page_says() -> None:
    """With namespaces nothing changes outside; only what the rung's gaps name takes orders."""
    expected = {
        "namespaces and Landlock": _ORDERS,
        "namespaces": _ORDERS | _NO_LANDLOCK,
        "bubblewrap": _ORDERS | _NO_LANDLOCK,
    }
    assert written().keys() == set(CELLS)
    for (user, rung), page in written().items():
        assert page.keys() == ATTACKS.keys()
        if rung in expected:
            assert {name for name, each in page.items() if each == "out"} == expected[rung], user


_ORDERS = {"tcp_host", "udp_host", "late_socket_elsewhere"}
_NO_LANDLOCK = {"abstract_socket", "named_pipe"}
