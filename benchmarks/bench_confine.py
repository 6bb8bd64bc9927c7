"""What confining a program costs, in starts of a bare interpreter.

    python benchmarks/bench_confine.py            # the table
    python benchmarks/bench_confine.py --check    # exit 1 where a bar is missed

`/bin/true` is started bare, confined, and beside it `python -I -S -c pass`, in turn; the figure of
each is its median. Each rung that this machine has is measured; the bar is for the one that
`support()` finds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from report import Report, run

from hermes_ext.confine import Confinement, Sandbox, Support, inside, support

ROUNDS = 61
BAR = 2.0
TRUE = ("/bin/true",)
PYTHON = (sys.executable, "-I", "-S", "-c", "pass")
OTHERS = ({"landlock"}, {"namespaces"}, {"namespaces", "bubblewrap"})


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    return run(__doc__, arguments, work)


def work(report: Report) -> None:
    """Every rung, the first of them with a bar."""
    found = support()
    if found.rung is None:
        print(f"  not measured: {found.why}")
        return
    rungs = {found.rung: found}
    for without in OTHERS:
        other = support("landlock", without=frozenset(without))
        if other.rung is not None:
            rungs.setdefault(other.rung, other)
    for rung, each in rungs.items():
        bare, confined, python = times(each)
        note = f"bare {bare:.2f} ms, confined {confined:.2f} ms, Python {python:.2f} ms"
        name = f"{rung}, in starts of Python"
        if each is found:
            report.bar(name, (confined - bare) / python, BAR)
            print(f"    {note}")
        else:
            report.figure(name, (confined - bare) / python, "x", 2, note)


def times(found: Support) -> tuple[float, float, float]:
    """Milliseconds of a bare start, a confined one, and one of Python; medians."""
    sandbox = Sandbox(Confinement(), found)

    def confined() -> None:
        with inside(sandbox):
            subprocess.run(TRUE, check=True)

    def bare() -> None:
        subprocess.run(TRUE, check=True)

    def python() -> None:
        subprocess.run(PYTHON, check=True)

    starts = (bare, confined, python)
    rounds = [tuple(map(_milliseconds, starts)) for _ in range(ROUNDS)]
    a, b, c = (statistics.median(each) for each in zip(*rounds, strict=True))
    return a, b, c


def _milliseconds(start: Callable[[], None]) -> float:
    before = time.perf_counter()
    start()
    return (time.perf_counter() - before) * 1000


if __name__ == "__main__":
    sys.exit(main())
