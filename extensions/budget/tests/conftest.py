"""How the real Hermes is started."""

from __future__ import annotations

from tests.conftest import hermes, hermes_start, model_factory

__all__ = ["hermes", "hermes_start", "model_factory"]
