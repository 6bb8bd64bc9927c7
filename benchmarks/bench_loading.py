"""What loading extensions costs, beside a loader as anybody would write it.

    python benchmarks/bench_loading.py            # the table
    python benchmarks/bench_loading.py --check    # exit 1 where a bar is missed

Every load happens in its own process. What is compared is its CPU, the smallest of several
interleaved rounds: a start at which nothing has changed since the one before, which is each start
but the first; the first is shown, too. Both loaders have imported what they need before; how long
that takes ours is shown. The naive one finds its bytecode, whatever this
shell's settings are; ours compiles what it has checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from report import Report, run

ROUNDS = {100: 15, 1_000: 5}
IMPORTS = 11
LOADING_BAR = 0.6
IMPORT_BAR = 1.5
LOADING = (
    "hermes_ext.runtime",
    "hermes_ext.loading.loader",
    "hermes_ext.loading.directories",
    "hermes_ext.loading.extension",
    "hermes_ext.loading.imports.children",
    "hermes_ext.loading.reloading.in_force",
    "hermes_ext.turns.decisions.log",
    "hermes_ext.turns.sqlite_store",
    "hermes_ext.guard.guard",
    "hermes_ext.hooks.plugins",
    "hermes_ext.hosts.hermes.facts.hermes",
)
NO_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")

EXTENSION = """
from hermes_ext import HookResult, register_hook


@register_hook("intercept_tool_call", tools=["tool_{number}"], guard=True)
def judge(tool_name, tool_args, config):
    if str(tool_args.get("path", "")).startswith(config["prefix"]):
        return HookResult.block("Not here.")
    return None
"""
MANIFEST = """
name: extension-{number}
version: 1.0.0
description: Keeps a tool out of a folder.
config:
  type: object
  additionalProperties: false
  properties:
    prefix: {{type: string, default: /etc, description: The folder.}}
"""

# The yardstick: find, read, import, register, sort. It knows no settings, no trust, no failures.
NAIVE = """
import importlib.util, sys, time
from pathlib import Path
import pluggy, yaml
import hermes_ext, hermes_ext.runtime
spec = pluggy.HookspecMarker("naive")
class Specs:
    @spec
    def intercept_tool_call(self, tool_name, tool_args, config): ...
began = time.process_time()
manager = pluggy.PluginManager("naive")
manager.add_hookspecs(Specs)
mark = pluggy.HookimplMarker("naive")
found = []
for folder in sorted(Path(sys.argv[1], "extensions").iterdir()):
    manifest = yaml.safe_load((folder / "extension.yaml").read_text())
    name = "naive_" + folder.name.replace("-", "_")
    place = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(place)
    sys.modules[name] = module
    place.loader.exec_module(module)
    mark(specname="intercept_tool_call")(module.judge)
    manager.register(module, manifest["name"])
    found.append((100, manifest["name"], module.judge))
found.sort(key=lambda each: each[:2])
print(time.process_time() - began, len(found))
"""
OURS = """
import sys, time
from pathlib import Path
import pluggy, yaml
import {loading}
before = set(sys.modules)
began = time.process_time()
runtime = hermes_ext.runtime.Runtime.from_config(home=Path(sys.argv[1]), cwd=Path("/"))
took = time.process_time() - began
late = [name for name in set(sys.modules) - before if name.startswith("hermes_ext.")]
assert not late, f"imported while the time was taken: {late}"
print(took, sum(handler.extension.startswith("extension") for handler in runtime.handlers))
""".replace("{loading}", ", ".join(LOADING))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run(__doc__, arguments, _every)


def _every(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="hermes-ext-bench-") as folder:
        for size in ROUNDS:
            _loading(report, Path(folder, str(size)), size)
    _importing(report)


def _loading(report: Report, home: Path, size: int) -> None:
    for number in range(size):
        place = home / "extensions" / f"extension-{number}"
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(EXTENSION.replace("{number}", str(number)))
        (place / "extension.yaml").write_text(MANIFEST.format(number=number))
    best: dict[str, float] = {}
    for number in range(ROUNDS[size] + 1):
        for name, program in (("naive", NAIVE), ("ours", OURS)):
            seconds, count = _run(program, str(home)).split()
            assert int(count) == size, (name, count)
            kind = name if number else f"{name}, for the first time"
            best[kind] = min(best.get(kind, float("inf")), float(seconds))
    print(f"{size} extensions")
    for name, seconds in best.items():
        report.figure(name, seconds * 1000, "ms", 1)
    report.bar(f"{size} extensions, load / naive load", best["ours"] / best["naive"], LOADING_BAR)


def _importing(report: Report) -> None:
    programs = {
        "nothing": "pass",
        "pluggy and attrs": "import pluggy, attrs",
        "what an extension imports": "from hermes_ext import HookResult, register_hook",
        "all that loading needs": f"import {', '.join(LOADING)}",
    }
    best = dict.fromkeys(programs, float("inf"))
    timed = "import time; began = time.process_time(); {}; print(time.process_time() - began)"
    for _ in range(IMPORTS):
        for name, program in programs.items():
            best[name] = min(best[name], float(_run(timed.format(program))))
    print("imports")
    for name, seconds in best.items():
        report.figure(name, seconds * 1000, "ms", 1)
    ratio = best["what an extension imports"] / best["pluggy and attrs"]
    report.bar("what an extension imports / pluggy and attrs", ratio, IMPORT_BAR)


def _run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    settings = {name: value for name, value in os.environ.items() if name not in NO_BYTECODE}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
