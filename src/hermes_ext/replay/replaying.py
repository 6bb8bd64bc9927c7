"""`replay`: recorded events through today's extensions, and which verdicts changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext._text import canonical_name
from hermes_ext.doctor import is_broken
from hermes_ext.replay.comparing import is_same, line_of, took_part, verdict_of
from hermes_ext.replay.events import TOO_OLD, NotReplayableError, Recorded, of_line
from hermes_ext.replay.touching import Touched
from hermes_ext.replay.trial import Judged, everything, judged
from hermes_ext.settings.config import ExtensionsConfig

Line = Mapping[str, Any]


def replay(
    lines: Sequence[Line],
    chosen: frozenset[int],
    *,
    extension: str | None,
    home: Path,
    cwd: Path | None,
    config: ExtensionsConfig,
    import_seconds: float,
    prog: str,
    progress: Callable[[int, int, str], object],
) -> dict[str, Any]:
    """Run the events of recorded lines, and tell what changed.

    lines: of the log, oldest first. chosen: the numbers of those that are to be compared; the
    others only make the state that these meet. extension: only where this one takes part, then or
    now. progress: called before each event with its number, how many there are, and what it is.
    """
    began = time.monotonic()
    numbers, not_replayable = _replayable(lines, chosen)
    events = _Events(lines, numbers)
    trial = everything(home, cwd, config, import_seconds, prog)
    changed: list[dict[str, Any]] = []
    compared = on_disk = 0

    for number, each in enumerate(judged(trial, events, each=True, progress=progress)):
        if numbers[number] not in chosen:
            continue
        then = each.recorded.line
        assert then is not None
        now = line_of(each.recorded, each.outcome)
        if not _meant(extension, then, now):
            continue
        compared += 1
        on_disk += bool(each.touched.files)
        if not is_same(then, now):
            changed.append(_change(each, then, now))
    records = trial.runtime.records
    return {
        "lines": len(chosen),
        "compared": compared,
        "unchanged": compared - len(changed),
        "looked_at_the_disk": on_disk,
        "not_replayable": [
            {"reason": reason, "count": count, "without_payloads": reason == TOO_OLD}
            for reason, count in not_replayable.most_common()
        ],
        "broken": [each.name for each in records if is_broken(each, config)],
        "refusal": trial.runtime.refusal,
        "notices": sorted(trial.told),
        "seconds": round(time.monotonic() - began, 3),
        "changed": changed,
    }


class _Events:
    """The events of some lines, each made when it is looked at: the log can be a large one."""

    def __init__(self, lines: Sequence[Line], numbers: Sequence[int]) -> None:
        self._lines = lines
        self._numbers = numbers

    def __iter__(self) -> Iterator[Recorded]:
        return (of_line(self._lines[number]) for number in self._numbers)


def _replayable(lines: Sequence[Line], chosen: frozenset[int]) -> tuple[list[int], Counter[str]]:
    """The numbers of the lines to run again, and why how many others cannot be."""
    numbers: list[int] = []
    not_replayable: Counter[str] = Counter()
    # The conversations whose state the chosen lines may meet.
    needed = {_key(line) for number, line in enumerate(lines) if number in chosen}
    for number, line in enumerate(lines):
        if _key(line) not in needed:
            continue
        try:
            of_line(line)
            numbers.append(number)
        except NotReplayableError as error:
            if number in chosen:
                not_replayable[str(error)] += 1
    return numbers, not_replayable


def _key(line: Line) -> Any:
    return line.get("conversation") or line.get("session") or line.get("turn")


def _meant(extension: str | None, then: Line, now: Line) -> bool:
    if extension is None:
        return True
    return canonical_name(extension) in map(canonical_name, took_part(then) | took_part(now))


def _change(each: Judged, then: Line, now: Line) -> dict[str, Any]:
    return {
        **{key: then.get(key) for key in ("time", "turn", "session", "cwd", "hook", "tool")},
        "tool_call_id": then.get("tool_call_id"),
        "input": each.recorded.event.value,
        "then": verdict_of(then),
        "now": verdict_of(now),
        "looked_at": _looked_at(each, then, now),
        "needs_past": each.needs_past,
    }


def _looked_at(each: Judged, then: Line, now: Line) -> dict[str, list[str]]:
    """What those handlers looked at that decide otherwise now; what others saw explains nothing."""
    before, after = _steps(then), _steps(now)
    differ = {who for who in before.keys() | after.keys() if before.get(who) != after.get(who)}
    touched = Touched()
    for handled in each.handled:
        if (handled.handler.extension, handled.handler.name) in differ or not differ:
            touched.add(handled.touched)
    return touched.to_json()


def _steps(line: Line) -> dict[tuple[Any, Any], Any]:
    """What each handler did, of those that were called."""
    keys = ("action", "reason", "changed", "observed")
    return {
        (step.get("extension"), step.get("handler")): [
            *(step.get(key) for key in keys),
            (step.get("error") or {}).get("kind"),
        ]
        for step in line.get("steps") or ()
        if not step.get("skipped")
    }
