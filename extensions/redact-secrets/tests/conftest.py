"""What starts the real Hermes."""

from __future__ import annotations

from tests.conftest import hermes, model_factory

__all__ = ["hermes", "model_factory"]
