from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.recording import Recording


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """An empty home whose log has payloads, and a working directory beside it."""
    return Recording(tmp_path)
