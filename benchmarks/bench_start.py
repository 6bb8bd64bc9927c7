"""What starting costs: the plugin in a start of the real Hermes, and each command.

    python benchmarks/bench_start.py            # the table
    python benchmarks/bench_start.py --check    # exit 1 where a bar is missed

The figures are user and system CPU of child processes, in starts of a bare interpreter
(`python -c pass`), so neither the machine's speed nor what else it does shows much. For Hermes it
is the median of the differences of interleaved rounds: `hermes -z hi` against a scripted model, in
homes that differ in our plugin only. Each round starts the two homes whose difference is smallest
beside the noise; those with extensions, which have more to spare, are in every third. For a command
it is the smallest of interleaved runs.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from report import Report, run

from hermes_ext.hosts.hermes.process.home import HermesHome, hermes_command
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

BARE = (sys.executable, "-c", "pass")
STARTS = 23
SELDOM = 3  # homes with extensions are started in every third round
RUNS = 15
ADDED_BARS = {"nothing on": 6.0, "one own extension": 12.0, "the seven bundled as well": 22.0}
COMMAND_BARS = {
    "--version": 3.0,
    "--help": 8.0,
    "completion of a command": 8.0,
    "completion of an option": 8.0,
    "list": 14.0,
    "why": 14.0,
    "log": 14.0,
}
BUNDLED = sorted(
    each.name for each in (Path(__file__).parents[1] / "extensions").iterdir() if each.is_dir()
)
OWN = """
from hermes_ext import HookResult, register_hook


@register_hook("intercept_tool_call", tools=["write_file"], guard=True)
def judge(tool_args):
    return HookResult.block("Not here.") if "secret" in str(tool_args) else None
"""
NO_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def cpu(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> float:
    """Milliseconds of user and system time of a process that has to succeed."""
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.chdir(cwd)
            os.execve(command[0], [*command], dict(env))
        os._exit(127)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1000


def script(request: Any) -> Reply:
    """A tool call where one is wanted, else the answer."""
    last = request.messages[-1]
    if last.get("role") == "user" and "write" in str(last.get("content")):
        return Reply(tool_calls=(ToolUse("write_file", {"path": "a", "content": "secret"}),))
    return Reply("hi")


def homes(folder: Path, model: ScriptedModel) -> dict[str, HermesHome]:
    """Homes that differ in our plugin and in what is on."""
    on: dict[str, Sequence[str]] = {
        "without": (),
        "nothing on": (),
        "one own extension": ("own",),
        "the seven bundled as well": ("own", *BUNDLED),
    }
    made = {}
    for number, (name, enabled) in enumerate(on.items()):
        home = made[name] = HermesHome(
            folder / str(number),
            model,
            plugins=() if name == "without" else ("hermes-ext",),
            extensions={"on": [*enabled]} if enabled else None,
        )
        if "own" in enabled:
            own = home.home / "extensions" / "own"
            own.mkdir(parents=True)
            (own / "__init__.py").write_text(OWN, encoding="utf-8")
    return made


def environment(home: HermesHome, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The home's environment, with bytecode written, as for a user."""
    return {name: value for name, value in home.env(extra).items() if name not in NO_BYTECODE}


def bench_hermes(report: Report, made: Mapping[str, HermesHome]) -> None:
    """`hermes -z hi`, against the same home without the plugin."""
    command = (*hermes_command(), "-z", "hi")
    environments = {name: environment(home) for name, home in made.items()}
    rows: list[dict[str, float]] = []
    for number in range(STARTS + 1):
        chosen = [*environments] if number % SELDOM == 0 else ["without", "nothing on"]
        if number % 2:  # neither of two is always the first
            chosen.reverse()
        row = {name: cpu(command, environments[name], made[name].project) for name in chosen}
        row["bare"] = min(cpu(BARE, os.environ, Path.cwd()) for _ in range(5))
        rows.append(row)
    del rows[0]  # it compiled what had no bytecode yet
    bare = statistics.median(row["bare"] for row in rows)
    print("CPU added to `hermes -z hi`, in starts of a bare interpreter")
    report.figure("a bare interpreter", bare, "ms", 1)
    alone = statistics.median(row["without"] / row["bare"] for row in rows)
    report.figure("Hermes without the plugin", alone, "x", 1)
    for name, bar in ADDED_BARS.items():
        of_it = [row for row in rows if name in row]
        added = statistics.median((row[name] - row["without"]) / row["bare"] for row in of_it)
        report.bar(name, added, bar, digits=1)
        least = min(row[name] for row in of_it) - min(row["without"] for row in of_it)
        report.figure("  the smallest by the smallest", least / bare, "x", 1)


def completing(line: str, home: HermesHome, answer: Path) -> dict[str, str]:
    """What a shell sets to have a line completed."""
    return environment(
        home,
        {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "COMP_TYPE": "9",
        },
    )


def bench_commands(report: Report, home: HermesHome, answer: Path) -> None:
    """Commands, in a home with an extension and a decision log."""
    script = str(Path(sys.executable).with_name("hermes-ext"))
    plain = environment(home)
    works = {name: ((script, name), plain) for name in COMMAND_BARS if " " not in name}
    works["completion of a command"] = (script,), completing("hermes-ext l", home, answer)
    works["completion of an option"] = (script,), completing("hermes-ext list --", home, answer)
    works["bare"] = BARE, plain
    best = dict.fromkeys(works, float("inf"))
    for _ in range(RUNS):
        for name, (command, env) in works.items():
            best[name] = min(best[name], cpu(command, env, home.project))
    print("a command's CPU, in starts of a bare interpreter")
    for name, bar in COMMAND_BARS.items():
        report.bar(name, best[name] / best["bare"], bar, digits=1)


def every(report: Report) -> None:
    """All of it."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-ext-bench-") as folder,
        ScriptedModel(script) as model,
    ):
        made = homes(Path(folder), model)
        bench_hermes(report, made)
        installed = made["one own extension"]
        installed.oneshot("write it").check()  # there is a decision to show
        bench_commands(report, installed, Path(folder, "answer"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run(__doc__, arguments, every)


if __name__ == "__main__":
    sys.exit(main())
