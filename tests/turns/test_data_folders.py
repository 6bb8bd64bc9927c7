"""Where extensions keep files of their own."""

from __future__ import annotations

import gc
from pathlib import Path

from hermes_ext.turns.data_folders import DataFolders


def test_without_a_home_a_folder_lasts_as_long_as_its_runtime() -> None:
    folders = DataFolders(None)
    mine, other = folders.of("a/b", None), folders.of("a/b", Path("/one"))
    (mine / "note").write_text("x")

    assert folders.of("a/b", None) == mine != other
    assert (mine / "note").read_text() == "x"
    assert mine.stat().st_mode & 0o777 == 0o700

    del folders
    gc.collect()
    assert not mine.exists()
    assert not other.exists()


def test_a_folder_of_a_home_stays(tmp_path: Path) -> None:
    """That of a project is another than the user's own, and each project has one."""
    places = (None, Path("/one"), Path("/two"))
    folders = [DataFolders(tmp_path).of("a", place) for place in places]

    assert len({*folders}) == len(places)
    assert all(folder.is_relative_to(tmp_path) and folder.is_dir() for folder in folders)
