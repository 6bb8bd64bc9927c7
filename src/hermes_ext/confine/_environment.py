"""Variables that point temporary files and caches into the private folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

# What a tool keeps for the next run. It is no result, so that nobody misses it elsewhere.
_CACHES: Final = {
    "TMPDIR": "tmp",
    "XDG_RUNTIME_DIR": "run",
    "RUFF_CACHE_DIR": "ruff",
    "MYPY_CACHE_DIR": "mypy",
    "PYTHONPYCACHEPREFIX": "pycache",
    "CARGO_TARGET_DIR": "cargo-target",
    "GOCACHE": "go-build",
    "GOTMPDIR": "tmp",
    "UV_CACHE_DIR": "uv",
    "COVERAGE_FILE": "coverage/.coverage",
}


def confined_environment(environment: Mapping[str, str], private: Path) -> dict[str, str]:
    """A program's variables, with what must lie in the private folder."""
    moved = {name: str(private / where) for name, where in _CACHES.items()}
    cache_dir = f"-o cache_dir={private / 'pytest'}"
    options = " ".join(filter(None, (environment.get("PYTEST_ADDOPTS"), cache_dir)))
    return {**environment, **moved, "PYTEST_ADDOPTS": options}
