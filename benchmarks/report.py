"""What the benchmarks print, and the bars that they are held to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence


class Report:
    """Rows of figures and the bars that they are held to."""

    def __init__(self) -> None:
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
    ) -> None:
        """One figure, a ratio if nothing else is said, and its bar."""
        ok = value >= limit if at_least else value <= limit
        sign = ">=" if at_least else "<="
        self.figure(name, value, unit, digits, f"bar {sign} {limit:g}  {'ok' if ok else 'MISSED'}")
        if not ok:
            self.missed.append(f"{name}: {value:.{digits}f} {unit}, bar {sign} {limit:g}")


def run(doc: str | None, arguments: Sequence[str] | None, work: Callable[[Report], None]) -> int:
    """Do the work; 1 if `--check` was given and a bar is missed."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    asked = parser.parse_args(arguments)
    report = Report()
    work(report)
    for line in report.missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if asked.check and report.missed else 0
