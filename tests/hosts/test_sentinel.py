"""The sentinel: who writes it, who removes it, and what a person changed is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hermes_ext.exceptions import ConfigError
from hermes_ext.hosts.hermes.home.installing import PLUGIN, install, uninstall
from hermes_ext.hosts.hermes.home.sentinel import (
    NAME,
    SentinelState,
    sentinel_folder,
    sentinel_state,
    write_sentinel,
)


def enabled(home: Path) -> list[str]:
    names: list[str] = yaml.safe_load((home / "config.yaml").read_text())["plugins"]["enabled"]
    return names


def test_nothing_required_writes_none(tmp_path: Path) -> None:
    """Without `required` and `--sentinel` a home gets no sentinel."""
    done = install(tmp_path)

    assert (done.sentinel, done.sentinel_changed) == (None, False)
    assert sentinel_state(tmp_path) is SentinelState.ABSENT
    assert enabled(tmp_path) == [PLUGIN]


@pytest.mark.parametrize("asked", [True, False], ids=["asked for", "required"])
def test_it_is_written_and_enabled_and_removed_again(tmp_path: Path, asked: bool) -> None:
    """`install` writes and enables it, twice changes nothing, and `uninstall` removes it."""
    if not asked:
        (tmp_path / "config.yaml").write_text("extensions:\n  required: [guard]\n")

    done = install(tmp_path, sentinel=asked)

    folder = sentinel_folder(tmp_path)
    assert (done.sentinel, done.sentinel_changed) == (folder, True)
    assert sentinel_state(tmp_path) is SentinelState.CURRENT
    assert yaml.safe_load((folder / "plugin.yaml").read_text())["name"] == NAME
    assert enabled(tmp_path) == [PLUGIN, NAME]
    assert not install(tmp_path, sentinel=asked).changed
    gone = uninstall(tmp_path)
    assert (gone.sentinel, gone.sentinel_changed, gone.notes) == (None, True, ())
    assert not folder.exists()
    assert NAME not in (tmp_path / "config.yaml").read_text()


def test_it_uses_nothing_but_python(tmp_path: Path) -> None:
    """It is imported by a Python that has no other package, and refuses with the reason."""
    write_sentinel(tmp_path)
    code = (
        "import runpy, sys\n"
        "stub = runpy.run_path(sys.argv[1])\n"
        "print(stub['refuse'](tool_name='terminal')['message'])\n"
    )

    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(sentinel_folder(tmp_path) / "__init__.py")],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "the package hermes-ext is gone from" in run.stdout
    assert f"delete the folder {sentinel_folder(tmp_path)}" in run.stdout


CHANGES = {
    "a changed file": lambda folder: (folder / "__init__.py").write_text("# mine\n"),
    "a further file": lambda folder: (folder / "notes.txt").touch(),
    "a missing file": lambda folder: (folder / "plugin.yaml").unlink(),
    "a link": lambda folder: folder.rename(folder.with_name("x")) and folder.symlink_to("x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_person_changed_is_kept(tmp_path: Path, change: str) -> None:
    """A folder that is not as install left it is neither overwritten nor removed, and told."""
    install(tmp_path, sentinel=True)
    folder = sentinel_folder(tmp_path)
    CHANGES[change](folder)
    before = sorted(folder.iterdir())

    with pytest.raises(ConfigError, match="not as install left it"):
        install(tmp_path, sentinel=True)
    config = tmp_path / "config.yaml"
    config.write_text(f"{config.read_text()}extensions: {{required: [guard]}}\n")
    assert "not as install left it" in install(tmp_path).notes[-1]
    done = uninstall(tmp_path)

    assert sorted(folder.iterdir()) == before
    assert "is kept, because it is not as install left it" in done.notes[0]
    assert (done.sentinel, done.sentinel_changed) == (folder, False)
    assert NAME not in (tmp_path / "config.yaml").read_text()


def test_one_of_another_release_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged sentinel of another release is known as ours, renewed by `install`."""
    from hermes_ext.hosts.hermes.home import sentinel

    monkeypatch.setattr(sentinel, "_MANIFEST", f"name: {NAME}\nversion: '0'\n")
    install(tmp_path, sentinel=True)
    monkeypatch.undo()

    assert sentinel_state(tmp_path) is SentinelState.OLD
    assert install(tmp_path).sentinel_changed
    assert sentinel_state(tmp_path) is SentinelState.CURRENT
