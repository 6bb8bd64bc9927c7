"""Commands of each construct, from a seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from tests.effects.oracle.constructs import CONSTRUCTS, READERS, WRITERS, Construct
from tests.effects.oracle.dice import Dice

__all__ = ["commands", "seed"]

_DEPTH: Final = 3
_SEVERAL: Final = 3


def seed() -> str:
    """What the commands of this run are made from."""
    return os.environ.get("HERMES_EXT_ORACLE_SEED", "1")


def commands(construct: Construct, of_seed: str) -> Iterator[str]:
    """Commands of a construct, each another one, as many as its templates give."""
    dice = Dice(f"{of_seed}/{construct.name}", _simple, _any)
    seen: set[str] = set()
    tried = 0
    order: list[str] = []
    while tried < 200:  # so often without a new one
        if not order:
            order = list(construct.templates)
            dice.random.shuffle(order)
        made = dice.fill(order.pop(), _DEPTH if construct.nests else 0)
        if construct.several:
            more = [dice.fill(dice.pick(construct.templates)) for _ in range(_SEVERAL)]
            made = dice.pick(("; ", "\n", " && ")).join((made, *more))
        if construct.shuffled:
            made = dice.shuffled(made)
        if construct.damaged:
            made = dice.damaged(made)
        tried = 0 if made not in seen else tried + 1
        if not tried:
            seen.add(made)
            yield made


def _simple(dice: Dice, kind: str) -> str:
    return dice.fill(dice.pick(WRITERS if kind == "w" else READERS))


def _any(dice: Dice, depth: int) -> str:
    construct = CONSTRUCTS[dice.pick(_nestable())]
    return dice.fill(dice.pick(construct.templates), depth)


@lru_cache(maxsize=1)
def _nestable() -> tuple[str, ...]:
    return tuple(name for name, construct in CONSTRUCTS.items() if construct.tree == "plain")
