"""What a command does with its words, by what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from hermes_ext.effects._knowledge import Knowledge
from hermes_ext.effects._programs.call import Call, Shell
from hermes_ext.effects._programs.declared import check_dependence, run_declared
from hermes_ext.effects._variables import risky_variable
from hermes_ext.effects._words import Hole, Word

# A program that lies here is the one that its name stands for.
_SYSTEM: Final = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin"}
)


def run_command(
    words: Sequence[Word], shell: Shell, assignments: Sequence[tuple[str, Word]] = ()
) -> None:
    """Announce what a command does; assignments: the variables that are set for it alone."""
    for variable, value in assignments:
        if risky_variable(variable, value):
            why = f"what `{variable}` is set to decides what the command runs"
            shell.rec.unknown(why, value, *words)
    name = _name_of(words[0])
    knowledge = shell.rec.machine.commands or Knowledge.bundled()
    entry = None if name is None else knowledge.get(name)
    if name is None or entry is None:
        shown = "a program" if isinstance(words[0], Hole) else f"`{words[0]}`"
        with shell.rec.under("unknown"):
            shell.rec.unknown(f"{shown} is not known", *words)
        return
    if entry.may_harm or entry.subcommands is not None:
        with shell.rec.under(f"command:{name}"):
            _run(Call(name, name, words[1:], entry, shell, _run))
    else:
        _run(Call(name, name, words[1:], entry, shell, _run))


def _name_of(word: Word) -> str | None:
    """The name of a program, if it is the one that everyone knows by it."""
    if isinstance(word, Hole):
        return None
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in _SYSTEM else None


def _run(call: Call) -> None:
    entry = call.entry
    asks_about_it = call.words in (("--version",), ("--help",))
    if asks_about_it and not (entry.unknown or entry.depends_on):
        return
    if entry.unknown:
        call.unknown(entry.unknown)
        return
    if entry.depends_on:
        check_dependence(call)
    if entry.program:
        program(entry.program)(call)
    else:
        run_declared(call)


def program(name: str) -> Callable[[Call], None]:
    """The reading that the data names: `archives.tar`."""
    module, _, function = name.partition(".")
    found: Callable[[Call], None] = getattr(
        import_module(f"hermes_ext.effects._programs.{module}"), function
    )
    return found
