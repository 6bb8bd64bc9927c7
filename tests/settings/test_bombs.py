"""YAML whose aliases or merge keys multiply is refused at once, with file and line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGES = (
    "m0: &m0 {"
    + ", ".join(f"k{n}: 1" for n in range(20))
    + "}\n"
    + "".join(
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}], z{n}: 1}}\n" for n in range(1, 40)
    )
)
FLAT = (
    "big: &big {"
    + ", ".join(f"k{n}: 1" for n in range(2_000))
    + "}\n"
    + "".join(f"m{n}: {{<<: [{', '.join(['*big'] * 50)}]}}\n" for n in range(50))
)
BOMBS = {"aliases": ALIASES, "merges": MERGES, "one mapping, merged often": FLAT}
CODE = "from hermes_ext import register_hook\n@register_hook('before_llm_call')\ndef f(): ...\n"
SECONDS, BYTES = 30, 1 << 30


def told(place: Path, *words: str) -> str:
    """What a command prints, with little time and memory."""
    command = [sys.executable, "-P", "-m", "hermes_ext", *words]
    done = subprocess.run(
        command,
        cwd=place / "project",
        env={**os.environ, "HERMES_HOME": str(place / "home"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES)),
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=BOMBS.values(), ids=BOMBS)
def bomb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with an extension, and a project with another."""
    for folder in ("home/extensions/one", "project/.hermes/extensions/two"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text(CODE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("words", ["list", "enable budget", "disable one", "install"])
def test_the_configuration(place: Path, bomb: str, words: str) -> None:
    """Every command that reads it, also one that would change it."""
    file = place / "home" / "config.yaml"
    file.write_text(bomb, encoding="utf-8")
    output = told(place, *words.split())
    assert f"{file}:" in output
    assert "expands to more than" in output
    assert file.read_text(encoding="utf-8") == bomb


def test_a_manifest(place: Path, bomb: str) -> None:
    """That of one extension keeps no other from loading."""
    file = place / "home" / "extensions" / "one" / "extension.yaml"
    file.write_text(bomb, encoding="utf-8")
    output = told(place, "list", "--load")
    assert f"{file}:" in output
    assert "expands to more than" in output


def test_settings_of_a_project(place: Path, bomb: str) -> None:
    """Seen before anybody has trusted the project."""
    file = place / "project" / ".hermes" / "extensions.yaml"
    file.write_text(bomb, encoding="utf-8")
    output = told(place, "trust", "--yes")
    assert "extensions.yaml line " in output
    assert "expands to more than" in output


def test_a_file_of_events(place: Path, bomb: str) -> None:
    """From a file and from a pipe."""
    file = place / "project" / "events.yaml"
    file.write_text(bomb, encoding="utf-8")
    output = told(place, "test", "one", "--event", "events.yaml")
    assert f"{file}:" in output
    assert "expands to more than" in output
