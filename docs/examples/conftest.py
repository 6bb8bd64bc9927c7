"""How the real Hermes is started here, and patience with a machine that is busy."""

from __future__ import annotations

from functools import partial

import pytest
from tests.conftest import hermes, hermes_start, model_factory

from hermes_ext.testing import LoadExtension

__all__ = ["hermes", "hermes_start", "load_extension", "model_factory"]


@pytest.fixture
def load_extension(load_extension: LoadExtension) -> LoadExtension:
    """As it is, but that nothing is called slow: others run at the same time."""
    return partial(load_extension, slow_seconds=60)
