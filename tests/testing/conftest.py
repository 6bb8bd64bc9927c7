"""An extension written by the test, loaded with the package's own fixtures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hermes_ext.testing import LoadedExtension, LoadExtension

Author = Callable[..., LoadedExtension]
HEAD = "from hermes_ext import HookResult, register_hook\n\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes an extension's folder, with this code and these other files."""

    def written(code: str, *, name: str = "my-rules", **files: str) -> Path:
        folder = tmp_path / name
        (folder / "tests").mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(HEAD + dedent(code))
        for stem, text in files.items():
            (folder / stem.replace("_yaml", ".yaml").replace("_py", ".py")).write_text(dedent(text))
        return folder

    return written


@pytest.fixture
def author(write: Callable[..., Path], load_extension: LoadExtension) -> Author:
    """Writes an extension and loads it."""

    def load(code: str, files: dict[str, str] | None = None, **options: Any) -> LoadedExtension:
        return load_extension(write(code, **(files or {})), **options)

    return load
