"""Each rule of the reading is needed: without it the oracle finds what is missed."""

from __future__ import annotations

import itertools
import shutil
from typing import Final

import pytest
from tests.effects.oracle.constructs import CONSTRUCTS, Construct, of_program
from tests.effects.oracle.fence import can_fence
from tests.effects.oracle.generate import commands, seed
from tests.effects.oracle.programs import RARE
from tests.effects.oracle.runner import environ
from tests.effects.oracle.scratch import Scratch, missed

from hermes_ext.effects._knowledge import Entry, Knowledge
from hermes_ext.effects._record import RULES

fenced = pytest.mark.skipif(
    not can_fence(), reason="commands that remove files run only behind Landlock"
)
_MOST: Final = 250  # commands that are tried for a rule
_PATH: Final = environ("")["PATH"]


def _writes(entry: Entry | None) -> bool:
    """Whether a command of the data may change anything, by itself or by a subcommand."""
    if entry is None:
        return False
    return entry.may_harm or any(
        _writes(entry.subcommand(name)) for name in entry.subcommands or ()
    )


_WRITE: Final = [name for name in Knowledge.bundled() if _writes(Knowledge.bundled().get(name))]
_REASONS: Final = {
    "it needs a service, or rights that nobody has": (
        "apt apt-cache apt-get aws chattr chgrp chown chroot dbus-run-session docker gcloud ip"
        " journalctl mysql nsenter su systemctl systemd-run terraform tmux unshare"
    ),
    "it needs a terminal": "less man more script watch zless zmore",
    "it takes seconds": "javac npx",
    "the shell has its own": "[ printf test",
    "what it writes is no file that it can write here": (
        "arch base64 ed ldd lsof nm objdump pkg-config size yq"
    ),
}
_NOT_RUN: Final = {name: why for why, names in _REASONS.items() for name in names.split()}


def _first_missed(scratch: Scratch, rule: str, constructs: list[Construct]) -> tuple[str, int]:
    """The first command that is not understood without the rule; how many changed anything."""
    changing = 0
    for construct in constructs:
        for command in itertools.islice(commands(construct, seed()), _MOST):
            run = scratch.run(command, construct.tree)
            changing += bool(run.changed)
            if run.changed:
                effects = scratch.judge(command, construct.tree, skip=rule)
                if missed(run, effects, scratch.root(construct.tree)):
                    return command, changing
    return "", changing


@fenced
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_changes_are_missed(scratch: Scratch, rule: str) -> None:
    """Reading as if the rule were not written does not announce what some command changes."""
    constructs = [each for each in CONSTRUCTS.values() if rule in each.rules]
    assert constructs, f"no construct has commands for the rule {rule!r}"
    command, _ = _first_missed(scratch, rule, constructs)
    assert command, f"nothing shows that {rule!r} is needed, seed {seed()}"


@fenced
@pytest.mark.parametrize("name", sorted(_WRITE))
def test_without_knowing_a_command_changes_are_missed(scratch: Scratch, name: str) -> None:
    """What the data says of each command that writes is needed to know what it changes."""
    construct = of_program(name)
    if shutil.which(name, path=_PATH) is None:
        pytest.skip(f"{name} is not on this machine")
    if name in _NOT_RUN:
        pytest.skip(_NOT_RUN[name])
    assert construct, f"no template runs {name!r}, and _NOT_RUN does not say why"
    command, changing = _first_missed(scratch, f"command:{name}", [construct])
    if not changing and name in RARE:
        pytest.skip(f"{name} does not work here")
    assert command, f"nothing shows that {name!r} is needed, seed {seed()}"
