"""Commands that only read answer confined as they do bare.

With `LONG=1`, as `make test-long` has it: the set-up installs packages, and runs each command six
times or more. `-s` shows the progress.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from filelock import FileLock
from tests import debian
from tests.confine.corpus import machine
from tests.confine.corpus.comparing import Comparison, NotConfined, compared
from tests.confine.corpus.drawn import Command, Drawn
from tests.confine.corpus.machine import ROOT, Person
from tests.confine.corpus.project import Place

DRAWN: Final = Drawn.read()
AT_LEAST: Final = 250
MOST_DIFFERENT: Final = 0.02


def test_the_list() -> None:
    """It is as it was drawn, long enough, and has one command per program and form."""
    forms = Counter((each.program, each.form) for each in DRAWN.commands)
    assert len(DRAWN.commands) >= AT_LEAST
    assert set(forms.values()) == {1}


def test_apart() -> None:
    """What is counted apart is so by the rule, with its reason, and nothing else is."""
    assert all(each.apart for each in DRAWN.apart)
    assert not any(each.apart for each in DRAWN.commands)


@pytest.fixture(params=[ROOT, machine.ordinary()], ids=lambda person: person.name)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A project of the person whom the test is about, with every program installed."""
    if "LONG" not in os.environ:
        pytest.skip("LONG=1 runs it: two minutes, and the set-up installs packages")
    if not debian.can_install():
        pytest.skip(debian.NOT_HERE)
    with FileLock(Path(tempfile.gettempdir(), "hermes-ext-corpus.lock")):
        if missing := machine.missing():
            machine.install(missing)
    with tempfile.TemporaryDirectory(prefix="corpus-") as root:
        Path(root).chmod(0o755)  # pytest's own folders are closed to other users
        yield Place.made(Path(root), request.param)


def test_confined_answers_are_the_bare_ones(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most 2 in 100 differ in status or output, byte for byte, and none changes anything."""
    before = place.state()
    found = list(_shown(place, DRAWN.commands, capsys))
    apart = list(_shown(place, DRAWN.apart, capsys))
    different = [each for each in found if not each.same]
    with capsys.disabled():
        _report(place.owner, found, apart)
    assert place.state() == before
    assert len(found) - len(different) >= AT_LEAST
    assert len(different) <= MOST_DIFFERENT * len(found), "\n".join(map(str, different))


def _shown(
    place: Place, commands: tuple[Command, ...], capsys: pytest.CaptureFixture[str]
) -> Iterator[Comparison]:
    try:
        for number, each in enumerate(compared(place, commands), 1):
            if number % 50 == 0:
                with capsys.disabled():
                    print(f"  {place.owner.name}: {number} of {len(commands)}", flush=True)
            yield each
    except NotConfined as why:
        pytest.skip(f"{place.owner.name}: {why}")


def _report(person: Person, found: list[Comparison], apart: list[Comparison]) -> None:
    programs = len({each.command.program for each in found})
    different = [each for each in found if not each.same]
    unsteady = sum(not each.steady for each in found)
    print(f"{person.name}: {len(found)} commands of {programs} programs, {len(different)} differ")
    print(f"  ({unsteady} answer differently when bare); {len(apart)} are counted apart")
    for each in different:
        print(f"  {each}")
    for each in apart:
        what = "the same" if each.same else "differs"
        print(f"  apart, {what}: {each.command.line!r}: {each.command.apart}")
