"""Judging a turn: one proof for each hook. Knows no disk and no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from hermes_ext._text import printable
from hermes_ext._values import asdict, frozen
from hermes_ext.hooks.table import HookName, complete
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.hosts.hermes.canary import marks
from hermes_ext.hosts.hermes.canary.turn import Seen

Surface = Literal["one-shot", "chat", "api-server"]

_LONGEST = 200  # characters of what a model saw


class Status(StrEnum):
    """OK: fired once for each event, and honoured. SKIPPED: this Hermes has no such surface."""

    OK = "ok"
    REPEATED = "repeated"
    NOT_HONOURED = "not-honoured"
    NOT_REACHED = "not-reached"
    SKIPPED = "skipped"


@frozen
class Suspect:
    """A wrap that does not stand as it should.

    Attributes:
        seam: the function of Hermes.
        status: how the wrap stands.
        plugin: whose function stands there, if known.
        place: where that function is, if it is neither Hermes's nor the package's.
        told: all of this in words.
    """

    seam: str
    status: str
    plugin: str | None
    place: str | None
    told: str

    def __str__(self) -> str:
        return printable(self.told)


@frozen
class Proof:
    """Whether one hook did on one surface what it promises.

    fired: how often it did in all. events: for how many events it should have, once each. detail:
    what is wrong, None where nothing is. suspects: wraps that may be the reason.
    """

    surface: Surface
    hook: HookName
    status: Status
    fired: int = 0
    events: int = 0
    detail: str | None = None
    suspects: tuple[Suspect, ...] = ()

    @property
    def failed(self) -> bool:
        return self.status not in {Status.OK, Status.SKIPPED}

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values."""
        told = asdict(self, recurse=False) | {"hook": str(self.hook), "status": str(self.status)}
        told["seams"] = [asdict(each) | {"told": str(each)} for each in told.pop("suspects")]
        return told


def judge(surface: Surface, seen: Seen) -> tuple[Proof, ...]:
    """The proofs of a turn, one for each hook."""
    return tuple(_proof(surface, hook, seen) for hook in _TRIALS)


def skipped(surface: Surface, why: str) -> tuple[Proof, ...]:
    """The proofs of a surface that this Hermes does not have."""
    return tuple(Proof(surface, hook, Status.SKIPPED, detail=why) for hook in _TRIALS)


def _proof(surface: Surface, hook: HookName, seen: Seen) -> Proof:
    events = tuple(_TRIALS[hook].events(seen))
    fired = {event: seen.fired.get((hook, event), 0) for event in events}
    status, detail = _verdict(hook, seen, fired)
    suspects = () if status is Status.OK else tuple(_suspects(hook, seen))
    return Proof(surface, hook, status, sum(fired.values()), len(events), detail, suspects)


def _verdict(hook: HookName, seen: Seen, fired: Mapping[str, int]) -> tuple[Status, str | None]:
    many = [f"{times} times for {event}" for event, times in fired.items() if times > 1]
    missed = [event for event, times in fired.items() if times == 0]
    if many:
        return Status.REPEATED, f"it fired {', '.join(many)}"
    if not fired or len(missed) == len(fired):
        return Status.NOT_REACHED, seen.failure or _why_not_reached(seen, fired)
    if missed:
        return Status.NOT_REACHED, f"it did not fire for {', '.join(missed)}"
    fault = next(_TRIALS[hook].faults(seen), None) or seen.failure
    return (Status.OK, None) if fault is None else (Status.NOT_HONOURED, fault)


def _why_not_reached(seen: Seen, fired: Mapping[str, int]) -> str:
    if fired:
        return "it did not fire"
    if not seen.requests:
        return "the model was not asked"
    return "Hermes offers the model none of the tools read_file, todo, write_file and terminal"


def _input_faults(seen: Seen) -> Iterator[str]:
    for request in seen.requests:
        if request.contains(marks.TYPED):
            yield "the model saw what was typed, not what it was rewritten to"
        elif not request.contains(marks.REWRITTEN):
            yield "the model did not see what the input was rewritten to"


def _request_faults(seen: Seen) -> Iterator[str]:
    for number, request in enumerate(seen.requests, 1):
        times = request.system.count(marks.NOTE)
        if times != 1:
            yield f"the system prompt of request {number} had the injected text {times} times"


def _call_faults(seen: Seen) -> Iterator[str]:
    results = seen.results()
    if seen.written:
        yield "write_file ran although it was blocked"
    if seen.escaped:
        yield "a command wrote a file although it was confined"
    for call in seen.made:
        text = results.get(call.id or "", "")
        if call.name == "terminal":
            if marks.HELD not in text:
                yield f"a confined command did not run: {_cut(text)}"
            continue
        if call.name == "write_file" or marks.GIVEN in text:
            continue
        told = "it ran with what the model asked" if marks.ASKED in text else _cut(text)
        yield f"{call.name} did not run with the rewritten arguments: {told}"
    if not any(call.name == "write_file" for call in seen.made):
        yield "nothing was blocked: Hermes offers the model no write_file"


def _result_faults(seen: Seen) -> Iterator[str]:
    results = seen.results()
    for call in seen.made:
        text = results.get(call.id or "", "")
        if call.name != "write_file" and (marks.RAW in text or marks.SEEN not in text):
            raw = "as the tool gave it" if marks.RAW in text else _cut(text)
            yield f"the model saw the result of {call.name} {raw}"


def _inputs(_seen: Seen) -> Iterator[str]:
    yield "the input"


def _requests(seen: Seen) -> Iterator[str]:
    return (f"request {number}" for number in range(1, len(seen.requests) + 1))


def _calls(seen: Seen) -> Iterator[str]:
    return (f"{call.name} ({call.id})" for call in seen.made)


def _results(seen: Seen) -> Iterator[str]:
    # A call that did not run has no result.
    return (f"{call.name} ({call.id})" for call in seen.made if call.name != "write_file")


class _Trial(NamedTuple):
    """How a hook is proved: what it should fire for, once each, and what came of it."""

    events: Callable[[Seen], Iterator[str]]
    faults: Callable[[Seen], Iterator[str]]


_TRIALS: Final = complete(
    "proof",
    {
        HookName.TRANSFORM_USER_INPUT: _Trial(_inputs, _input_faults),
        HookName.BEFORE_LLM_CALL: _Trial(_requests, _request_faults),
        HookName.INTERCEPT_TOOL_CALL: _Trial(_calls, _call_faults),
        HookName.TRANSFORM_TOOL_RESULT: _Trial(_results, _result_faults),
    },
    CALLED,
)


def _cut(text: str) -> str:
    shown = printable(text) or "no result at all"
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _suspects(hook: HookName, seen: Seen) -> Iterator[Suspect]:
    """The wraps that this hook needs and that do not stand as they should, the worst first."""
    rows = [row for row in seen.seams if str(hook) in row["hooks"]]
    rank = ("taken", "missing", "unfit", "bare", "attached")
    for row in sorted(
        (row for row in rows if row["status"] in rank), key=lambda row: rank.index(row["status"])
    ):
        if row["status"] != "attached" or row["place"]:
            yield Suspect(*(row[key] for key in ("seam", "status", "plugin", "place", "told")))
