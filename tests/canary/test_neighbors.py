"""`doctor` names other plugins that gate or trace tools, with what is known of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.canary.conftest import UsersHome

from hermes_ext.doctor import Finding, Severity
from hermes_ext.hosts.hermes.canary.neighbors import KNOWN, neighbor_findings

GATE = "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **_: None)\n"


def found(users: UsersHome) -> list[Finding]:
    return list(neighbor_findings(users.path))


@pytest.mark.parametrize("name", KNOWN)
def test_known_ones_have_their_line(users: UsersHome, name: str) -> None:
    """A plugin that was tried beside us is a note with what was found, and the version tried."""
    users.config(["hermes-ext", name])

    (note,) = found(users)

    assert (note.severity, note.code) == (Severity.NOTE, "neighbor")
    assert note.message.startswith(f"the plugin {name} ")
    assert "(tried with " in note.message


def test_the_versions_are_those_of_the_tests() -> None:
    """The versions in the notes are those that `nox -s neighbors` installs."""
    noxfile = (Path(__file__).parents[2] / "noxfile.py").read_text()
    for name, told in KNOWN.items():
        version = told.rpartition("(tried with ")[2].rstrip(")")
        assert f"=={version}" in noxfile, name


@pytest.mark.parametrize("kind", ["folder", "package"])
def test_an_unknown_one_is_said_to_be_unknown(
    users: UsersHome, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A plugin whose source names a hook about tools is a note that it has not been tried."""
    if kind == "folder":
        users.plugin("gate", GATE)
    else:
        users.pip_plugin("gate", GATE)
        monkeypatch.syspath_prepend(users.path.parent / "site")
    users.config(["hermes-ext", "gate"])

    (note,) = found(users)

    assert note.message == (
        "the plugin gate uses pre_tool_call, and has not been tried beside hermes-ext"
    )


def test_others_are_not_named(users: UsersHome) -> None:
    """A plugin that does nothing about tools, one that is off, and our own are no note."""
    users.plugin("gate", GATE)
    users.plugin("poet", "def register(ctx):\n    ctx.register_command('rhyme', print)\n")
    users.config(
        ["hermes-ext", "gate", "poet", "latitude", "gone"],
        plugin_settings={"disabled": ["gate", "latitude"]},
    )

    assert found(users) == []


def test_nothing_of_a_plugin_runs(users: UsersHome, tmp_path: Path) -> None:
    """Plugins are read, not imported, and a file that cannot be read hides nothing."""
    folder = users.plugin("gate", f"open({str(tmp_path / 'ran')!r}, 'w')\n{GATE}")
    (folder / "broken.py").symlink_to("nowhere.py")
    users.config(["gate"])

    assert len(found(users)) == 1
    assert not (tmp_path / "ran").exists()
