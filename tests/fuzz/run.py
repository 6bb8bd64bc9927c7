"""A long run: `python -m tests.fuzz.run [TARGET …] --seconds 60`.

With atheris (`pip install hermes-ext[fuzz]`) the inputs are led by what code they reach, else they
are Hypothesis's. Each target runs in a process of its own, so that one which ends its process is
told like any other. What broke a promise is made smaller and written to `--found`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from attrs import define, field

__all__ = ["main"]

_LARGEST: Final = 4096
_TRIES: Final = 400  # to make an input smaller


@define
class _Watched:
    """Runs a target, counts, and keeps what broke a promise: one input for each place."""

    run: Callable[[bytes], None]
    found: Path
    until: float
    executions: int = 0
    broken: dict[str, str] = field(factory=dict)

    def __call__(self, data: bytes) -> None:
        self.executions += 1
        told = self.tried(data)
        if told is not None and told[0] not in self.broken:
            self.broken[told[0]] = told[1]
            self.found.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(told[0].encode()).hexdigest()[:12]
            (self.found / name).write_bytes(self.smaller(data, told[0]))
            (self.found / f"{name}.txt").write_text("\n".join(told), errors="backslashreplace")

    def tried(self, data: bytes) -> tuple[str, str] | None:
        """Where and how it fails, None if it does not."""
        try:
            self.run(data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            trace, place = error.__traceback__, ""
            while trace is not None:
                code = trace.tb_frame.f_code
                if "fuzz" not in code.co_filename or not place:
                    place = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
                trace = trace.tb_next
            told = f"{type(error).__name__}: {error}"
            return f"{place} {told[:40]}", told
        return None

    def smaller(self, data: bytes, place: str) -> bytes:
        """The same with as much as possible taken out."""
        tries, piece = 0, max(1, len(data) // 2)
        while piece and tries < _TRIES:
            at = 0
            while at < len(data) and tries < _TRIES:
                less = data[:at] + data[at + piece :]
                tries += 1
                told = self.tried(less)
                if told is not None and told[0] == place:
                    data = less
                else:
                    at += piece
            piece //= 2
        return data


def _by_hypothesis(watched: _Watched, name: str, seed: int) -> None:
    import hypothesis
    from tests.fuzz.made import inputs
    from tests.fuzz.targets import TARGETS

    while time.monotonic() < watched.until:
        seed += 1

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=500,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(inputs(TARGETS[name]))
        def tried(data: bytes) -> None:
            if time.monotonic() < watched.until:
                watched(data)

        tried()


def _by_atheris(watched: _Watched, name: str, seed: int, seconds: float) -> None:
    import atheris
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        corpus, words = Path(folder, "corpus"), Path(folder, "words")
        corpus.mkdir()
        for place, each in enumerate(target.seeds):
            (corpus / str(place)).write_bytes(each)
        lines = ("".join(f"\\x{byte:02x}" for byte in token) for token in target.tokens)
        words.write_text("".join(f'"{line}"\n' for line in lines if line))
        atheris.Setup(
            [
                name, str(corpus), f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}",
                f"-dict={words}", f"-max_len={_LARGEST}", "-timeout=120", "-rss_limit_mb=4096",
                f"-artifact_prefix={watched.found}/", "-print_final_stats=1", "-verbosity=1",
            ],
            watched,
        )  # fmt: skip
        atheris.Fuzz()


def _alone(name: str, seconds: float, seed: int, found: Path, engine: str) -> None:
    """One target in this process."""
    if engine == "atheris":
        import atheris

        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, atheris.instrument_imports(include=["hermes_ext"]):
            from tests.fuzz.targets import TARGETS

            for each in TARGETS[name].seeds:  # what is imported when it is used
                with contextlib.suppress(AssertionError):
                    TARGETS[name].run(each)
    else:
        from tests.fuzz.targets import TARGETS
    watched = _Watched(TARGETS[name].run, found / name, time.monotonic() + seconds)
    (found / name).mkdir(parents=True, exist_ok=True)
    # libFuzzer ends the process itself, so the figures are written while it runs.
    report = _Report(watched, found / f"{name}.json")
    if engine == "atheris":
        watched.run, run = report.noting(watched.run), watched.run
        _by_atheris(watched, name, seed, seconds)
        watched.run = run
    else:
        _by_hypothesis(watched, name, seed)
    report.write()


@define
class _Report:
    watched: _Watched
    file: Path
    written: float = 0.0

    def noting(self, run: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def noted(data: bytes) -> None:
            if time.monotonic() - self.written > 0.5:
                self.write()
            run(data)

        return noted

    def write(self) -> None:
        self.written = time.monotonic()
        told = {"executions": self.watched.executions, "broken": self.watched.broken}
        self.file.write_text(json.dumps(told))


def _figures(name: str, seconds: float, seed: int, found: Path, engine: str) -> dict[str, Any]:
    """Runs one target in a process of its own."""
    begun = time.monotonic()
    asked = ["--alone", "--seconds", str(seconds), "--seed", str(seed), "--found", str(found)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", name, *asked, "--engine", engine],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds * 3 + 300,
    )
    try:
        told = json.loads((found / f"{name}.json").read_text())
    except (OSError, ValueError):
        told = {"executions": 0, "broken": {}}
    broken = told["broken"]
    if ran.returncode != 0:
        broken[f"the process ended with {ran.returncode}"] = ran.stderr[-2000:]
    counted = re.search(r"number_of_executed_units:\s*(\d+)", ran.stderr)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", ran.stderr)
    return {
        "target": name,
        "engine": engine,
        "seconds": round(time.monotonic() - begun),
        "executions": int(counted[1]) if counted else told["executions"],
        "features": int(reached[-1][1]) if reached else None,
        "broken": broken,
    }


def _table(rows: Iterable[dict[str, Any]]) -> str:
    lines = ["| target | executions | features | seconds | broken |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['target']} | {row['executions']:,} | {row['features'] or '-'} "
        f"| {row['seconds']} | {len(row['broken'])} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Run, and print the figures. Returns 1 if a promise was broken."""
    engines = ["hypothesis"]
    if importlib.util.find_spec("atheris") is not None:
        engines.insert(0, "atheris")
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("target", nargs="*", help="all by default")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31) + 1)
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="a folder")
    parser.add_argument("--engine", choices=engines, default=engines[0])
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:  # before anything is imported that is to be instrumented
        _alone(*asked.target, asked.seconds, asked.seed, asked.found, asked.engine)
        return 0
    from tests.fuzz.targets import TARGETS

    unknown = set(asked.target) - TARGETS.keys()
    if unknown:
        parser.error(f"no target is called {', '.join(sorted(unknown))}: {', '.join(TARGETS)}")
    asked.found.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in asked.target or TARGETS:
        rows.append(_figures(name, asked.seconds, asked.seed, asked.found, asked.engine))
        for place, told in rows[-1]["broken"].items():
            print(f"BROKEN {name}: {place}\n    {told}", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps({"seed": asked.seed, "targets": rows}, indent=1))
    else:
        print(f"seed {asked.seed}\n{_table(rows)}")
    return 1 if any(row["broken"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
