"""Run as whoever the commands are run as: each bare, confined, and bare again.

What differs is run up to four times more: some answers vary by themselves, such as ripgrep's order
of files.

Standard input has one JSON object: the folder, the variables and the lines. Standard output gets
one JSON object for each line as soon as it is known. It needs `hermes_ext.confine` and nothing else
of this project, so that another user can run it with the system's Python.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from hermes_ext.confine import Confinement, ConfinementError, Sandbox, inside, support

SECONDS: Final = 10.0
_ROUNDS: Final = 5


@frozen
class Answer:
    """What a command line gave; the bytes of its output as Latin-1, one character each."""

    status: int | None  # None: it was ended after `SECONDS`
    out: str
    err: str


def run(line: str, folder: Path, variables: Mapping[str, str], **who: Any) -> Answer:
    """Run `line` without input and terminal."""
    with subprocess.Popen(
        ["bash", "-c", line], cwd=folder, env=variables, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who,
    ) as started:  # fmt: skip
        try:
            output, status = started.communicate(timeout=SECONDS), started.returncode
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            output, status = started.communicate(), None
    return Answer(status, *(each.decode("latin-1") for each in output))


def main() -> None:
    """Answer for each line; the first object says what the machine offers."""
    asked = json.load(sys.stdin)
    folder, variables = Path(asked["folder"]), asked["variables"]
    found = support()
    _say({"rung": found.rung, "why": found.why})
    if found.rung is None:
        return
    os.chdir(folder)
    sandbox = Sandbox(Confinement(), found)
    for line in asked["lines"]:
        bare, confined = [run(line, folder, variables)], list[Answer]()
        for _ in range(_ROUNDS):
            confined.append(_confined(line, sandbox, folder, variables))
            bare.append(run(line, folder, variables))
            if confined[-1] in bare:
                break
        _say({"bare": list(map(asdict, bare)), "confined": list(map(asdict, confined))})


def _confined(line: str, sandbox: Sandbox, folder: Path, variables: Mapping[str, str]) -> Answer:
    try:
        with inside(sandbox):
            return run(line, folder, variables)
    except ConfinementError as error:
        return Answer(None, "", f"not started: {error}")


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
