"""What it costs to ask what a tool call touches.

    python benchmarks/bench_effects.py            # the table
    python benchmarks/bench_effects.py --check    # exit 1 where a bar is missed

Each figure is the smallest of many rounds, by the smallest program's start (`true`), which is less
than what the call itself costs. The first question of a process reads the data about commands and
the grammar, and is shown apart; asked again about the same call, the answer is known.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from report import Report, run

from hermes_ext import ToolCall
from hermes_ext.effects import Machine, effects_of

ROUNDS = 60
BAR = 1.0
SMALLEST = shutil.which("true") or "/bin/true"

# Usual ones, of which none copies a tree: that looks at all that is in it.
CALLS = [
    ToolCall("terminal", {"command": command})
    for command in (
        "ls -la",
        "git status",
        "cat src/app.py | head -20",
        "cd src && grep -rn foo . | head",
        "find . -name '*.py' -type f",
        "sed -i s/a/b/ src/app.py",
        "rm -rf build dist",
        "echo hello > notes.txt",
        "for f in src/*.py; do wc -l $f; done",
        "python -c 'import json; print(json.loads(\"1\"))'",
        "npm test 2>&1 | tail -30",
        "mkdir -p out && cp src/app.py out/",
    )
] + [
    ToolCall("write_file", {"path": "src/app.py", "content": "x" * 10_000}),
    ToolCall(
        "patch",
        {"mode": "replace", "path": "src/app.py", "old_string": "a", "new_string": "b"},
    ),
    ToolCall("execute_code", {"code": "from pathlib import Path\nprint(Path('a').read_text())"}),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run(__doc__, arguments, _every)


def _every(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="hermes-ext-bench-") as folder:
        (Path(folder) / "src").mkdir()
        (Path(folder) / "src" / "app.py").write_text("a = 1\n")
        machine = Machine(cwd=Path(folder))
        report.figure("the first question of a process", _once(CALLS[0], machine), "ms", 3)
        start = float("inf")
        best = [float("inf")] * len(CALLS)
        for _ in range(ROUNDS):
            start = min(start, _start())
            best = [min(one, _once(call, machine)) for one, call in zip(best, CALLS, strict=True)]
        report.figure("the start of the smallest program", start, "ms", 3)
        for call, one in zip(CALLS, best, strict=True):
            name = str(call.tool_args.get("command", call.tool_name))
            report.bar(name, one / start, BAR)


def _once(call: ToolCall, machine: Machine) -> float:
    began = time.perf_counter()
    effects_of(call, machine=machine)
    return (time.perf_counter() - began) * 1000


def _start() -> float:
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(SMALLEST, [SMALLEST], os.environ), 0)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    sys.exit(main())
