"""What is in the wheel, and what an installation of it offers."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from hermes_ext.__about__ import __version__
from hermes_ext.hosts.hermes.home.installing import PLUGIN

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel, built from this checkout without a network."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = target.glob("*.whl")
    return zipfile.Path(built)


def test_bundled_extensions_ship(wheel: zipfile.Path) -> None:
    """Each extension of the repository is in the wheel, without its tests."""
    bundled = wheel / "hermes_ext" / "bundled"
    here = {folder.name for folder in (ROOT / "extensions").iterdir() if folder.is_dir()}
    folders = [each for each in bundled.iterdir() if each.is_dir()]
    assert {folder.name for folder in folders} == here
    assert (bundled / "manifests.json").is_file()
    for folder in folders:
        names = {entry.name for entry in folder.iterdir()}
        assert {"__init__.py", "extension.yaml", "README.md"} <= names
        assert "tests" not in names
        assert "__pycache__" not in names


def test_types_ship(wheel: zipfile.Path) -> None:
    """Type checkers find the marker that says the package is typed."""
    assert (wheel / "hermes_ext" / "py.typed").exists()


def test_every_module_ships(wheel: zipfile.Path) -> None:
    """All of `src/hermes_ext` is in the wheel and nothing else at its top level."""
    here = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    there = {name for name in wheel.root.namelist() if name.endswith(".py")}
    assert here <= there
    assert {name.split("/")[0] for name in there} == {"hermes_ext"}


def test_hermes_finds_the_plugin(wheel: zipfile.Path) -> None:
    """The wheel registers the plugin and the command under the names that the docs give."""
    (info,) = (entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info"))
    text = (info / "entry_points.txt").read_text(encoding="utf-8")
    assert "[hermes_agent.plugins]\nhermes-ext = hermes_ext.hosts.hermes.plugin" in text
    assert "[pytest11]\nhermes_ext.testing.plugin = hermes_ext.testing.plugin" in text
    assert "[console_scripts]\nhermes-ext = hermes_ext.cli:main" in text


def test_the_plugin_folder_is_of_this_version() -> None:
    """The manifest of the plugin's folder names the version of the package that it belongs to."""
    manifest = yaml.safe_load((ROOT / "plugin" / "hermes-ext" / "plugin.yaml").read_text())
    assert manifest["version"] == __version__
    assert manifest["name"] == PLUGIN


def test_classifiers_name_what_the_tests_run_on() -> None:
    """The Python of `make test`, and those of noxfile.py."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if " :: 3." in each}
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (listed,) = [
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "PYTHONS"
    ]
    assert named == {project["requires-python"].removeprefix(">="), *listed}
