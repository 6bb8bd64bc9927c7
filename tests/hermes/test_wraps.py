"""The table of wrapped functions: true on the Hermes that is installed, and in the docs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.versions import PAGE, installed
from tests.hermes.wraps import noted, page

from hermes_ext.hosts.hermes.adapter.wraps.seams import SEAMS

HomeFactory = Callable[..., HermesHome]


def test_the_docs_have_the_table() -> None:
    """docs/hermes.md has a row for each function, with what it is for and why it is wrapped."""
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written), "run python -m tests.hermes.wraps"


def test_each_wrap_has_its_reason() -> None:
    """What the newest proven Hermes has wrapped says why nothing published serves instead."""
    *_, newest = noted().values()
    wrapped = [seam for seam in SEAMS if str(seam) in newest]
    assert [str(seam) for seam in wrapped if not (seam.purpose and seam.why)] == []
    assert len([seam for seam in wrapped if not seam.rule]) <= 10


@pytest.mark.hermes
@pytest.mark.each_host
def test_the_table_is_true_here(hermes: HomeFactory) -> None:
    """Exactly the functions that are noted for the installed Hermes are wrapped in it."""
    host = installed()
    if host is None:
        pytest.skip("not one of the releases of tests/hermes/versions.py")
    run = hermes().python(
        "import json, sys\n"
        f"sys.path.insert(0, {str(PAGE.parents[1])!r})\n"
        "from tests.hermes.wraps import wrapped_here\n"
        "print(json.dumps(wrapped_here()))\n"
    )
    assert json.loads(run.check().stdout.splitlines()[-1]) == noted()[host.id]
