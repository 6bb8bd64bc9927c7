"""A call is exact only if each option and each variable in it is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_ext.effects import Machine, effects_of_command
from hermes_ext.effects._knowledge import Entry, Knowledge

_LIST = Path(__file__).with_name("commands_that_may_write.txt")
_COMMANDS = [line for line in _LIST.read_text().splitlines() if line and line[:2] != "# "]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(cwd=tmp_path, homes=(str(tmp_path),))


def _forms(name: str, entry: Entry) -> Iterator[str]:
    """A command alone, and with each of its subcommands."""
    if not entry.others:
        yield name
    for each in entry.subcommands or ():
        below = entry.subcommand(each)
        if below is not None:
            yield from _forms(f"{name} {'x' if each == '*' else each}", below)


_FORMS = [
    form
    for name in Knowledge.bundled()
    if (entry := Knowledge.bundled().get(name)) is not None
    for form in _forms(name, entry)
]


@pytest.mark.parametrize("option", ["--unheard-of", "--unheard-of=x", "-\N{SECTION SIGN}"])
def test_an_option_that_is_not_listed_makes_every_command_inexact(
    machine: Machine, option: str
) -> None:
    """Whatever the command: nobody knows what the option does."""
    assert len(_FORMS) > 1_000
    exact = [
        each for each in _FORMS if effects_of_command(f"{each} {option}", machine=machine).exact
    ]
    assert exact == []


@pytest.mark.parametrize(
    "command",
    [
        "UNHEARD_OF=1 {}",
        "env UNHEARD_OF=1 {}",
        "export UNHEARD_OF=1; {}",
        "declare -x UNHEARD_OF; {}",
    ],
)
def test_a_variable_that_is_not_listed_makes_every_command_inexact(
    machine: Machine, command: str
) -> None:
    """Whatever the command: it may run, load or write something else because of it."""
    for name in ("cat a", "ls", "git log", "aws s3 ls", "echo"):
        assert not effects_of_command(command.format(name), machine=machine).exact


@pytest.mark.parametrize(
    "command", ["x=1; cat a", "SRC=src; ls $SRC", "for f in a b; do cat $f; done"]
)
def test_a_variable_of_the_shell_alone_changes_nothing(machine: Machine, command: str) -> None:
    """Programs do not get what is not exported."""
    assert effects_of_command(command, machine=machine).exact


@pytest.mark.parametrize(
    ("command", "written"),
    [("rm --recurs d", "d"), ("sort --outp=n a", "n")],
)
def test_a_shortened_option_is_announced_and_never_exact(
    machine: Machine, command: str, written: str
) -> None:
    """It may be the full name of another option that is not listed."""
    effects = effects_of_command(command, machine=machine)
    assert not effects.exact
    assert [change.path.name for change in effects.changes] == [written]


def test_a_value_may_make_an_option_harmless(machine: Machine) -> None:
    """`safe` has the values with which an option runs nothing."""
    assert effects_of_command("bat --pager cat a", machine=machine).exact
    assert not effects_of_command("bat --pager ./x a", machine=machine).exact


@pytest.mark.parametrize("command", _COMMANDS)
def test_commands_that_may_write_are_seen_to(machine: Machine, command: str) -> None:
    """None of the list is taken for a command that only reads."""
    assert effects_of_command(command, machine=machine).may_write
