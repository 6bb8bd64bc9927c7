"""Runs the tests on mutants, one at a time, in the checkout itself: give it one to throw away."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml
from attrs import asdict, frozen
from tests.mutation.covering import FIRST, Covering
from tests.mutation.mutants import Mutant

__all__ = ["Result", "Stages", "read_results", "run", "write_result"]

_HERE: Final = Path(__file__).parent
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@frozen
class Result:
    """What the tests said of a mutant.

    Attributes:
        mutant: the mutant, where it was put.
        outcome: `killed`, `timeout` (which kills too), `survived`, or `gone` (nowhere to put it).
        by: the test that failed first, or what the tests did instead.
        seconds: how long it took.
    """

    mutant: Mutant
    outcome: str
    by: str = ""
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        return self.outcome in {"killed", "timeout"}


def read_results(path: Path) -> list[Result]:
    """The results of a run, as far as it came."""
    if not path.is_file():
        return []
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Result(**{**each, "mutant": Mutant(**each["mutant"])}) for each in read]


def write_result(path: Path, result: Result) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")


@frozen
class Stages:
    """Which tests are run for a module, the likeliest first.

    Attributes:
        root: the checkout.
        rooms: groups of test files by room, as in `tests.yaml`.
        covering: which tests run which line, where that was recorded.
    """

    root: Path
    rooms: dict[str, list[str]]
    covering: Covering | None = None

    @classmethod
    def of(cls, root: Path, covering: Path | None = None) -> Stages:
        rooms = yaml.safe_load((_HERE / "tests.yaml").read_text(encoding="utf-8"))
        return cls(root, rooms, Covering.of(root, covering) if covering else None)

    def of_mutant(self, mutant: Mutant) -> list[list[str]]:
        """The tests that run its line, else those of its room."""
        covering = self.covering
        groups = covering.of_line(mutant.file, mutant.line) if covering is not None else []
        others = self.of_file(mutant.file)
        if covering is None or "/hosts/" in mutant.file:  # Hermes runs in processes of its own
            return groups + others
        # What runs at import is of all tests; those of its room are the likeliest.
        return groups if groups and mutant.function else groups + others[:2]

    def of_file(self, file: str) -> list[list[str]]:
        """Groups of test files and folders; first those that are named after the module."""
        parts = [part.lstrip("_") for part in Path(file).parts]
        path = "/".join(parts)
        rooms = [lines for room, lines in self.rooms.items() if f"/{room}/" in path]
        groups = [[test for test in line.split() if self._exists(test)] for line in rooms[0]]
        stem = Path(parts[-1]).stem
        named = [
            test.relative_to(self.root).as_posix()
            for folder in groups[0]
            for test in sorted((self.root / folder).glob(f"test_*{stem}*.py"))
        ]
        return [group for group in ([named] if named else []) + groups if group]

    def _exists(self, test: str) -> bool:
        return (self.root / test).exists()


def run(mutant: Mutant, stages: Stages, *, python: str, timeout: float, first: str = "") -> Result:
    """Put a mutant into its file, run the tests until one fails, and take it out again.

    Args:
        mutant: the mutant, where it is to be put.
        stages: which tests are run.
        python: the interpreter that runs them.
        timeout: seconds for a few tests; folders get more.
        first: the test that is run before all others.
    """
    began = time.monotonic()
    with _applied(stages.root / mutant.file, mutant):
        outcome, by = "survived", ""
        for group in [*([[first]] if first else []), *stages.of_mutant(mutant)]:
            few = "::" in group[0] and len(group) <= FIRST  # not folders, or hundreds of tests
            patience = timeout if few else timeout * 6
            outcome, by = _tested(group, stages.root, python, patience)
            if outcome != "survived":
                break
    return Result(mutant, outcome, by, round(time.monotonic() - began, 1))


@contextlib.contextmanager
def _applied(file: Path, mutant: Mutant) -> Iterator[None]:
    before = file.read_bytes()
    try:
        file.write_text(mutant.applied(before.decode()), encoding="utf-8")
        _forget_bytecode(file)
        yield
    finally:
        file.write_bytes(before)
        _forget_bytecode(file)


def _forget_bytecode(file: Path) -> None:
    """Bytecode is known by its source's size and second, which a mutant may have too."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def _tested(group: list[str], root: Path, python: str, timeout: float) -> tuple[str, str]:
    """(outcome, which test failed first) of a group of tests."""
    command = [python, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *group]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=timeout)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            return "timeout", " ".join(group)
        finally:  # what the tests started too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in {0, 5} or "\nERROR: not found: " in f"\n{output}":
        return "survived", ""
    failed = _FAILED.search(output)
    return "killed", failed[1] if failed else f"exit {process.returncode}: {output[-200:].strip()}"


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
