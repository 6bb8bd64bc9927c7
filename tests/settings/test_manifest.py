"""`_manifest`: what `extension.yaml` may say, and how it is checked against what is installed."""

from __future__ import annotations

import importlib.metadata
import sys
import types
from pathlib import Path

import pytest

import hermes_ext
from hermes_ext.settings.manifest import (
    Manifest,
    incompatibility,
    installed_version,
    name_differs,
    parse_manifest,
    read_manifest,
)

FULL = """\
name: ping-island
version: 1.10
description: Pings.
requires_hermes_ext: ">=0.1"
requires_hermes: ">=0.17,<0.20"
requires: [attrs>=22, "left-pad; sys_platform == 'never'"]
config:
  type: object
  properties:
    plan_path: {type: string, default: plan.md}
"""


def manifest(tmp_path: Path, text: str) -> Manifest:
    (tmp_path / "extension.yaml").write_text(text, encoding="utf-8")
    found = read_manifest(tmp_path)
    assert found is not None
    return found


def test_every_key_is_read(tmp_path):
    """All keys reach their fields; an unquoted version is what is written, not a number."""
    read = manifest(tmp_path, FULL)
    assert (read.problems, read.warnings) == ((), ())
    assert (read.name, read.version, read.description) == ("ping-island", "1.10", "Pings.")
    assert (read.requires_hermes_ext, read.requires_hermes) == (">=0.1", ">=0.17,<0.20")
    assert read.requires == ("attrs>=22", "left-pad; sys_platform == 'never'")
    assert read.config is not None
    assert read.config["properties"]["plan_path"]["default"] == "plan.md"


