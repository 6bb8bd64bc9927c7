"""Which folder is the Hermes home: the same for our commands and for Hermes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes_ext import Runtime
from hermes_ext.hosts.hermes.facts.hermes import hermes_home

VALUES = [
    None,
    "",
    " ",
    "\t\n",
    "/srv/hermes",
    "/srv/hermes/",
    " /srv/hermes ",
    "/srv/a folder",
    "/srv/../srv/hermes",
    "~/.hermes",
    "~",
    "~nobody/x",
    "~/.hermes ",
    "relative",
    "./relative/home",
    "..",
    ".",
    "$HOME/.hermes",
    "${HOME}/x",
    "$NO_SUCH_NAME/x",
    "%USERPROFILE%",
    "/srv/ünïcode",
    "'/srv/quoted'",
    "/srv/new\nline",
]


def put(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("HERMES_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("HERMES_HOME", value)


@pytest.mark.hermes
@pytest.mark.parametrize("value", VALUES)
def test_it_is_what_hermes_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """Whatever `$HERMES_HOME` is, the commands work on the home that Hermes would use."""
    hermes_constants = pytest.importorskip("hermes_constants", reason="hermes-agent is not here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    put(monkeypatch, value)

    assert hermes_home() == Path(os.path.abspath(hermes_constants.get_hermes_home()))


@pytest.mark.parametrize("value", VALUES)
def test_without_hermes_it_is_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """Without Hermes in this Python, the value is a path as it is written, and a blank one is the
    default.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setitem(sys.modules, "hermes_constants", None)
    put(monkeypatch, value)

    written = (value or "").strip()

    assert hermes_home() == Path(os.path.abspath(written or tmp_path / "user/.hermes"))


@pytest.mark.parametrize("here", [True, False], ids=["with Hermes", "without"])
def test_no_home_is_no_folder_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """Where no home is known, it is a place that cannot be, not a folder `~` of this directory."""
    monkeypatch.chdir(tmp_path)
    put(monkeypatch, None)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    if not here:
        monkeypatch.setitem(sys.modules, "hermes_constants", None)

    assert not hermes_home().is_relative_to(tmp_path)
    assert not hermes_home().exists()


def test_a_home_that_code_names_may_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Runtime.from_config(home="~/x")` is the user's folder, as `--home ~/x` is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    extension = tmp_path / "x/extensions/rules.py"
    extension.parent.mkdir(parents=True)
    extension.write_text(
        "from hermes_ext import register_hook\n"
        "@register_hook('intercept_tool_call')\n"
        "def check(tool_name): ...\n"
    )

    runtime = Runtime.from_config(home="~/x", cwd=tmp_path)

    assert extension in {record.path for record in runtime.records}
    runtime.close()
