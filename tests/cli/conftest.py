"""A Hermes home with extensions in it, and the commands run on it in-process and as processes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from jsonschema import Draft202012Validator
from tests.projects import Place

from hermes_ext.cli import main
from hermes_ext.cli._commands import COMMANDS, doctor
from hermes_ext.cli._loading import look_at_host
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "output.schema.json"

GOOD = """
from hermes_ext import register_hook

@register_hook("intercept_tool_call", priority=40)
def check(tool_name):
    return None
"""


@functools.cache
def schema_of(command: str) -> Draft202012Validator:
    """What the documented schema says of a command, or of `error`."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": f"#/$defs/{command}", "$defs": schema["$defs"]})


@functools.cache
def host_of(pythonpath: str | None) -> Survey:
    """What `doctor` finds out about Hermes, which costs an import of it: once for all homes."""
    assert os.environ.get("PYTHONPATH") == pythonpath
    with tempfile.TemporaryDirectory() as empty:
        return look_at_host(Path(empty))


def without_canary(argv: Sequence[str | bytes]) -> list[str | bytes]:
    """The same command, where it is `doctor` without the starts of Hermes."""
    return [*argv, "--no-canary"] if argv[:1] == ("doctor",) else [*argv]


@frozen
class Output:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str
    command: str = "error"

    @property
    def json(self) -> Any:
        """stdout as the one JSON value that it must be, in the documented form."""
        value = json.loads(self.out)
        failed = "error" in value or self.command not in COMMANDS
        schema_of("error" if failed else self.command).validate(value)
        return value


@frozen
class Home:
    """A scratch Hermes home; `run` is in-process, `process` a real child process.

    `run` looks at Hermes itself once for all homes, `process` each time. Neither has `doctor` start
    Hermes; tests/canary does.
    """

    path: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    def write_config(self, text: str) -> Path:
        self.config.write_bytes(textwrap.dedent(text).encode())
        return self.config

    def add(self, name: str, code: str = GOOD, manifest: str | None = None) -> Path:
        """Puts an extension into the global directory: a folder, or a file if NAME ends in .py."""
        path = self.path / "extensions" / name
        if name.endswith(".py"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(code))
            return path
        path.mkdir(parents=True)
        (path / "__init__.py").write_text(textwrap.dedent(code))
        if manifest is not None:
            (path / "extension.yaml").write_text(textwrap.dedent(manifest))
        return path

    def run(self, *argv: str) -> Output:
        self.capsys.readouterr()
        code = main([str(word) for word in without_canary(argv)])
        captured = self.capsys.readouterr()
        return Output(code, captured.out, captured.err, (argv or ("",))[0])

    def process(self, *argv: str | bytes, **env: str) -> Output:
        done = subprocess.run(
            [sys.executable, "-m", "hermes_ext.cli", *without_canary(argv)],
            capture_output=True,
            env={**os.environ, **env},
            check=False,
        )
        text = (done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        return Output(done.returncode, *text, (argv or ("",))[0])


@pytest.fixture
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Home:
    """An empty Hermes home that `$HERMES_HOME` names, with a working directory elsewhere."""
    path, work = tmp_path / "home", tmp_path / "work"
    path.mkdir()
    work.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("HERMES_EXT_OFF", "HERMES_EXT_TRUST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "look_at_host", lambda home: host_of(os.environ.get("PYTHONPATH")))
    monkeypatch.chdir(work)
    return Home(path, capsys)


@pytest.fixture
def repo(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A repository beside the home, still without extensions, that is the working directory."""
    place = Place(tmp_path, home=home.path)
    monkeypatch.chdir(place.root)
    monkeypatch.delenv("COLUMNS")  # lines are whole, however long the paths are
    return place


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution whose entry point `audit-trail` is an extension."""
    site = tmp_path / "site"
    info = site / "audit_trail-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: audit-trail\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[hermes_ext.extensions]\naudit-trail = audit_trail\n")
    (site / "audit_trail.py").write_text(GOOD)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    return site
