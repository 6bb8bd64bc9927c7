"""The trees of one test process, and what is asked of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Self

from attrs import field, frozen
from tests.effects.oracle.runner import environ
from tests.effects.oracle.tree import TREES, WORK

from hermes_ext import ToolCall
from hermes_ext.effects import ChangeKind, Effects, Machine, effects_of
from hermes_ext.effects._record import Recorder
from hermes_ext.hosts.hermes.facts.tools import TOOLS

__all__ = ["Run", "Scratch", "missed"]

_REPOSITORY = Path(__file__).parents[3]


@frozen
class Run:
    """A command and what it did."""

    command: str
    tree: str
    changed: dict[str, str] = field(factory=dict)  # path below the root -> how
    status: int | None = 0


class Scratch:
    """The scratch trees and the process that runs commands in them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Run] = {}
        memory = "/dev/shm"
        where = memory if os.access(memory, os.W_OK) else None
        self._root = os.path.realpath(tempfile.mkdtemp(prefix="hermes-ext-oracle-", dir=where))
        self._runner = subprocess.Popen(
            [sys.executable, "-m", "tests.effects.oracle.runner", self._root],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._runner.stdout is not None
        if self._runner.stdout.readline() != "ready\n":
            self.close()
            raise OSError("the runner of the oracle did not start, see its error above")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove the trees."""
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        self._runner.stdin.close()
        self._runner.wait()
        self._runner.stdout.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def root(self, tree: str = "plain") -> Path:
        """Where a tree stands."""
        return Path(self._root, tree)

    def _placed(self, command: str, tree: str) -> str:
        return command.replace("@ROOT@", str(self.root(tree)))

    @cached_property
    def _machines(self) -> dict[str, Machine]:
        return {tree: self._machine(self.root(tree)) for tree in TREES}

    @staticmethod
    def _machine(root: Path) -> Machine:
        known = environ(str(root))
        return Machine(
            tools=TOOLS,
            cwd=root / WORK,
            homes=(known["HOME"],),
            environ={name: known[name] for name in ("TMPDIR", "USER", "LOGNAME")},
        )

    def judge(self, command: str, tree: str = "plain", skip: str = "") -> Effects:
        """What is said of a command before it runs; `skip`: with that rule left out."""
        machine = self._machines[tree]
        command = self._placed(command, tree)
        if not skip:
            return effects_of(ToolCall("terminal", {"command": command}), machine=machine)
        from hermes_ext.effects._tools import announce

        recorder = Recorder(machine, {skip})
        announce("terminal", {"command": command}, recorder)
        return recorder.effects()

    def run(self, command: str, tree: str = "plain") -> Run:
        """Really run it, once: what it does is remembered."""
        known = self._known.get((command, tree))
        if known is None:
            known = self._known[command, tree] = self._run(command, tree)
        return known

    def _run(self, command: str, tree: str) -> Run:
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        asked = {"command": self._placed(command, tree), "tree": tree}
        self._runner.stdin.write(json.dumps(asked) + "\n")
        self._runner.stdin.flush()
        line = self._runner.stdout.readline()
        if not line:
            raise OSError(f"the runner of the oracle ended at {command!r}")
        answer = json.loads(line)
        return Run(command, tree, answer["changed"], answer["status"])


def missed(run: Run, effects: Effects, root: Path) -> dict[str, str]:
    """What the command changed and nobody announced, and faults of the reading itself."""
    if not effects.exact:
        return {why: "fault" for why in effects.unknown if why.startswith(_FAULT)}
    return {
        path: how for path, how in run.changed.items() if not _announced(effects, root / path, how)
    }


_FAULT = "terminal cannot be understood ("  # what is said where our own code fails
_FITS = {
    "created": {ChangeKind.CREATE},
    "changed": {ChangeKind.WRITE, ChangeKind.CREATE},
    "deleted": {ChangeKind.DELETE},
}


def _announced(effects: Effects, path: Path, how: str) -> bool:
    """Whether a change is among those announced, and as what it is."""
    fitting = _FITS[how]
    return any(
        change.touches(path)
        and (change.kind in fitting or (change.tree and change.kind is ChangeKind.WRITE))
        for change in effects.changes
    )
