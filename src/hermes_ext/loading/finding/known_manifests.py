"""Manifests that were read before, so that a start does not take apart what has not changed.

One JSON file in the home's cache, where the package's own guard keeps the agent's tools away, and
one beside the bundled extensions, for homes in which nothing is on and nothing is written. Found by
the digest of a manifest's bytes, an entry can only be of exactly that text. Neither is ever the
reason why something fails: without it, manifests are read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from hermes_ext.__about__ import __version__
from hermes_ext._files import replace_file
from hermes_ext._regular import read_regular
from hermes_ext.hooks.isolation import identical
from hermes_ext.settings.manifest import (
    KEYS,
    MANIFEST_FILE,
    Manifest,
    parse_manifest,
    read_manifest,
)
from hermes_ext.settings.yaml_nodes import SETTINGS_BYTES

SHIPPED: Final = "manifests.json"
"""The file beside the bundled extensions; `docs/generate_reference.py` writes it."""

# Another release may read the same text in another way.
_FORMAT: Final = f"1, hermes-ext {__version__}"


class KnownManifests:
    """Manifests by their text. `save` keeps those that were asked for."""

    def __init__(self, home: Path, bundled: Path | None = None) -> None:
        self._file = home / "cache" / "hermes-ext" / "manifests.json"
        self._known = _read(self._file)
        self._shipped = {} if bundled is None else _read(bundled / SHIPPED, beside_code=True)
        self._asked: dict[str, Mapping[str, Any]] = {}

    def read(self, folder: Path) -> Manifest | None:
        """As `read_manifest`."""
        file = folder / MANIFEST_FILE
        try:
            raw = read_regular(file, SETTINGS_BYTES + 1)
        except OSError:
            return read_manifest(folder)
        digest = sha256(raw).hexdigest()
        values = self._known.get(digest) or self._shipped.get(digest)
        if values is not None:
            self._asked[digest] = values
            told = {**values, "requires": tuple(values.get("requires", ()))}
            return Manifest(file, **told, raw=raw)
        manifest = parse_manifest(file, raw)
        if not (manifest.problems or manifest.warnings):
            self._keep(digest, manifest)
        return manifest

    def _keep(self, digest: str, manifest: Manifest) -> None:
        values = {key: getattr(manifest, key) for key in KEYS}
        values = {key: value for key, value in values.items() if value is not None}
        values["requires"] = list(manifest.requires)
        try:
            written = json.dumps(values, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return
        # Dates, numbers as keys and the like would come back as something else.
        if identical(json.loads(written), values):
            self._asked[digest] = values

    def text(self, indent: int | None = None) -> str:
        """What is worth keeping, as JSON."""
        return json.dumps({"format": _FORMAT, "manifests": self._asked}, indent=indent)

    def save(self) -> None:
        """Write what is worth keeping, if that is not what is there."""
        if self._asked.keys() == self._known.keys() or not self._asked:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, self.text().encode(), durable=False)
        except OSError:
            return


def kept(folders: Iterable[Path]) -> str:
    """What the file beside these extensions is to hold."""
    known = KnownManifests(Path(os.devnull))
    for folder in folders:
        known.read(folder)
    return known.text(indent=1) + "\n"


def _read(file: Path, *, beside_code: bool = False) -> dict[str, Mapping[str, Any]]:
    """What is kept, if nobody else can have written it.

    beside_code: who can write it can write the code too.
    """
    try:
        if not (beside_code or all(_is_ours(each) for each in (file, file.parent))):
            return {}
        told = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError):
        return {}
    usable = isinstance(told, dict) and told.get("format") == _FORMAT
    kept = told.get("manifests") if usable else None
    if not isinstance(kept, dict):
        return {}
    return {digest: each for digest, each in kept.items() if _is_entry(each)}


def _is_entry(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and set(told) <= set(KEYS)
        and isinstance(told.get("config", {}), dict)
        and isinstance(told.get("requires"), list)
        and all(isinstance(each, str) for each in told["requires"])
        and all(isinstance(told.get(key, ""), str) for key in KEYS if key not in _NO_TEXTS)
    )


_NO_TEXTS: Final = ("config", "requires")


def _is_ours(path: Path) -> bool:
    if os.name == "nt":
        return True
    status = path.lstat()
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not writable and not stat.S_ISLNK(status.st_mode)
