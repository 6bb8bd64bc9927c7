"""What commands really change is among what `effects_of` says before they run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.effects.oracle.constructs import CONSTRUCTS
from tests.effects.oracle.fence import can_fence
from tests.effects.oracle.generate import commands, seed
from tests.effects.oracle.scratch import Scratch, missed

pytestmark = pytest.mark.skipif(
    not can_fence(), reason="commands that remove files run only behind Landlock"
)
_EACH = 60
_AT_LEAST = 50


@pytest.fixture(scope="module")
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_no_change_is_missed(scratch: Scratch, name: str) -> None:
    """Each changed path of each command was announced, or the command was not called exact."""
    construct, of_seed = CONSTRUCTS[name], seed()
    made = list(itertools.islice(commands(construct, of_seed), _EACH))
    assert len(made) >= _AT_LEAST, f"seed {of_seed}: only {len(made)} different commands"
    misses, exact = [], 0
    for command in made:
        effects = scratch.judge(command, git=construct.git)
        exact += effects.exact
        run = scratch.run(command, git=construct.git)
        for path, how in missed(run, effects, scratch.root(git=construct.git)).items():
            misses.append(f"{command!r}\n    {how} and not announced: {path}")
    assert not misses, f"seed {of_seed}:\n" + "\n".join(misses)
    assert exact >= construct.exact * len(made), f"seed {of_seed}: only {exact} are understood"
