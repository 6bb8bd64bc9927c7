"""Each rule of the reading is needed: without it the oracle finds what is missed."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator

import pytest
from tests.effects.oracle.constructs import CONSTRUCTS, Construct, of_program
from tests.effects.oracle.fence import can_fence
from tests.effects.oracle.generate import commands, seed
from tests.effects.oracle.scratch import Scratch, missed

from hermes_ext.effects._knowledge import Entry, Knowledge
from hermes_ext.effects._record import RULES

pytestmark = pytest.mark.skipif(
    not can_fence(), reason="commands that remove files run only behind Landlock"
)
_MOST = 300  # commands that are tried for a rule


def _writes(entry: Entry | None) -> bool:
    """Whether a command of the data may change anything, by itself or by a subcommand."""
    if entry is None:
        return False
    return entry.may_harm or any(
        _writes(entry.subcommand(name)) for name in entry.subcommands or ()
    )


_WRITE = sorted(name for name in Knowledge.bundled() if _writes(Knowledge.bundled().get(name)))


def _shown_by(rule: str) -> list[Construct]:
    """The constructs whose commands are there to show the need of a rule."""
    if rule.startswith("command:"):
        return of_program(rule.removeprefix("command:"))
    return [construct for construct in CONSTRUCTS.values() if rule in construct.rules]


def _tried(rule: str) -> Iterator[tuple[Construct, str]]:
    for construct in _shown_by(rule):
        for command in itertools.islice(commands(construct, seed()), _MOST):
            yield construct, command


def _is_missed(scratch: Scratch, rule: str) -> bool:
    for construct, command in _tried(rule):
        run = scratch.run(command, git=construct.git)
        if run.changed:
            effects = scratch.judge(command, git=construct.git, skip=rule)
            if missed(run, effects, scratch.root(git=construct.git)):
                return True
    return False


@pytest.mark.parametrize("rule", sorted(RULES))
def test_without_a_rule_changes_are_missed(scratch: Scratch, rule: str) -> None:
    """Reading as if the rule were not written does not announce what some command changes."""
    assert _shown_by(rule), f"no construct has commands for the rule {rule!r}"
    assert _is_missed(scratch, rule), f"nothing shows that {rule!r} is needed, seed {seed()}"


@pytest.mark.parametrize("name", _WRITE)
def test_without_knowing_a_command_changes_are_missed(scratch: Scratch, name: str) -> None:
    """What the data says of each command that writes is needed to know what it changes."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on this machine")
    assert _shown_by(f"command:{name}"), f"no template runs {name!r}"
    assert _is_missed(scratch, f"command:{name}"), f"nothing shows that {name!r} is needed"
