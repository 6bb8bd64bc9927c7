"""`log`: the newest lines of the decision log."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._decisions import (
    SHOWN,
    Line,
    Query,
    installed_names,
    log_file,
    newest_first,
    note_on,
    nothing_found,
    sound_lines,
    unreadable,
)
from hermes_ext.cli._log_pages import log as page
from hermes_ext.cli._options import add
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result
from hermes_ext.cli._values import count
from hermes_ext.turns.decisions.reading import follow_decisions

__all__ = ["arguments", "known", "page", "work"]

_LOOK_EVERY_SECONDS: Final = 0.2


def arguments(command: ArgumentParser) -> None:
    told = "how many lines (default: %(default)s)"
    add(command, "-n --last N", told, type=count, default=SHOWN, dest="query_last")
    told = "go on with each new line, until Ctrl-C; with --json one JSON object per line"
    add(command, "-f --follow", told, dest="query_follow")
    add(command, "--turn ID", "only of this turn; its begin is enough", dest="query_turn")
    _options.filters(command)


def work(request: Request) -> Result:
    """The newest lines; with `follow` also those to come, which are given to `request.emit`."""
    query = request.query
    if query.follow and request.emit is not None:
        _follow(request, query, request.emit)
    lines: list[dict[str, Any]] = []
    code, note = 0, note_on(request.home)
    with patience("Reading the decision log"):
        newest = newest_first(request.home, query)
        lines = [query.shown(line) for line in islice(newest, max(query.last, 1))]
        missing = None if lines else nothing_found(request.home, query, known(request))
    if missing is not None:
        if not log_file(request.home).exists():
            raise missing
        code, note = 1, str(missing)
    payload = {
        "file": printable(log_file(request.home)),
        "note": note,
        "lines": lines[: query.last][::-1],
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


def known(request: Request) -> Callable[[], list[str]]:
    return partial(installed_names, request.home, request.cwd)
