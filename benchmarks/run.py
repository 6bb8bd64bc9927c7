"""All benchmarks, one after the other, each in a process of its own.

    python benchmarks/run.py            # the figures
    python benchmarks/run.py --check    # exit 1 where a bar is missed: what `make bench` does

Nothing is compared with another machine or another run: every bar is a ratio of things that were
measured side by side. Ratios move by some percent between processes, so a benchmark that misses a
bar is run again in a new one; it has to hold all its bars in one of three.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TRIES = 3


def main() -> int:
    """Run each with the same options; 1 if any failed."""
    scripts = (*sorted(HERE.glob("bench_*.py")), HERE / "count_call.py")
    failed = [script.stem for script in scripts if not any(map(_holds, [script] * TRIES))]
    if failed:
        print(f"\nnot within the bars: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _holds(script: Path) -> bool:
    print(f"\n== {script.stem}", flush=True)
    return not subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
