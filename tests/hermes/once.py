"""Many calls tried in one process, for the tests of several."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


def tried_once(
    folders: pytest.TempPathFactory, name: str, try_all: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    """What came of many calls, tried in one process.

    Where the tests are spread over several processes, the first one that asks tries them all.
    """
    shared = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    told = shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not told.exists():
            told.write_text(json.dumps(try_all(folders.mktemp(name))))
    found: dict[str, Any] = json.loads(told.read_text())
    return found
