"""One pair of scratch trees for each process that tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.effects.oracle.scratch import Scratch


@pytest.fixture(scope="session")
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made
