"""A long run: `python -m tests.effects.oracle --count 50000 --seed 7`."""

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.effects.oracle.constructs import CONSTRUCTS, Construct
from tests.effects.oracle.generate import commands
from tests.effects.oracle.scratch import Scratch, missed


def _round(seed: str, names: list[str]) -> Iterator[tuple[Construct, str]]:
    """One command of each construct in turn, for ever."""
    ahead = {name: commands(CONSTRUCTS[name], seed) for name in names}
    while ahead:
        for name in list(ahead):
            command = next(ahead[name], None)
            if command is None:
                del ahead[name]
            else:
                yield CONSTRUCTS[name], command


def main() -> int:
    """Run, show each miss, and the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.effects.oracle", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="how many commands")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="what they are made from")
    parser.add_argument("--only", action="append", help="these constructs", choices=CONSTRUCTS)
    parser.add_argument("--show-inexact", action="store_true", help="print what is not understood")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    counts, exact, misses, late = Counter[str](), Counter[str](), Counter[str](), 0
    begun = time.monotonic()
    with Scratch() as scratch:
        ahead = _round(asked.seed, asked.only or list(CONSTRUCTS))
        for number, (construct, command) in enumerate(itertools.islice(ahead, asked.count), 1):
            effects = scratch.judge(command, construct.tree)
            run = scratch.run(command, construct.tree)
            counts[construct.name] += 1
            exact[construct.name] += effects.exact
            if run.status is None:
                late += 1
                print(f"LATE {construct.name}: {command!r}")
            if asked.show_inexact and not effects.exact:
                print(f"INEXACT {construct.name}: {command!r} {effects.unknown}")
            if lost := missed(run, effects, scratch.root(construct.tree)):
                misses[construct.name] += 1
                print(f"MISS {construct.name}: {command!r}", *(lost.items()), sep="\n    ")
            if number % 500 == 0:
                rate = number / (time.monotonic() - begun)
                print(f"{number} commands, {misses.total()} misses, {rate:.0f}/s", flush=True)
    print(f"{'construct':24}{'commands':>10}{'exact':>8}{'misses':>8}")
    for name in counts:
        share = exact[name] / counts[name]
        print(f"{name:24}{counts[name]:>10}{share:>8.0%}{misses[name]:>8}")
    seconds = time.monotonic() - begun
    print(
        f"seed {asked.seed}: {counts.total()} commands in {seconds:.0f} s, "
        f"{exact.total() / max(1, counts.total()):.0%} exact, {late} without an end, "
        f"{misses.total()} misses"
    )
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
