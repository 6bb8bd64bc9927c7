"""Homes with plugins in them, and the canary in the installed Hermes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

import pytest
from attrs import frozen
from tests.harness.warm import warm_start

from hermes_ext.hosts.hermes.canary.proofs import Surface
from hermes_ext.hosts.hermes.canary.trial import Canary, Tell, try_canary

ONE_SHOT: tuple[Surface, ...] = ("one-shot",)


@frozen
class UsersHome:
    """A user's Hermes home, which the canary must leave as it is."""

    path: Path
    monkeypatch: pytest.MonkeyPatch

    def pip_plugin(self, name: str, source: str) -> None:
        """Install one as a package, where the Python of the test looks."""
        site, module = self.path.parent / "site", name.replace("-", "_")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[hermes_agent.plugins]\n{name} = {module}_plugin\n"
        )
        (site / f"{module}_plugin.py").write_text(source)
        self.monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)

    def plugin(self, name: str, source: str) -> Path:
        """Put a plugin into it; returns its folder."""
        folder = self.path / "plugins" / name
        folder.mkdir(parents=True)
        manifest = {"name": folder.name, "version": "1", "description": "x"}
        (folder / "plugin.yaml").write_text(json.dumps(manifest))
        (folder / "__init__.py").write_text(dedent(source))
        return folder

    def config(
        self,
        enabled: Sequence[str],
        *,
        plugin_settings: Mapping[str, object] | None = None,
        **sections: object,
    ) -> None:
        """Its `config.yaml`, with these plugins on."""
        plugins = {"enabled": list(enabled), **(plugin_settings or {})}
        text = json.dumps({"plugins": plugins, **sections})
        (self.path / "config.yaml").write_text(text)

    def canary(self, *surfaces: Surface, tell: Tell = lambda doing: None) -> Canary:
        """The trial with this home's plugins; on one-shot alone unless others are named."""
        return try_canary(
            self.path, seconds=300, surfaces=surfaces or ONE_SHOT, start=warm_start, tell=tell
        )

    def files(self) -> dict[str, bytes]:
        """All that is in it."""
        found = sorted(path for path in self.path.rglob("*") if path.is_file())
        return {str(path.relative_to(self.path)): path.read_bytes() for path in found}


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UsersHome:
    """A home without plugins."""
    path = tmp_path / "users-home"
    path.mkdir()
    return UsersHome(path, monkeypatch)
