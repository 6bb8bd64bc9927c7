"""All benchmarks, one after the other, each in a process of its own.

python benchmarks/run.py            # the figures
python benchmarks/run.py --check    # exit 1 where a bar is missed
python benchmarks/run.py --save benchmarks/baseline.json      # what later runs are held against
python benchmarks/run.py --against benchmarks/baseline.json   # which is what `make bench` does
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run each `bench_*.py` with the same options; 1 if any failed."""
    failed = []
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"\n== {script.stem}", flush=True)
        if subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode:
            failed.append(script.stem)
    if failed:
        print(f"\nnot within the bars: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
