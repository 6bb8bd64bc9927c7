"""Variables of the environment: which of them change nothing that a program touches."""

from __future__ import annotations

import os
import re
from fnmatch import translate
from functools import cache
from typing import Any, Final

from hermes_ext.effects._knowledge import data
from hermes_ext.effects._words import Hole, Word

_FILE: Final = "variables.yaml"


def risky_variable(name: str, value: Word) -> bool:
    """Whether programs that are started with it may run, load or write something else.

    True for a value that is not known, unless any value is harmless.
    """
    names, values = _harmless()
    found = names.fullmatch(name.upper())
    if found is None:
        return True
    pattern = values[(found.lastindex or 1) - 1]
    if isinstance(value, Hole):
        return pattern.pattern != ".*"
    return pattern.fullmatch(value) is None


def may_be_exported(name: str) -> bool:
    """Whether programs may be given a variable although nothing in the text exports it."""
    return name in os.environ or _exported().fullmatch(name) is not None


@cache
def _data() -> Any:
    return data(_FILE)


@cache
def _harmless() -> tuple[re.Pattern[str], list[re.Pattern[str]]]:
    """One group for each kind of variable, and what the values of that kind match."""
    kinds = _data()["harmless"]
    groups = "|".join(f"({_any(names)})" for names in kinds)
    return re.compile(groups), [re.compile(each, re.DOTALL) for each in kinds.values()]


@cache
def _exported() -> re.Pattern[str]:
    return re.compile(_any(_data()["exported"]))


def _any(patterns: str) -> str:
    return "|".join(f"(?:{translate(each)})" for each in patterns.split())
