"""Arithmetic, which bash evaluates again: the value of a name in it is an expression itself.

`x='a[$(rm f)]'; ((x))` runs `rm`. So an expression is harmless only if it consists of numbers,
operators, and names that surely hold numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hermes_ext.effects._shell.state import UNKNOWN, State, is_number
from hermes_ext.effects._words import ANYTHING, is_many

# What prints a number and nothing else.
COUNTING: Final = re.compile(
    r"\$\((?:[^()`;&|<>\n]+\|\s*)*\s*"
    r"(?:wc\s+-[lwcm](?:\s*<\s*[\w./-]+)?|date\s+\+%s|nproc|id\s+-u)\s*\)"
)
_TOKEN: Final = re.compile(
    rf"""\s+ | 0[xX][0-9a-fA-F]+ | \d+\#\w+ | \d+
    | \$[#?$!] | \$\{{\#(?:\w+(?:\[[@*]\])?|[@*])\}} | {COUNTING.pattern}
    | \$(?P<given>[A-Za-z_]\w*|\d) | \$\{{(?P<braced>\w+)\}}
    | (?P<steps>\+\+|--)?(?P<name>[A-Za-z_]\w*)
    | \$(?=\(\(|\[) | [-+*/%<>=!&|^~?:,()\[\]"]""",
    re.VERBOSE,
)
_CHANGED: Final = re.compile(r"\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)=(?!=))")
_SET: Final = re.compile(r"\s*=(?!=)")
_ELEMENT_CHANGED: Final = re.compile(r"\[.*(?:(?<![=!<>])=(?!=)|\+\+|--)", re.DOTALL)
_COUNTED_BY_BASH: Final = frozenset(
    {"BASHPID", "COLUMNS", "EPOCHSECONDS", "EUID", "LINENO", "LINES", "OPTIND", "PPID", "RANDOM",
     "SECONDS", "SHLVL", "SRANDOM", "UID"}
)  # fmt: skip


def evaluated(text: str, state: State) -> Iterator[str]:
    """Why an expression may run more than is seen; the state is what is so behind it."""
    place, certain = 0, set[str]()
    changed = dict[str, bool]()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            yield "an expression may run more than what stands in it"
            break
        place = token.end()
        name = token["name"] or token["given"] or token["braced"]
        if name is None:
            continue
        if token["name"] and text[place : place + 1] in ('"', "$"):
            yield f"${name}… is a name that is not known before it runs"
        if token["name"] and _SET.match(text, place):
            # Only what is evaluated first surely happens: `0 && (x=1)`.
            if not text[: token.start()].strip(' \t\n("$'):
                certain.add(name)
            changed[name] = True
            continue
        if not holds_number(name, state):
            yield f"${name} is used as an expression, which may run more"
        if token["steps"] or _CHANGED.match(text, place):
            changed[name] = True
        elif _ELEMENT_CHANGED.match(text, place):
            changed[name] = False
    for name, whole in changed.items():
        _change(name, state, whole=whole, number=name in certain or holds_number(name, state))


def _change(name: str, state: State, *, whole: bool, number: bool) -> None:
    if whole:
        state.variables[name] = UNKNOWN
    if name in state.arrays:
        state.arrays[name] = None
    if number and name not in state.fixed:
        state.numbers.add(name)
    else:
        state.numbers.discard(name)


def holds_number(name: str, state: State) -> bool:
    """Whether a name surely stands for a whole number, or nothing."""
    if name.isdigit():
        words = (ANYTHING,) if state.arguments is None else state.arguments[: int(name)]
        placed = name != "0" and not any(map(is_many, words))
        return placed and (len(words) < int(name) or is_number(words[-1]))
    by_bash = name in _COUNTED_BY_BASH and name not in state.variables and name not in state.arrays
    return by_bash or state.is_number(name)
