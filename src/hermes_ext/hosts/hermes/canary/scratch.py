"""The user's own plugins of Hermes, as they come into a scratch home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_ext._redaction.names import is_secret
from hermes_ext._values import evolve, frozen
from hermes_ext.hosts.hermes.home.installing import PLUGIN
from hermes_ext.settings.yaml_nodes import Unreadable, plain, read_document

_LEFT_BEHIND = shutil.ignore_patterns(
    "__pycache__", ".git", ".venv", "venv", "node_modules", ".env", "*.pyc"
)


@frozen
class UsersPlugins:
    """The plugins that a Hermes home turns on, without this package's own.

    enabled: their names, as they stand in `plugins.enabled`. section: the whole of `plugins`,
    without what is named like a secret. folder: where those are that lie in the home.
    """

    enabled: tuple[str, ...]
    section: Mapping[str, Any]
    folder: Path

    def only(self, *names: str) -> UsersPlugins:
        """The same with these alone turned on."""
        return evolve(self, enabled=names)

    def put_into(self, folder: Path) -> None:
        """Copy those that lie in the home; what cannot be copied is left out."""
        for source in self.folders():
            target = folder / source.relative_to(self.folder)
            # A plugin that is missing there is told by its name.
            try:
                shutil.copytree(source, target, symlinks=True, ignore=_LEFT_BEHIND)
            except (OSError, shutil.Error):
                shutil.rmtree(target, ignore_errors=True)

    def folders(self) -> Iterator[Path]:
        """Where those are that are turned on and lie in the home."""
        for manifest in sorted((*self._manifests("plugin.yaml"), *self._manifests("plugin.yml"))):
            source = manifest.parent
            names = {source.name, source.relative_to(self.folder).as_posix()}
            told = _yaml(manifest).get("name")
            if not names.isdisjoint(self.enabled) or told in self.enabled:
                yield source

    def _manifests(self, name: str) -> Iterator[Path]:
        # A category may stand between: plugins/image_gen/openai.
        for pattern in (f"*/{name}", f"*/*/{name}"):
            yield from self.folder.glob(pattern)


def users_plugins(home: Path) -> UsersPlugins:
    """What `config.yaml` turns on; nothing where it cannot be read."""
    section = _yaml(home / "config.yaml").get("plugins")
    if not isinstance(section, dict):
        section = {}
    listed = section.get("enabled")
    enabled = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    off = section.get("disabled")
    disabled = [name for name in off if name != PLUGIN] if isinstance(off, list) else []
    return UsersPlugins(
        tuple(name for name in dict.fromkeys(enabled) if name != PLUGIN and name not in disabled),
        {**_without_secrets(section), "disabled": disabled},
        home / "plugins",
    )


def _yaml(file: Path) -> dict[str, Any]:
    try:
        value = plain(read_document(file).root)
    except Unreadable:
        return {}
    return value if isinstance(value, dict) else {}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_secrets(item)
            for key, item in value.items()
            if isinstance(key, str) and not is_secret(key)
        }
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    # A date, say: the scratch home's configuration is JSON.
    return value if isinstance(value, str | int | float | bool | None) else str(value)
