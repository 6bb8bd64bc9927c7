"""Slash commands of extensions on the disk: loaded, listed, and no name twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import Runtime
from hermes_ext.cli import main
from hermes_ext.doctor import is_broken
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey
from hermes_ext.hosts.hermes.checks import host_findings
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.settings.config import read_config

PLAN = """\
from hermes_ext import register_command

@register_command("plan", args_hint="on|off", help="turn plan mode on or off")
def plan(args, config):
    return f"{NAME}: {args} {dict(config)}"
"""


def put(home: Path, name: str, source: str = PLAN, **config: Any) -> None:
    folder = home / "extensions" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f"NAME = {name!r}\n{source}")


def test_a_command_alone_is_enough(tmp_path: Path) -> None:
    """An extension that only has a command registers something, and is called."""
    put(tmp_path, "plan-mode")
    (tmp_path / "config.yaml").write_text("extensions:\n  plan-mode:\n    depth: 2\n")
    loaded = load(tmp_path)
    (record,) = [each for each in loaded.records if each.name == "plan-mode"]
    assert (record.status, record.warnings) == ("enabled", ())
    assert not is_broken(record, loaded.config)
    assert [each.name for each in record.commands] == ["plan"]
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    told = runtime.command("plan", "on", session_id="s")
    assert told == "plan-mode: on {'depth': 2}"
    runtime.close()


def test_a_name_is_one_extensions(tmp_path: Path) -> None:
    """The first one in the order keeps the name; the other is told, and does not load worse."""
    put(tmp_path, "a-first")
    put(tmp_path, "b-second")
    loaded = load(tmp_path)
    records = {each.name: each for each in loaded.records}
    assert [each.extension for each in loaded.commands] == ["a-first"]
    (warning,) = records["b-second"].warnings
    assert "/plan (" in warning
    assert 'because "a-first" has a command of this name' in warning
    assert records["b-second"].commands == ()


def test_what_the_host_has_is_a_finding(tmp_path: Path) -> None:
    """A name of the host's own is told with file and line."""
    put(tmp_path, "helper", PLAN.replace('"plan"', '"help"'))
    loaded = load(tmp_path)
    found = host_findings(tmp_path, loaded, Survey(commands=("help", "new")))
    (finding,) = [each for each in found if each.code == "command-taken"]
    assert finding.extension == "helper"
    assert "/help is a command of Hermes itself" in finding.message
    assert finding.where is not None
    assert finding.where.endswith("__init__.py:4")


def test_list_remembers_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`list` and `info` show the commands of the last load, without loading."""
    put(tmp_path, "plan-mode")
    load(tmp_path)
    (record,) = [e for e in inventory(tmp_path, tmp_path).records if e.name == "plan-mode"]
    assert [each.name for each in record.commands] == ["plan"]
    assert main(["list", "--json", "--home", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    (entry,) = [each for each in told["extensions"] if each["name"] == "plan-mode"]
    assert [each["name"] for each in entry["commands"]] == ["plan"]
    assert main(["info", "plan-mode", "--home", str(tmp_path)]) == 0
    assert "/plan on|off  turn plan mode on or off" in capsys.readouterr().out


def test_two_functions_for_one_name(tmp_path: Path) -> None:
    """It does not load, with both lines in the reason."""
    put(tmp_path, "twice", PLAN + PLAN.replace("def plan(", "def other("))
    (record,) = [each for each in load(tmp_path).records if each.name == "twice"]
    assert record.status == "load-error"
    assert "/plan is registered twice" in record.reason


def test_disabled_extensions_have_none(tmp_path: Path) -> None:
    """What is off has no command."""
    put(tmp_path, "plan-mode")
    (tmp_path / "config.yaml").write_text("extensions:\n  disabled: [plan-mode]\n")
    assert read_config(tmp_path).problems == ()
    assert load(tmp_path).commands == ()
