"""What commands really change is among what `effects_of` says before they run.

60 commands of each construct; with `LONG=1`, as `make test-long` has it, all 5,000.
"""

from __future__ import annotations

import itertools
import os

import pytest
from tests.effects.oracle.constructs import CONSTRUCTS, Construct
from tests.effects.oracle.fence import can_fence
from tests.effects.oracle.generate import commands, seed
from tests.effects.oracle.scratch import Scratch, missed

fenced = pytest.mark.skipif(
    not can_fence(), reason="commands that remove files run only behind Landlock"
)
_PART = 150  # commands that one test runs
_MOST = 10_000 if "LONG" in os.environ else 60  # of a construct
_PARTS = [
    pytest.param(construct, range(start, min(start + _PART, last)), id=f"{construct.name}-{start}")
    for construct in CONSTRUCTS.values()
    for last in [min(construct.count, _MOST)]
    for start in range(0, last, _PART)
]


def test_there_are_commands_enough() -> None:
    """5,000 commands, and 50 different ones of each construct."""
    assert sum(construct.count for construct in CONSTRUCTS.values()) >= 5_000
    for construct in CONSTRUCTS.values():
        made = list(itertools.islice(commands(construct, seed()), construct.count))
        assert len(set(made)) == construct.count >= 50, f"seed {seed()}: {construct.name}"


@fenced
@pytest.mark.parametrize(("construct", "part"), _PARTS)
def test_no_change_is_missed(scratch: Scratch, construct: Construct, part: range) -> None:
    """Each changed path of each command was announced, or the command was not called exact.

    Calling nothing exact would be no reading, so a share of each construct must be.
    """
    misses, exact = [], 0
    for command in itertools.islice(commands(construct, seed()), part.start, part.stop):
        effects = scratch.judge(command, construct.tree)
        exact += effects.exact
        run = scratch.run(command, construct.tree)
        for path, how in missed(run, effects, scratch.root(construct.tree)).items():
            misses.append(f"{command!r}\n    {how} and not announced: {path!r}")
    assert not misses, f"seed {seed()}:\n" + "\n".join(misses)
    assert exact >= construct.exact * len(part), f"seed {seed()}: {exact} are understood"
