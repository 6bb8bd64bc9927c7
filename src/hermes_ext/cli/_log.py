"""`log` and `why`: which lines, and what they mean."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

from hermes_ext._hooks.text import printable
from hermes_ext._turns.decisions import follow_decisions
from hermes_ext.cli._decisions import (
    Line,
    NothingFoundError,
    Query,
    installed_names,
    lines_of,
    log_file,
    note_on,
    sound_lines,
    unreadable,
)
from hermes_ext.cli._explaining import Explaining
from hermes_ext.cli._request import Request, Result

_LAST: Final = "last"
_LOOK_EVERY_SECONDS: Final = 0.2
_STOPPED: Final = frozenset({"block", "answer"})
_REPEATED: Final = "before_llm_call"  # what is changed there is changed again at each request


def log(request: Request) -> Result:
    """The newest lines; with `follow` also those to come, which are given to `request.emit`."""
    query = request.query
    if query.follow and request.emit is not None:
        _follow(request, query, request.emit)
    lines: list[Line] = []
    code, note = 0, note_on(request.home)
    try:
        _, found = lines_of(request.home, query, _known(request))
        lines = found[-query.last :] if query.last else []
    except NothingFoundError as error:
        if not log_file(request.home).exists() or query.chat == "":
            raise
        code, note = 1, str(error)
    payload = {
        "file": printable(log_file(request.home)),
        "note": note,
        "lines": [query.shown(line) for line in lines],
    }
    return Result(code, payload)


def _follow(request: Request, query: Query, emit: Callable[[Line], None]) -> None:
    """Never ends but by Ctrl-C, or when nobody reads any more."""
    begun: deque[Line] = deque(maxlen=query.last)
    caught_up = False

    def pause() -> None:
        nonlocal caught_up
        if caught_up:
            time.sleep(_LOOK_EVERY_SECONDS)
        caught_up = True
        while begun:
            emit(query.shown(begun.popleft()))

    for line in query.chosen(_written(request.home, pause)):
        if caught_up:
            emit(query.shown(line))
        else:
            begun.append(line)


def _written(home: Path, pause: Callable[[], None]) -> Iterator[Line]:
    try:
        yield from sound_lines(follow_decisions(log_file(home), wait=pause))
    except BrokenPipeError:  # of `pause`, which shows lines: nobody reads them any more
        raise
    except OSError as error:
        raise unreadable(home, error) from error


def why(request: Request) -> Result:
    """The last decision, or all of a turn."""
    query = request.query
    asked = query.turn
    if asked is None or asked == _LAST:
        _, found = lines_of(request.home, evolve(query, turn=None), _known(request))
        chosen = [_last_of(found)]
    else:
        _, found = lines_of(request.home, query, _known(request))
        turn = _only_one(asked, found)
        chosen = [line for line in found if line.get("turn") == turn]
    explaining = Explaining(request.home, request.prog)
    payload = {
        "file": printable(log_file(request.home)),
        "turn": None if asked in (None, _LAST) else printable(str(chosen[0].get("turn"))),
        "note": note_on(request.home),
        "decisions": [explaining.of(query.shown(line)) for line in chosen],
    }
    return Result(0, payload)


def _last_of(lines: list[Line]) -> Line:
    """The last line in which something was decided.

    What comes with every request (instructions, changed messages) counts where there is nothing
    else: it would hide what somebody who asks why wants to know.
    """
    for decided in (_is_verdict, _is_change):
        found = next(filter(decided, reversed(lines)), None)
        if found is not None:
            return found
    raise NothingFoundError(
        "no extension has blocked, changed, answered or asked anything yet",
        hint=f"The log has {len(lines)} lines, in which all passed",
    )


def _is_verdict(line: Line) -> bool:
    if line.get("action") in _STOPPED or line.get("asks") or _would_have(line):
        return True
    return str(line.get("action")) == "rewrite" and line.get("hook") != _REPEATED


def _would_have(line: Line) -> bool:
    """Whether a handler that is only observed would have stopped it."""
    others = [*(line.get("by") or ()), *(line.get("steps") or ())]
    return any(
        each.get("observed") and each.get("action") in {*_STOPPED, "ask"}
        for each in others
        if isinstance(each, Mapping)
    )


def _is_change(line: Line) -> bool:
    return str(line.get("action", "pass")) != "pass"


def _only_one(asked: str, lines: Iterable[Line]) -> str:
    """The id of the one turn that begins so."""
    turns = list(dict.fromkeys(str(line.get("turn")) for line in lines))
    if asked in turns:
        return asked
    if len(turns) > 1:
        listed = ", ".join(map(printable, turns[-10:]))
        raise NothingFoundError(
            f"{len(turns)} turns begin with {printable(asked)}: {listed}",
            hint="Name more of one",
        )
    return turns[0]


def _known(request: Request) -> Callable[[], list[str]]:
    return partial(installed_names, request.home, request.cwd)
