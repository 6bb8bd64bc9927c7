"""`why`: who decided what and why."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Final

from attrs import evolve

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._commands.log import known
from hermes_ext.cli._decisions import (
    Line,
    NothingFoundError,
    log_file,
    newest_first,
    note_on,
    nothing_found,
)
from hermes_ext.cli._explaining import Explaining, observed_in
from hermes_ext.cli._log_pages import why as page
from hermes_ext.cli._options import add
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result
from hermes_ext.hooks.table import ENDING, TABLE

__all__ = ["arguments", "page", "work"]

_LAST: Final = "last"
_MOST_TURNS: Final = 1_000
_REPEATED: Final = frozenset(row.name.value for row in TABLE.values() if row.repeats)


def arguments(command: ArgumentParser) -> None:
    told = "how the id of a turn begins (default: last, the last decision of all)"
    add(command, "TURN", told, nargs="?", default="last", dest="query_turn")
    _options.filters(command)


def work(request: Request) -> Result:
    query = request.query
    asked = query.turn
    explaining = Explaining(request.home, request.prog, request.cwd)
    with patience("Reading the decision log"):
        if asked is None or asked == _LAST:
            chosen = [explaining.of(query.shown(_last_of(request)))]
        else:
            turn = _only_one(request, asked)
            lines = newest_first(request.home, query)
            chosen = [explaining.of(query.shown(one)) for one in lines if one.get("turn") == turn]
    payload = {
        "file": printable(log_file(request.home)),
        "turn": None if asked in (None, _LAST) else printable(turn),
        "note": note_on(request.home),
        "decisions": chosen[::-1],
    }
    return Result(0, payload)


def _last_of(request: Request) -> Line:
    """The last line in which something was decided.

    What comes with every request (instructions, changed messages) counts where there is nothing
    else: it would hide what somebody who asks why wants to know. So does a call that ran confined,
    in a turn in which something was refused.
    """
    query = evolve(request.query, turn=None)
    change: Line | None = None
    confined: Line | None = None  # the newest call that ran so
    number = 0
    for line in newest_first(request.home, query):
        number += 1
        if _is_verdict(line):
            if confined is None or confined.get("turn") == line.get("turn"):
                return line
            return confined
        if confined is None and _is_confined(line):
            confined = line
        if change is None and str(line.get("action", "pass")) != "pass":
            change = line
    found = change if confined is None else confined
    if found is not None:
        return found
    if not number:
        raise nothing_found(request.home, query, known(request))
    raise NothingFoundError(
        "no extension has blocked, changed, answered or asked anything yet",
        hint=f"The log has {number} line{'s' if number != 1 else ''}, in which all passed",
    )


def _is_verdict(line: Line) -> bool:
    # Also where a handler that is only observed would have stopped it.
    would_have = any(each.get("action") in {*ENDING, "ask"} for each in observed_in(line))
    if line.get("action") in ENDING or line.get("asks") or would_have:
        return True
    return str(line.get("action")) == "rewrite" and line.get("hook") not in _REPEATED


def _is_confined(line: Line) -> bool:
    would_have = any(each.get("action") == "confine" for each in observed_in(line))
    return bool(line.get("confines")) or would_have


def _only_one(request: Request, asked: str) -> str:
    """The id of the one turn that begins so."""
    turns: dict[str, None] = {}
    for line in newest_first(request.home, request.query):
        if line.get("turn") == asked:
            return asked
        if len(turns) < _MOST_TURNS:
            turns[str(line.get("turn"))] = None
    if not turns:
        raise nothing_found(request.home, request.query, known(request))
    if len(turns) > 1:
        number = f"{len(turns)} or more" if len(turns) == _MOST_TURNS else str(len(turns))
        listed = ", ".join(map(printable, reversed([*turns][:10])))
        raise NothingFoundError(
            f"{number} turns begin with {printable(asked)}: {listed}", hint="Name more of one"
        )
    return next(iter(turns))
