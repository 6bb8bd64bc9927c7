"""Do the tests notice faults? `python -m tests.mutation RESULTS src/hermes_ext/chain …`.

Puts one small fault after the other into the code and runs the tests that are likely to see it. It
writes into the checkout, so give it one to throw away, with an environment of its own:

    git clone . /tmp/faults && make -C /tmp/faults .venv/installed-dev
    python -m tests.mutation faults.jsonl src/hermes_ext/chain --root /tmp/faults --count 100
    python -m tests.mutation again.jsonl --again faults.jsonl --root /tmp/faults

A run that is interrupted goes on where it ended. `--covering` takes the data of a run of the tests
under `coverage` with `dynamic_context = test_function`: of a line only the tests that run it are
tried, which takes seconds instead of minutes. `--again` takes the mutants that an earlier run
killed, perhaps in older code, puts each where its function is now, and runs the test first that
saw it then. `before.jsonl` has those of a sample of 100, seed 15, in the code before its rooms were
moved: `--again tests/mutation/before.jsonl`.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from pathlib import Path

import yaml
from tests.mutation.mutants import Mutant, place_of, sample
from tests.mutation.runs import Result, Stages, note, read_results, run, write_result

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # takes the mutant out
    root = options.root.resolve()
    python = str(options.python or root / ".venv/bin/python")
    chosen = _again(root, options.again) if options.again else _sampled(root, options)
    done = {result.mutant.name for result in read_results(options.results)}
    stages = Stages.of(root, options.covering)
    chosen.sort(key=lambda each: "/hosts/" in each[0].file)  # what takes longest comes last
    killers = {each.mutant.name: each.by for each in read_results(options.again or Path())}
    for number, (before, mutant) in enumerate(chosen, 1):
        if before.name in done:
            continue
        if mutant is None:
            result = Result(before, "gone")
        else:
            killer = killers.get(before.name, "").partition("[")[0]
            first = killer if (root / killer.partition("::")[0]).is_file() else ""
            ran = run(mutant, stages, python=python, timeout=options.timeout, first=first)
            # Known by the name that it had, so that a run which goes on knows it again.
            result = Result(before, ran.outcome, ran.by, ran.seconds)
        write_result(options.results, result)
        note(f"{number}/{len(chosen)} {result.outcome} {result.seconds} s {before.function}")
    return _report(read_results(options.results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("results", type=Path, help="JSON lines; a run goes on where it ended")
    parser.add_argument("code", nargs="*", help="folders or modules, below the root")
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--python", type=Path, help="default: .venv/bin/python below the root")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--again", type=Path, help="results of a run whose killed ones are run")
    parser.add_argument("--covering", type=Path, help="data of coverage, by test function")
    parser.add_argument(
        "--timeout", type=float, default=120, help="seconds for a few tests; folders get more"
    )
    return parser


def _sampled(root: Path, options: argparse.Namespace) -> list[tuple[Mutant, Mutant | None]]:
    found = sample(root, options.code, count=options.count, seed=options.seed)
    return [(mutant, mutant) for mutant in found]


def _again(root: Path, earlier: Path) -> list[tuple[Mutant, Mutant | None]]:
    """The mutants that were killed, each with where it is put now."""
    files = sorted((root / "src").rglob("*.py"))
    texts = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in files}
    killed = [result.mutant for result in read_results(earlier) if result.killed]
    return [(mutant, place_of(mutant, texts)) for mutant in killed]


def equivalent() -> dict[tuple[str, str, str, int], str]:
    """The reasons why mutants are no other program, by function, old text, new text and `nth`."""
    known = yaml.safe_load((HERE / "equivalent.yaml").read_text(encoding="utf-8"))
    return {
        (each["function"], each["old"], each["new"], each.get("nth", 0)): each["reason"]
        for each in known
    }


def _report(results: list[Result]) -> int:
    """Print the counts and the survivors; 1 where one is not known to be equivalent."""
    reasons = equivalent()
    counted = Counter(result.outcome for result in results)
    killed = sum(result.killed for result in results)
    tried = len(results) - counted["gone"]
    open_ones = 0
    for result in results:
        if result.outcome != "survived":
            continue
        mutant = result.mutant
        reason = reasons.get((mutant.function, mutant.old, mutant.new, mutant.nth))
        open_ones += reason is None
        print(f"survived: {mutant.file}:{mutant.line} {mutant.function} ({mutant.operator})")
        print(f"  - {mutant.old}\n  + {mutant.new}\n  {reason or 'not explained'}")
    print(f"{killed} of {tried} killed, {dict(counted)}, {open_ones} survivors not explained")
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
