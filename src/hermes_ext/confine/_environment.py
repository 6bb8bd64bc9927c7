"""Variables that point temporary files and caches into the private folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

# What a tool keeps for the next run; nobody misses it elsewhere. The last word is the folder that
# the tool uses by itself in a project: one that is writable stays in use.
_CACHES: Final = (
    ("TMPDIR", "tmp", ""),
    ("XDG_RUNTIME_DIR", "run", ""),
    ("TMUX_TMPDIR", "run", ""),
    ("RUFF_CACHE_DIR", "ruff", ".ruff_cache"),
    ("MYPY_CACHE_DIR", "mypy", ".mypy_cache"),
    ("PYTHONPYCACHEPREFIX", "pycache", "__pycache__"),
    ("HYPOTHESIS_STORAGE_DIRECTORY", "hypothesis", ".hypothesis"),
    ("COVERAGE_FILE", "coverage", ""),
    ("MPLCONFIGDIR", "matplotlib", ""),
    ("NUMBA_CACHE_DIR", "numba", ""),
    ("JUPYTER_RUNTIME_DIR", "jupyter", ""),
    ("PIP_CACHE_DIR", "pip", ""),
    ("UV_CACHE_DIR", "uv", ""),
    ("CARGO_TARGET_DIR", "cargo", "target"),
    ("GOCACHE", "go", ""),
    ("GOTMPDIR", "tmp", ""),
    ("npm_config_cache", "npm", ""),
    ("npm_config_logs_dir", "npm", ""),
)


def confined_environment(
    environment: Mapping[str, str], private: Path, writable: Iterable[Path]
) -> dict[str, str]:
    """A program's variables, with what must lie in the private folder.

    A variable that a user has set himself stays where it names a writable place.
    """
    places = tuple(writable)
    names = {path.name for path in places}
    moved = {
        variable: str(private / folder)
        for variable, folder, default in _CACHES
        if default not in names and not _is_below(environment.get(variable), places)
    }
    if ".pytest_cache" not in names:
        own = shlex.quote(f"cache_dir={private / 'pytest'}")
        moved["PYTEST_ADDOPTS"] = f"{environment.get('PYTEST_ADDOPTS', '')} -o {own}".strip()
    return {**environment, **moved}


def _is_below(value: str | None, places: Iterable[Path]) -> bool:
    return bool(value) and any(Path(str(value)).is_relative_to(each) for each in places)
