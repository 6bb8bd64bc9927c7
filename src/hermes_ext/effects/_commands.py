"""What a command does with its words, by what is known of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from hermes_ext.effects._knowledge import Entry, Knowledge, problems, schema, stronger
from hermes_ext.effects._options import READING
from hermes_ext.effects._programs import PROGRAMS
from hermes_ext.effects._programs.call import Call, Shell
from hermes_ext.effects._variables import risky_variable
from hermes_ext.effects._words import Hole, Word

__all__ = ["Knowledge", "Shell", "problems", "risky_variable", "run_command", "schema"]

# A program that lies here is the one that its name stands for.
_SYSTEM: Final = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin"}
)
_DEEPEST: Final = 4  # subcommands of subcommands


def run_command(
    words: Sequence[Word], shell: Shell, assignments: Sequence[tuple[str, Word]] = ()
) -> None:
    """Announce what a command does.

    Args:
        words: its name and its arguments.
        shell: what starts it.
        assignments: the variables that are set for it alone.
    """
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
    if len(words) == 2 and words[1] in ("--version", "--help"):
        return
    if entry.may_harm or entry.subcommands is not None:
        with shell.rec.under(f"command:{name}"):
            _run(Call(name, name, words[1:], entry, shell))
    else:
        _run(Call(name, name, words[1:], entry, shell))


def _name_of(word: Word) -> str | None:
    """The name of a program, if it is the one that everyone knows by it."""
    if isinstance(word, Hole):
        return None
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in _SYSTEM else None


def _run(call: Call) -> None:
    entry = call.entry
    if entry.unknown:
        call.unknown(entry.unknown)
        return
    if entry.depends_on:
        _check_dependence(call)
    if entry.program:
        program = PROGRAMS.get(entry.program)
        if program is None:
            call.unknown("is not looked into")
        else:
            program(call)
    else:
        run_declared(call)


def run_declared(call: Call) -> None:
    """Announce what the table says."""
    call.check_options()
    if call.entry.subcommands is not None:
        run_subcommand(call)
        return
    harmless = any(given.option and given.option.harmless for given in call.found.options)
    deeds, default = _deeds(call)
    if call.entry.runs is not None:
        _run_wrapped(call, deeds)
        return
    words = call.operands
    if default and all(isinstance(each, Hole) and each.many for each in words):
        words = [*words, default]
    several = False
    for place, word in enumerate(words):
        deed = deeds[min(place, len(deeds) - 1)]
        several = several or (isinstance(word, Hole) and word.many)
        if several:
            for other in deeds[place:]:
                deed = stronger(deed, other)
        if not harmless or deed in READING:
            call.do(deed, word)


def _deeds(call: Call) -> tuple[list[str], str]:
    """What is done with each operand, and what stands for them where there are none."""
    deeds, default = list(call.entry.operands), call.entry.default
    changed = ""
    for given in call.found.options:
        option = given.option
        if option is None:
            continue
        if option.first:
            deeds = deeds[1:] or deeds
        if option.operands:
            changed = stronger(changed, option.operands) if changed else option.operands
        default = option.default or default
    if changed:
        deeds[-1] = changed
    return deeds, default


def _run_wrapped(call: Call, deeds: Sequence[str]) -> None:
    """The command that stands behind the operands of this one."""
    count = call.entry.runs or 0
    for deed, word in zip(deeds, call.operands[:count], strict=False):
        call.do(deed, word)
    rest = call.operands[count:]
    if any(isinstance(each, Hole) and each.many for each in call.operands[:count]):
        call.unknown("runs what is not known before it runs")
    elif rest:
        call.shell.run(rest)


def run_subcommand(call: Call) -> None:
    """What the first operand names."""
    entry, by, words = call.entry, call.by, call.operands
    if not words:
        return
    if isinstance(words[0], Hole):
        call.unknown("is given a subcommand that is not known before it runs")
        return
    below = entry.subcommand(words[0]) or entry.subcommand("*")
    if below is None:
        call.unknown(f"has a subcommand that is not known: {words[0]!r}")
        return
    _run(Call(call.name, f"{by} {words[0]}", words[1:], below, call.shell))


def _check_dependence(call: Call) -> None:
    """A file in a directory above may change what a program does: run something, for one."""
    rec = call.rec
    if not rec.machine.local or len(rec.cwd) != 1:
        call.unknown("depends on files that cannot be looked for")
        return
    folder = rec.cwd[0]
    while True:
        for name in call.entry.depends_on:
            if rec.exists(os.path.join(folder, name)) is not False:
                call.unknown(f"does what {name} says")
                return
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
