"""Bare and confined answers beside each other, and what differs."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attr
import attrs
from attrs import frozen
from tests.confine.corpus import runs
from tests.confine.corpus.drawn import Command
from tests.confine.corpus.project import Place
from tests.confine.corpus.runs import Answer

import hermes_ext

# The system's own: the one that runs the tests may lie where another user cannot reach it.
PYTHON: Final = "/usr/bin/python3"


@frozen
class Comparison:
    """One command's answers, in the order of the runs."""

    command: Command
    bare: tuple[Answer, ...]
    confined: tuple[Answer, ...]

    @property
    def steady(self) -> bool:
        """Whether all bare runs answer the same."""
        return len(set(self.bare)) == 1

    @property
    def same(self) -> bool:
        """Whether a confined run answers as a bare one, byte for byte."""
        return self.confined[-1] in self.bare

    def __str__(self) -> str:
        bare, confined = attrs.astuple(self.bare[-1]), attrs.astuple(self.confined[-1])
        parts = zip(("status", "output", "errors"), bare, confined, strict=True)
        differing = [
            f"{name} {_short(a)} bare, {_short(b)} confined" for name, a, b in parts if a != b
        ]
        return f"{self.command.line!r}: {'; '.join(differing) or 'the same'}"


class NotConfined(Exception):
    """This machine cannot confine processes of this user."""


def compared(place: Place, commands: Sequence[Command]) -> Iterator[Comparison]:
    """Run each of `commands` as the owner of `place`; nothing but a private folder is writable.

    Raises:
        NotConfined: Why this machine cannot.
    """
    asked = {
        "folder": str(place.project),
        "variables": place.variables,
        "lines": [each.line for each in commands],
    }
    said = _said(place, json.dumps(asked))
    if not (found := next(said))["rung"]:
        raise NotConfined(found["why"])
    for command, answered in zip(commands, said, strict=True):
        bare, confined = (
            tuple(Answer(**each) for each in answered[kind]) for kind in ("bare", "confined")
        )
        yield Comparison(command, bare, confined)


def _said(place: Place, asked: str) -> Iterator[dict[str, Any]]:
    """What `runs` says, line for line."""
    code = place.home.with_name("code")
    if not code.exists():
        _copy(code)
    environment = {**place.variables, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [PYTHON, str(code / "runs.py")], env=environment, cwd="/", stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, **place.owner.as_whom,
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        with started.stdin as stdin:
            stdin.write(asked)
        yield from map(json.loads, started.stdout)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, started.args)


def _copy(code: Path) -> None:
    """What `runs` needs, where every user can read it."""
    for package in (hermes_ext, attr, attrs):
        folder = Path(str(package.__file__)).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, code / folder.name, ignore=ignored)
    shutil.copy(str(runs.__file__), code)
    for folder, _, names in os.walk(code):
        Path(folder).chmod(0o755)
        for name in names:
            Path(folder, name).chmod(0o644)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:100]}…{text[-50:]}"
