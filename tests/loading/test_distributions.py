"""Installed distributions with broken metadata: reported by name, and nothing ends by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext.doctor import Severity, examine
from hermes_ext.hooks.source import Source
from hermes_ext.hosts.hermes.checks import host_findings
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.hosts.hermes.home.installing import install
from hermes_ext.loading import switches
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.records import Status
from hermes_ext.settings.manifest import installed_version

GUARD = """
from hermes_ext import register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_name): ...
"""
FINE = b"Metadata-Version: 2.1\nName: odd\nVersion: 1.2\n"
POINTS = b"[hermes_ext.extensions]\nodd = odd_rules\n"

# The metadata, the entry points, and whether these can be read.
BROKEN = {
    "Latin-1": (FINE + b"Author: Jos\xe9\n", POINTS, True),
    "no name": (b"Metadata-Version: 2.1\n", POINTS, True),
    "empty": (b"", POINTS, True),
    "binary": (b"\x00\xff\xfe", POINTS, True),
    "missing": (None, POINTS, True),
    "entry points in Latin-1": (FINE, POINTS + b"# Jos\xe9\n", False),
    "an entry point without a module": (FINE, b"[hermes_ext.extensions]\nodd\n", False),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    install(home)
    return home


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Installs the distribution `odd` with broken metadata; returns its folder."""

    def make(kind: str) -> Path:
        metadata, points, _ = BROKEN[kind]
        site = tmp_path / "site"
        info = site / "odd-1.2.dist-info"
        info.mkdir(parents=True)
        (site / "odd_rules.py").write_text(GUARD)
        if metadata is not None:
            (info / "METADATA").write_bytes(metadata)
        (info / "entry_points.txt").write_bytes(points)
        monkeypatch.syspath_prepend(site)
        return info

    return make


@pytest.mark.parametrize("kind", BROKEN)
def test_nothing_ends_by_broken_metadata(home: Path, odd: Callable[[str], Path], kind: str) -> None:
    """Every look at what is installed ends, and one problem names the distribution."""
    info = odd(kind)

    problems = inventory(home).problems
    told = [str(each) for each in problems if each.file.parent == info]
    assert len(told) == 1
    assert "installed distribution odd is broken" in told[0]
    assert "pip install --force-reinstall odd" in told[0]
    [finding] = [each for each in examine(home, None) if each.code == "distribution"]
    assert finding.severity is Severity.WARNING
    assert load(home, everything=True).records
    assert installed_version("odd") in {"1.2", None}


@pytest.mark.parametrize("kind", BROKEN)
def test_one_that_is_named_loads_or_refuses_with_the_reason(
    home: Path, odd: Callable[[str], Path], kind: str
) -> None:
    """Named in `required`, it is in force if its entry point can be read, else the refusal says
    which distribution is broken and what to do.
    """
    odd(kind)
    with (home / "config.yaml").open("a") as file:
        file.write("extensions:\n  on: [odd]\n  required: [odd]\n")

    loaded = load(home)

    if BROKEN[kind][2]:
        assert loaded.refusal is None
        [record] = [each for each in loaded.records if each.source is Source.ENTRY_POINT]
        assert (record.name, record.status) == ("odd", Status.ENABLED)
    else:
        assert loaded.refusal is not None
        assert "odd (missing: " in loaded.refusal
        assert "installed distribution odd is broken" in loaded.refusal


def test_disable_works_beside_a_broken_distribution(home: Path, odd: Callable[[str], Path]) -> None:
    """The commands that change the configuration do not depend on others' metadata."""
    odd("Latin-1")
    (home / "extensions/rules.py").write_text(GUARD)

    assert switches.disable(home, None, "rules").changed


@pytest.mark.skipif(host_package() is None, reason="no Hermes is installed")
def test_hermes_without_entry_points_is_an_error(home: Path, odd: Callable[[str], Path]) -> None:
    """Where one broken distribution keeps Hermes from reading any entry point, `doctor` fails:
    Hermes would load no plugin, and with it no extension.
    """
    odd("entry points in Latin-1")

    [finding] = [
        each for each in host_findings(home, inventory(home, None)) if each.code == "plugin-off"
    ]

    assert finding.severity is Severity.ERROR
    assert "it loads no plugin" in finding.message
    assert "odd is broken" in finding.message
