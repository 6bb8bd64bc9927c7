"""Commands by what the data says of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hermes_ext.effects._knowledge import stronger
from hermes_ext.effects._machine import upwards
from hermes_ext.effects._options import READING
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, is_many


def run_declared(call: Call) -> None:
    """Announce what the table says."""
    call.check_options()
    if call.entry.subcommands is not None:
        run_subcommand(call)
        return
    harmless = any(given.option and given.option.harmless for given in call.found.options)
    deeds, default = _deeds(call)
    if call.entry.runs is not None:
        if not harmless:
            _run_wrapped(call, deeds)
        return
    several, placed = False, False
    for place, word in enumerate(call.operands):
        deed = deeds[min(place, len(deeds) - 1)]
        many = is_many(word)
        several = several or many
        placed = placed or (place >= len(deeds) - 1 and not many)
        if several:
            for other in deeds[place:]:
                deed = stronger(deed, other)
        if not harmless or deed in READING:
            call.do(deed, word)
    if default and not placed and (not harmless or deeds[-1] in READING):
        call.do(deeds[-1], default)


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
    if any(is_many(each) for each in call.operands[:count]):
        call.unknown("runs what is not known before it runs")
    elif rest:
        call.shell.run(rest)


def run_subcommand(call: Call) -> None:
    """What the first operand names."""
    entry, words = call.entry, call.operands
    if not words:
        if entry.default:
            call.do("unknown", entry.default)
        return
    if isinstance(words[0], Hole):
        call.unknown("is given a subcommand that is not known before it runs")
        return
    below, rest = entry.subcommand(words[0]), words[1:]
    by = f"{call.by} {words[0]}"
    if below is None and entry.subcommand("*") is not None:
        below, rest, by = entry.subcommand("*"), words, call.by
    if below is None:
        call.unknown(f"has a subcommand that is not known: {words[0]!r}")
    else:
        call.follow(by, rest, below)


def check_dependence(call: Call) -> None:
    """A file in a directory above may change what a program does: run something, for one."""
    rec = call.rec
    names = [each for each in call.entry.depends_on if not each.startswith("~/")]
    for each in call.entry.depends_on:
        if each not in names and call.is_at_home(each[2:]):
            call.unknown(f"does what {each} says")
            return
    if not names:
        return
    if not rec.machine.local or len(rec.cwd) != 1:
        call.unknown("depends on files that cannot be looked for")
        return
    for folder in upwards(rec.cwd[0]):
        if folder in rec.machine.homes and folder != rec.cwd[0]:
            continue  # what is the user's own may be there
        for name in names:
            if rec.exists(os.path.join(folder, name)) is not False:
                call.unknown(f"does what {name} says")
                return
