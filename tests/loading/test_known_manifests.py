"""Manifests that were read before: the same comes out, and only of exactly that text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_ext.__about__ import __version__
from hermes_ext.loading.finding.known_manifests import KnownManifests
from hermes_ext.settings.manifest import Manifest, read_manifest

FULL = """
name: rule
version: 1.10
description: Says no.
requires_hermes: ">=0.17"
requires: ["attrs>=23"]
config:
  type: object
  properties:
    limit: {type: integer, default: 3}
    names: {type: array, default: [a, null, 1.5, true]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "rule"
    found.mkdir()
    return found


def cache(home: Path) -> Path:
    return home / "cache" / "hermes-ext" / "manifests.json"


def read_twice(home: Path, folder: Path) -> tuple[Manifest | None, Manifest | None]:
    """What two starts read, the first of which keeps it."""
    first = KnownManifests(home)
    found = first.read(folder)
    first.save()
    return found, KnownManifests(home).read(folder)


@pytest.mark.parametrize("text", [FULL, "", "name: x\n", "config: {type: object}\n"])
def test_what_is_known_is_what_would_be_read(tmp_path: Path, folder: Path, text: str) -> None:
    (folder / "extension.yaml").write_text(text)
    first, second = read_twice(tmp_path, folder)
    assert first == second == read_manifest(folder)
    assert cache(tmp_path).is_file()


def test_lines_are_still_told(tmp_path: Path, folder: Path) -> None:
    (folder / "extension.yaml").write_text(FULL)
    _, known = read_twice(tmp_path, folder)
    read = read_manifest(folder)
    assert known is not None
    assert read is not None
    assert known.line_of("config", "properties", "limit") == 10
    assert known.line_of("requires", 0) == read.line_of("requires", 0)


def test_another_text_is_read(tmp_path: Path, folder: Path) -> None:
    """Also with the same size and time."""
    file = folder / "extension.yaml"
    file.write_text("name: one\n")
    os.utime(file, ns=(1, 1))
    read_twice(tmp_path, folder)
    file.write_text("name: two\n")
    os.utime(file, ns=(1, 1))
    found = KnownManifests(tmp_path).read(folder)
    assert found is not None
    assert found.name == "two"


@pytest.mark.parametrize(
    "text",
    ["nmae: x\n", "config: 5\n", "[", "config: {default: 2026-01-01}\n"],
)
def test_what_is_wrong_or_no_json_is_read_each_time(
    tmp_path: Path, folder: Path, text: str
) -> None:
    (folder / "extension.yaml").write_text(text)
    first, second = read_twice(tmp_path, folder)
    assert first == second == read_manifest(folder)
    assert not cache(tmp_path).exists()


def test_no_manifest(tmp_path: Path, folder: Path) -> None:
    assert read_twice(tmp_path, folder) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 0, "manifests": {}}',
        '{"format": FORMAT, "manifests": []}',
        '{"format": FORMAT, "manifests": {"DIGEST": {"name": 5, "requires": []}}}',
        '{"format": FORMAT, "manifests": {"DIGEST": {"name": "x"}}}',
        '{"format": FORMAT, "manifests": {"DIGEST": {"requires": [], "problems": []}}}',
    ],
)
def test_a_damaged_file_is_not_used(tmp_path: Path, folder: Path, text: str) -> None:
    (folder / "extension.yaml").write_text(FULL)
    read_twice(tmp_path, folder)
    kept = json.loads(cache(tmp_path).read_text())
    (digest,) = kept["manifests"]
    text = text.replace("DIGEST", digest).replace("FORMAT", json.dumps(kept["format"]))
    cache(tmp_path).write_text(text)
    assert KnownManifests(tmp_path).read(folder) == read_manifest(folder)


def test_what_another_release_kept_is_not_used(tmp_path: Path, folder: Path) -> None:
    (folder / "extension.yaml").write_text(FULL)
    read_twice(tmp_path, folder)
    kept = json.loads(cache(tmp_path).read_text())
    assert __version__ in kept["format"]
    kept["format"] = kept["format"].replace(__version__, "0.0.1")
    for each in kept["manifests"].values():
        each["name"] = "another"
    cache(tmp_path).write_text(json.dumps(kept))
    assert KnownManifests(tmp_path).read(folder) == read_manifest(folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_what_others_can_write_is_not_used(tmp_path: Path, folder: Path) -> None:
    (folder / "extension.yaml").write_text(FULL)
    read_twice(tmp_path, folder)
    kept = json.loads(cache(tmp_path).read_text())
    for each in kept["manifests"].values():
        each["name"] = "planted"
    cache(tmp_path).write_text(json.dumps(kept))
    found = KnownManifests(tmp_path).read(folder)
    assert found is not None
    assert found.name == "planted"  # who may write here may write the extensions
    for place, mode in ((cache(tmp_path), 0o666), (cache(tmp_path).parent, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        assert KnownManifests(tmp_path).read(folder) == read_manifest(folder)
        place.chmod(before)


def test_a_home_that_cannot_be_written_is_no_fault(tmp_path: Path, folder: Path) -> None:
    (folder / "extension.yaml").write_text(FULL)
    (tmp_path / "cache").write_text("a file")
    first, second = read_twice(tmp_path, folder)
    assert first == second == read_manifest(folder)
