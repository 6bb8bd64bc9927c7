"""What it costs to look for secrets: by the length of a text, in one run.

    python benchmarks/bench_redaction.py            # the table
    python benchmarks/bench_redaction.py --check    # exit 1 where a bar is missed

Ten megabytes may take at most twelve times as long as one, whatever is in them.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from report import Report, run

from hermes_ext._redaction.finding import Finder

MEGABYTE = 1_000_000
BAR = 12.0
_RANDOM = random.Random(7)


def _html() -> str:
    name = _RANDOM.randrange(10**6)
    return f'<div class="card" id="n{name}"><a href="/users/{name}?tab=auth">User {name}</a></div>'


def _json() -> str:
    return json.dumps(
        {"id": _RANDOM.randrange(10**9), "token_count": 12, "name": "a b", "ok": True}
    )


def _csv() -> str:
    return f"{_RANDOM.randrange(10**6)},2026-01-02T03:04:05Z,ok,{_RANDOM.random()},some text\n"


def _log() -> str:
    return f"2026-01-02 03:04:05 INFO [worker-{_RANDOM.randrange(9)}] GET /api/keys 200 in 12 ms\n"


TEXTS: Mapping[str, Callable[[], str]] = {
    "HTML": _html,
    "JSON": _json,
    "CSV": _csv,
    "a log": _log,
    "base64": lambda: base64.b64encode(_RANDOM.randbytes(3_000)).decode(),
    "one line": lambda: f"word{_RANDOM.randrange(99)} ",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if `--check` was given and a bar is missed."""
    return run(__doc__, arguments, _every)


def _every(report: Report) -> None:
    for random_too in (False, True):
        finder = Finder(random=random_too)
        for kind, part in TEXTS.items():
            sample = "".join(part() for _ in range(400))
            text = sample * (10 * MEGABYTE // len(sample) + 1)
            small = min(_seconds(finder, text[:MEGABYTE]) for _ in range(3))
            large = _seconds(finder, text[: 10 * MEGABYTE])
            also = ", random texts too" if random_too else ""
            report.figure(f"{kind}: 1 MB{also}", small * 1000, "ms", 0)
            report.bar(f"{kind}: 10 MB / 1 MB{also}", large / small, BAR)


def _seconds(finder: Finder, text: str) -> float:
    began = time.process_time()
    finder.replaced(text)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
