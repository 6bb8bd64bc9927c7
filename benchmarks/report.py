"""What the benchmarks print, the bars that they are held to, and what they were before."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SLACK = 1.2  # the machines are noisy
GROWN = 1.25  # what may be added to a figure, against the one that was saved


class Report:
    """Rows of figures and the bars that they are held to."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self.before = before or {}
        self.bars: dict[str, float] = {}
        self.missed: list[str] = []

    def figure(self, name: str, value: float, unit: str, digits: int, note: str = "") -> None:
        """One figure."""
        print(f"  {name:<46} {value:>10.{digits}f} {unit:<2}   {note}".rstrip())

    def row(self, name: str, nanoseconds: float, note: str = "") -> None:
        """One short time."""
        self.figure(name, nanoseconds / 1000, "µs", 2, note)

    def bar(
        self,
        name: str,
        value: float,
        limit: float,
        *,
        at_least: bool = False,
        unit: str = "x",
        digits: int = 2,
        slack: float = SLACK,
    ) -> None:
        """One figure, a ratio if nothing else is said, and its bar."""
        ok = value * slack >= limit if at_least else value <= limit * slack
        sign = ">=" if at_least else "<="
        self.figure(name, value, unit, digits, f"bar {sign} {limit:g}  {'ok' if ok else 'MISSED'}")
        if unit != "ms":  # times are the machine's, and of the moment
            self.bars[name] = round(value, 4)
        before = self.before.get(name)
        # Of a figure that is next to nothing, noise is a multiple.
        if before is not None and not at_least and value > max(before * GROWN, limit / 10):
            self.missed.append(f"{name}: {value:.2f}, it was {before:.2f}")
        if not ok:
            shown = f"{value:.2f}" if unit == "x" else f"{value:.2f} {unit}"
            self.missed.append(f"{name}: {shown}, bar {sign} {limit:g}")


def run(doc: str | None, arguments: Sequence[str] | None, work: Callable[[Report], None]) -> int:
    """Do the work; 1 if `--check` was given and a bar is missed."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    parser.add_argument("--save", type=_file, help="add the figures that have a bar to this file")
    parser.add_argument("--against", type=_file, help="they may be a quarter above this file's")
    asked = parser.parse_args(arguments)
    report = Report(_saved(asked.against))
    work(report)
    if asked.save is not None:
        figures = _saved(asked.save) | report.bars
        asked.save.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    for line in report.missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if asked.check and report.missed else 0


def _file(name: str) -> Path:
    return Path(name).absolute()  # what is measured may change the directory


def _saved(file: Path | None) -> dict[str, float]:
    if file is None or not file.exists():
        return {}
    found: dict[str, float] = json.loads(file.read_text())
    return found
