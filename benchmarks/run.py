"""All benchmarks, one after the other, each in a process of its own.

    python benchmarks/run.py            # the figures
    python benchmarks/run.py --check    # exit 1 where a bar is missed: what `make bench` does

Nothing is compared with another machine or another run: every bar is a ratio of things that were
measured side by side.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run each with the same options; 1 if any failed."""
    failed = []
    for script in (*sorted(HERE.glob("bench_*.py")), HERE / "count_call.py"):
        print(f"\n== {script.stem}", flush=True)
        if subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode:
            failed.append(script.stem)
    if failed:
        print(f"\nnot within the bars: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
