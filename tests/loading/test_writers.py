"""Who else can change the user's extensions: reported at each start, and loaded all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext import Runtime
from hermes_ext.doctor import Severity, examine
from hermes_ext.loading.finding.discovery import discover
from hermes_ext.settings.config import read_config

CODE = "from hermes_ext import register_hook\n@register_hook('before_llm_call')\ndef f(): ...\n"
OTHER = 4711

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is the user's alone, with an extension of either kind."""
    home = tmp_path / "above" / "home"
    (home / "extensions" / "pack" / "data").mkdir(parents=True)
    (home / "extensions" / "one.py").write_text(CODE, encoding="utf-8")
    (home / "extensions" / "pack" / "__init__.py").write_text(CODE, encoding="utf-8")
    for path in (home.parent, home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return home


def told(home: Path) -> list[tuple[str, str]]:
    """What is reported: the path below the home, and how others can change it."""
    found = discover(read_config(home), home=home, entry_points=False).writable
    return [(os.path.relpath(each.file, home), each.message) for each in found]


def test_what_is_ones_own_is_not_reported(home: Path) -> None:
    """Neither with strict permissions nor with those that a umask of 022 gives."""
    assert told(home) == []
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert told(home) == []


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("extensions", 0o777),
        ("extensions", 0o1777),  # others can add to it
        ("extensions/one.py", 0o666),
        ("extensions/pack", 0o757),
        ("extensions/pack/__init__.py", 0o602),
        ("extensions/pack/data", 0o777),
        (".", 0o777),
        ("..", 0o777),
    ],
)
def test_what_everybody_can_write_is_reported(home: Path, place: str, mode: int) -> None:
    """The folder, those above it, and whatever lies in an extension."""
    (home / place).chmod(mode)
    ((where, message),) = told(home)
    assert where == place
    assert message == f"anyone can write to it (mode {mode:04o}) and so change the rules"


def test_a_sticky_folder_above_is_usual(home: Path) -> None:
    """As /tmp is: nobody replaces there what is another's."""
    home.parent.chmod(0o1777)
    assert told(home) == []


def as_root(change: Callable[[], None]) -> None:
    try:
        change()
    except PermissionError:
        pytest.skip("only root can give files away")


@pytest.mark.parametrize(
    "place",
    [
        "extensions",
        "extensions/one.py",
        "extensions/pack",
        "extensions/pack/__init__.py",
        ".",
        "..",
    ],
)
def test_what_is_another_users_is_reported(home: Path, place: str) -> None:
    """A module or folder of another owner is theirs to change."""
    as_root(lambda: os.chown(home / place, OTHER, -1))
    ((where, message),) = told(home)
    assert where == place
    assert message == f"belongs to another user (uid {OTHER}), who can change the rules"


def test_a_group_of_others_is_reported(home: Path) -> None:
    """A user's own group has nobody else in it; any other may have."""
    path = home / "extensions" / "one.py"
    as_root(lambda: os.chown(path, -1, OTHER))
    path.chmod(0o660)
    ((where, message),) = told(home)
    assert where == "extensions/one.py"
    assert "a group can write to it (mode 0660)" in message


def test_where_a_link_leads_counts(home: Path, tmp_path: Path) -> None:
    """An extension that is a link is where it leads."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "linked").mkdir(parents=True)
    (elsewhere / "linked" / "__init__.py").write_text(CODE, encoding="utf-8")
    (home / "extensions" / "linked").symlink_to(elsewhere / "linked")
    assert told(home) == []
    elsewhere.chmod(0o777)
    ((where, _),) = told(home)
    assert (home / where).resolve() == elsewhere


def test_it_is_loaded_and_said(home: Path) -> None:
    """Left out, a guard would let calls pass. A start says it, `list` too, `doctor --ci` fails."""
    (home / "extensions").chmod(0o777)
    runtime = Runtime.from_config(home=home, cwd=home)
    assert {each.name for each in runtime.records if each.status == "enabled"} == {"one", "pack"}
    assert ["anyone can write to it" in str(each) for each in runtime.problems] == [True]
    runtime.close()
    for ci in (False, True):
        (finding,) = [each for each in examine(home, home, ci=ci) if "anyone" in each.message]
        assert finding.code == "writable-by-others"
        assert finding.severity is (Severity.ERROR if ci else Severity.WARNING)
        assert "chmod go-w" in str(finding.hint)
    command = [sys.executable, "-P", "-m", "hermes_ext.cli", "list", "--home", str(home)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "anyone can write to it" in shown
    seen = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False).stdout
    assert len(json.loads(seen)["problems"]) == 1
