"""Draw the commands: `python -m tests.confine.corpus.draw`, as root, where `apt-get` works.

A fixed seed shuffles the filled examples of the sources. Program after program gives one command
of its next form, until there are enough. Each must first show that it only reads: it is tried in a
throwaway copy of the whole system, so that what it changes is seen and lost; then it is run bare,
twice as root and twice as an ordinary user, and must answer the same and change nothing. No
command is run confined here.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from attrs import define, field
from tests.confine.corpus import machine, screen
from tests.confine.corpus.drawn import Command, Drawn
from tests.confine.corpus.filling import filled
from tests.confine.corpus.machine import ROOT
from tests.confine.corpus.project import Place
from tests.confine.corpus.sources import SOURCES, download, examples
from tests.confine.corpus.words import simple_commands

SEED: Final = "hermes_ext corpus 1"
COUNT: Final = 300
_HOPELESS: Final = 25  # forms of one program that fail one after the other
_APART: Final = 60
_PAUSE: Final = 1.2  # seconds between two bare runs, so that a clock in the answer shows
# Programs whose only use is to change something, that ask another machine, or that do not end: a
# line with one of these words is not tried at all.
_NEVER: Final = frozenset(
    {
        "chattr", "chgrp", "chmod", "chown", "cp", "dd", "fdisk", "halt", "init", "install",
        "kill", "killall", "ln", "mkdir", "mkfifo", "mkfs", "mktemp", "mv", "parted", "pkill",
        "poweroff", "reboot", "rename", "rm", "rmdir", "rsync", "setfacl", "setfattr", "shred",
        "shutdown", "ssh-keygen", "sudo", "tee", "telinit", "touch", "truncate", "useradd",
        "userdel", "usermod",
        "dig", "host", "nc", "ncat", "nslookup", "ping", "scp", "sftp", "ssh", "ssh-copy-id",
        "wget", "whois",
        "htop", "ncdu", "sleep", "tcpdump", "top", "watch",
    }
)  # fmt: skip
_NOT_READING: Final = re.compile(r"\bsudo\b|://|\bss -K\b|\bmake -t\b|\bfsck -y\b")


def main() -> int:
    """Draw, write the list, and say how many were left at each step."""
    if missing := machine.missing():
        machine.install(missing)
    with tempfile.TemporaryDirectory(prefix="corpus-") as root:
        Path(root).chmod(0o755)
        places = [Place.made(Path(root, who.name), who) for who in (machine.ordinary(), ROOT)]
        found = sorted(set(_candidates(places[0].project)))
        print(f"{len(found)} candidates, {len({each.form for each in found})} forms", flush=True)
        trial = Trial(places)
        usual = _draw([each for each in found if each.apart is None], COUNT, trial)
        apart = _draw([each for each in found if each.apart], _APART, trial)
    Drawn(SEED, usual, apart).write()
    programs = len({each.program for each in usual})
    print(f"{len(usual)} drawn of {programs} programs, {len(apart)} apart; {dict(trial.results)}")
    return 0


@define
class Trial:
    """Whether a command only reads, and answers the same each time."""

    places: list[Place]
    results: Counter[str] = field(factory=Counter)

    def passed(self, command: Command) -> bool:
        """Whether `command` is in the pool."""
        result = next(filter(None, (self._fault(command.line, each) for each in self.places)), "")
        self.results[result or "in the pool"] += 1
        return not result

    def _fault(self, line: str, place: Place) -> str:
        seen = screen.tried(line, place.project, place.home, place.owner)
        if seen.changed:
            return "changes a file"
        if not _answers(seen.status, seen.err):
            return "does not work"
        before = place.state()
        first = place.run(line)
        time.sleep(_PAUSE)
        second = place.run(line)
        if place.state() != before:
            raise SystemExit(f"this changed the project, seen too late: {line}")
        if not _answers(first.status, first.err):
            return "does not work"
        if not first.out:
            return "prints nothing"
        return "" if first == second else "answers otherwise the second time"


def _answers(status: int | None, err: str) -> bool:
    """Whether it worked: 0, or a 1 without a complaint, as of grep and diff."""
    return status == 0 or (status == 1 and not err)


def _candidates(project: Path) -> Iterator[Command]:
    """Filled lines of programs that the set-up installs, each once."""
    seen: set[str] = set()
    for source in SOURCES:
        for each in examples(source, download(source)):
            line = filled(each.line, project)
            commands = simple_commands(line)
            programs = [it.program for it in commands]
            words = {word for it in commands for word in (it.program, *it.words)}
            if line in seen or not programs or _NEVER & words or _NOT_READING.search(line):
                continue
            seen.add(line)
            if all(map(machine.installs, programs)) and _parses(line):
                program = each.page if each.page in programs else programs[0]
                yield Command(source.name, program, line)


def _parses(line: str) -> bool:
    checked = subprocess.run(["bash", "-n", "-c", line], capture_output=True, check=False)
    return checked.returncode == 0


def _draw(pool: Iterable[Command], count: int, trial: Trial) -> tuple[Command, ...]:
    """One per program and form, the programs in turn, until there are `count`."""
    dice = random.Random(SEED)
    forms: dict[str, dict[str, list[Command]]] = {}
    for each in pool:
        forms.setdefault(each.program, {}).setdefault(each.form, []).append(each)
    turns = {name: list(forms[name].values()) for name in sorted(forms)}
    for those in turns.values():
        dice.shuffle(those)
        for each in those:
            dice.shuffle(each)
    drawn: list[Command] = []
    with ThreadPoolExecutor(6) as threads:
        while len(drawn) < count and any(turns.values()):
            asked = [name for name, those in turns.items() if those]
            results = threads.map(lambda name: _first_passed(turns[name], trial), asked)
            drawn.extend(each for each in results if each)
            print(f"  {len(drawn)} drawn", flush=True)
    return tuple(sorted(drawn[:count]))


def _first_passed(forms: list[list[Command]], trial: Trial) -> Command | None:
    """The next command of a program, of a form that had none yet."""
    for _ in range(min(_HOPELESS, len(forms))):
        if found := next(filter(trial.passed, forms.pop()), None):
            return found
    forms.clear()
    return None


if __name__ == "__main__":
    sys.exit(main())