def test_it_is_optional(tmp_path):
    """A folder without the file has no manifest, and an empty one says nothing."""
    assert read_manifest(tmp_path) is None
    assert manifest(tmp_path, "# later\n") == Manifest(tmp_path / "extension.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n", ":1: found a list, expected a mapping"),
        ("name: [a]\n", ":1: name: found a list, expected text"),
        ("a: 1\nname: 5\n", ":2: name: found the number '5', expected text. Write \"5\""),
        ("requires_hermes: latest\n", ":1: requires_hermes: 'latest' is not a version specifier"),
        ("requires: attrs\n", "found the string 'attrs', expected a list of pip requirements"),
        (
            "requires:\n  - attrs\n  - '!!'\n",
            ":3: requires[1]: found the string '!!', expected a pip",
        ),
        ("config: [a]\n", "config: found a list, expected a JSON Schema"),
        ("config:\n  x: 2024-99-99\n", "config: cannot be read"),
        ("name: a\n\tversion: 1\n", "is not valid YAML"),
        ("name: \x00\n", "is UTF-16 or binary"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_key(tmp_path, text, expected):
    """A manifest that cannot be used says where and why."""
    read = manifest(tmp_path, text)
    assert len(read.problems) == 1
    assert str(read.problems[0]).startswith(f"{tmp_path / 'extension.yaml'}:")
    assert expected in str(read.problems[0])


def test_unknown_and_repeated_keys_are_warnings(tmp_path):
    """A manifest for a later version still loads; slips are told."""
    read = manifest(tmp_path, "name: a\nrequire: [x]\nicon: y\nname: b\n")
    assert read.problems == ()
    assert read.name == "b"
    told = [str(each) for each in read.warnings]
    assert any("given twice (first in line 1)" in each for each in told)
    assert any('require: is not a key of a manifest. Did you mean "requires"?' in e for e in told)
    assert any(":3: icon: is not a key" in each for each in told)


@pytest.mark.parametrize(
    ("text", "installed", "expected"),
    [
        ("requires_hermes: '>=0.17'\n", {"hermes-agent": "0.19.0"}, None),
        ("requires_hermes: '>=0.17'\n", {"hermes-agent": "0.17.0rc1"}, "needs hermes-agent >=0.17"),
        ("requires_hermes: '>=0.17'\n", {"hermes-agent": "0.18.dev0"}, None),
        ("requires_hermes: '<0.17'\n", {"hermes-agent": "0.19.0"}, "found 0.19.0"),
        ("requires_hermes: '<0.17'\n", {}, None),
        (
            "requires_hermes_ext: '>=99'\n",
            {"hermes-ext": "0.1.0"},
            ":1: requires_hermes_ext: needs",
        ),
        ("requires: [numpy>=2]\n", {"numpy": "2.1"}, None),
        ("requires: [numpy>=2]\n", {"numpy": "1.26"}, "requires[0]: needs numpy>=2, found 1.26"),
        ("requires: [numpy>=2]\n", {}, "needs numpy>=2, which is not installed"),
        ("requires: ['x; python_version < \"3\"']\n", {}, None),
        ("requires: ['x @ https://example.org/x.whl']\n", {"x": "1"}, None),
        ("requires: [\"x>=1; extra == 'all'\"]\n", {}, None),
        ("requires: [x>=1]\n", {"x": "snapshot"}, "needs x>=1, found snapshot"),
        (
            "requires_hermes: '>=0.1'\n",
            {"hermes-agent": "main"},
            "needs hermes-agent >=0.1, found main",
        ),
    ],
)
def test_versions(tmp_path, text, installed, expected):
    """Needs are compared with what is installed; without Hermes its version does not count."""
    told = incompatibility(manifest(tmp_path, text), installed.get)
    if expected is None:
        assert told is None
    else:
        assert expected in str(told)


def test_versions_of_the_real_installation(tmp_path):
    """Without a stand-in, the distributions of this Python are asked."""
    assert incompatibility(manifest(tmp_path, "requires: [attrs>=1]\n")) is None
    assert "not installed" in str(incompatibility(manifest(tmp_path, "requires: [no-such-dist]\n")))


HERMES = "hermes_cli"


@pytest.fixture
def source_of_hermes(tmp_path, monkeypatch) -> Path:
    """A `hermes_cli` on the path that nobody has imported, and that says 0.18.3."""
    file = tmp_path / "path" / HERMES / "__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text('import sys\n\n__version__ = "0.18.3"\nsys.exit("imported")\n')
    monkeypatch.delitem(sys.modules, HERMES, raising=False)
    monkeypatch.syspath_prepend(file.parents[1])
    return file


def test_hermes_is_what_its_code_says(source_of_hermes):
    """Where metadata is missing or another, the code that is there counts; it is not imported."""
    assert installed_version("hermes-agent") == "0.18.3"
    assert installed_version("Hermes_Agent") == "0.18.3"


def test_hermes_is_what_runs(source_of_hermes, monkeypatch):
    """Code that is loaded counts before what is on the disk by now."""
    running = types.ModuleType(HERMES)
    running.__version__ = "0.18.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HERMES, running)
    assert installed_version("hermes-agent") == "0.18.1"


def test_hermes_that_says_nothing(tmp_path, source_of_hermes, monkeypatch):
    """Code without a version is what the metadata says; without that too it is in no range."""
    source_of_hermes.write_text("")
    info = source_of_hermes.parents[1] / "hermes_agent-0.18.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-agent\nVersion: 0.18.0\n")
    (info / "top_level.txt").write_text(f"{HERMES}\n")
    assert installed_version("hermes-agent") == "0.18.0"

    monkeypatch.setattr(importlib.metadata, "distributions", lambda **_: ())
    told = incompatibility(manifest(tmp_path, "requires_hermes: '>=0.1'\n"))
    assert "needs hermes-agent >=0.1, found an unknown version" in str(told)


def test_without_hermes_its_version_does_not_count(tmp_path, monkeypatch):
    """Neither code nor metadata: another host, which has no such version."""
    monkeypatch.delitem(sys.modules, HERMES, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_version("hermes-agent") is None
    assert incompatibility(manifest(tmp_path, "requires_hermes: '>=99'\n")) is None


def test_this_package_is_what_its_code_says(tmp_path, monkeypatch):
    """Its version is known without metadata too."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_version("hermes-ext") == hermes_ext.__version__
    told = incompatibility(manifest(tmp_path, "requires_hermes_ext: '>=99'\n"))
    assert f"needs hermes-ext >=99, found {hermes_ext.__version__}" in str(told)


def test_the_folder_names_the_extension(tmp_path):
    """Another spelling in the manifest is fine, another name is a warning."""
    read = manifest(tmp_path, "\nname: ping-island\n")
    assert name_differs(read, "ping_island") is None
    told = name_differs(read, "other")
    assert told is not None
    assert ":2: name: says 'ping-island'; the folder's name counts: 'other'" in told


def test_a_manifest_is_no_huge_file(tmp_path):
    """It is refused before it is parsed, from the disk and from a project's verified files."""
    text = "name: x\n#" + "x" * 250_000
    for read in (manifest(tmp_path, text), parse_manifest(tmp_path / "f", text.encode())):
        assert [each.message for each in read.problems] == ["is larger than 250,000 bytes"]
