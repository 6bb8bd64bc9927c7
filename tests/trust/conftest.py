"""A project on the disk, as its writer may have made it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_ext import _files
from hermes_ext.trust import tree as tree_module
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import PIN, TrustStore, Verdict, judge
from hermes_ext.trust.tree import Tree, read_tree

TICK_NS = tree_module._TICK_NS


class Clone:
    """`repo/` (a repository) and `home/` (a Hermes home) below `base`, both real paths."""

    def __init__(self, base: Path) -> None:
        base = base.resolve()
        self.home = base / "home"
        self.root = base / "repo"
        self.hermes = self.root / ".hermes"
        self.extensions = self.hermes / "extensions"
        (self.root / ".git").mkdir(parents=True)
        self.extensions.mkdir(parents=True)
        self.home.mkdir()

    @property
    def project(self) -> Project:
        return Project(self.root)

    @property
    def store(self) -> TrustStore:
        return TrustStore(self.home)

    def add(self, relative: str, content: str | bytes = "x = 1\n") -> Path:
        """A file below `.hermes`."""
        path = self.hermes / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def tree(self) -> Tree:
        return read_tree(self.project)

    def trust(self) -> str:
        return self.store.trust(self.tree()).digest

    def judge(self) -> Verdict:
        return judge(self.project, self.home)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    monkeypatch.delenv(PIN, raising=False)
    # What a power cut would do is not tested, and waiting for the disk takes most of the time.
    monkeypatch.setattr(_files.os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(tree_module, "_TICK_NS", 0)
    return Clone(tmp_path)


@pytest.fixture
def ticking(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading waits for the clock, as it does outside of tests."""
    monkeypatch.setattr(tree_module, "_TICK_NS", TICK_NS)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something happen after all entries were looked at, and before the first is read."""

    def happen(change: Callable[[], object]) -> None:
        monkeypatch.setattr(tree_module, "_wait_for_the_clock", lambda newest: change())

    return happen


@pytest.fixture
def closed() -> Iterator[Callable[[Path], None]]:
    """Takes all rights to a file or folder away; skips where this user needs none."""
    shut: list[tuple[Path, int]] = []

    def shut_off(path: Path) -> None:
        shut.append((path, path.stat().st_mode))
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")

    yield shut_off
    for path, mode in shut:
        path.chmod(mode)
