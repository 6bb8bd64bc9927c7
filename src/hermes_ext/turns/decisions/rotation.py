"""What the files are called that a long log is kept in."""

from __future__ import annotations

from pathlib import Path


def rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
