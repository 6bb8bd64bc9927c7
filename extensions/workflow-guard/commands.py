"""Which commands run as they are without a plan: the patterns of `allowed_commands`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from attrs import evolve

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of

from .project import Project

_AS_ANOTHER = ("sudo", "doas")  # users; a pattern names them


def allows(pattern: str, words: Sequence[str]) -> bool:
    """Whether a pattern is for a command of these words.

    Word by word; a `*` at the end of the pattern stands for any further words, too.
    """
    wanted = pattern.split()
    further = pattern.endswith("*")
    if wanted[-1] == "*":
        wanted.pop()
    if len(words) < len(wanted) or (len(words) > len(wanted) and not further):
        return False
    return all(map(fnmatchcase, words, wanted))


def runs_as_it_is(event: ToolCall, effects: Effects, project: Project) -> bool:
    """Whether a call of a shell, which is not known to be harmless, is by these patterns.

    All that they do not name has to be known to write nothing. What they name has to start in the
    project, as this user, and must not be pointed to what can be written without a plan, nor find
    code there by itself.
    """
    patterns = project.settings["allowed_commands"]
    if not patterns or effects.exact or effects.variables or _leads_astray(effects, project):
        return False

    def trusts(words: Sequence[str]) -> bool:
        return any(allows(each, words) for each in patterns)

    for each in effects.commands:
        if each.name in _AS_ANOTHER and not trusts([each.name, *(arg or "" for arg in each.args)]):
            return False
    machine = evolve(event.machine or Machine(), trusts=trusts)
    rest = effects_of(event, machine=machine)
    # A file that it writes itself could be found and run by what it runs then.
    return rest.exact and not rest.changes and not project.holds_examples()


def _leads_astray(effects: Effects, project: Project) -> bool:
    starts = [each.cwd for each in effects.commands]
    astray = any(each is None or not project.is_own(each) for each in starts)
    return astray or any(
        each is not None and project.is_open(each) for each in (*starts, *effects.mentions)
    )
