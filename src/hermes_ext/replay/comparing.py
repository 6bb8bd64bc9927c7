"""A verdict as it was and as it is now, in one form, and whether they are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from hermes_ext.chain.outcome import ChainOutcome
from hermes_ext.replay.events import Recorded
from hermes_ext.turns.decisions.canonical import canonical_digest
from hermes_ext.turns.decisions.level import LogLevel
from hermes_ext.turns.decisions.line import DecisionEvent, build_line
from hermes_ext.turns.turn import as_logged

Line = Mapping[str, Any]

_WHERE: Final = ("handler", "file", "line")
_CONFINES: Final = ("extension", "reason", "writable", "network", "or_exact")


def line_of(recorded: Recorded, outcome: ChainOutcome) -> Line:
    """What the decision log would say of an outcome, with payloads."""
    event = recorded.event
    decided = DecisionEvent(
        hook=event.hook.value,
        before=event.value,
        outcome=partial(as_logged, outcome),
        tool=getattr(event, "tool_name", None),
        tool_call_id=getattr(event, "tool_call_id", None) or None,
    )
    return build_line(decided, LogLevel.PAYLOADS)


def verdict_of(line: Line) -> dict[str, Any]:
    """What was decided, by whom, and what it did to the value; as plain data.

    A question is `ask` whoever answered it and how; a call that is confined is `confine`, whatever
    this machine made of that.
    """
    asks = _asks(line)
    confines = [*(line.get("confines") or ())]
    confined = bool(line.get("confined") and confines)
    # A turn looks at what is confined before it asks, and after a chain that nobody ended.
    asked = bool(asks) and (confined or bool(line.get("decided_by")) or line["action"] == "ask")
    action = "ask" if asked else "confine" if confined else str(line["action"])
    wanted = asks if asked else confines if action == "confine" else ()
    reasons = [str(each.get("reason")) for each in wanted]
    decided = action != "pass" or "failure" in line
    who = line.get("extension") or line.get("blocked_by")
    if action == "confine":
        who = confines[0].get("extension")  # the first, whoever does not allow what it would do
    payloads = line.get("payloads") or {}
    changed = bool(line.get("changed")) or action == "answer"
    return {
        "action": action,
        "extension": who if decided else None,
        **{key: line.get(key) if decided else None for key in _WHERE},
        "message": "; ".join(reasons) or line.get("message"),
        "setting": [*(line.get("setting") or ())] if decided else [],
        "failure": line.get("failure"),
        "value": payloads.get("out") if changed else None,
        "confines": [{key: each[key] for key in _CONFINES if key in each} for each in confines],
        "injections": [*_injections(line)],
        "would_have": [*_would_have(line)],
    }


def is_same(then: Line, now: Line) -> bool:
    """Whether two lines about the same event decide the same. Where code stands does not count."""
    # What does not run has no value: a question that was answered with no, a block.
    with_value = all("out" in line["digests"] for line in (then, now))
    return _essence(then, with_value) == _essence(now, with_value)


def took_part(line: Line) -> frozenset[str]:
    """The extensions whose handlers did more than to let pass."""
    steps = [each for each in line.get("steps") or () if each.get("action") != "pass"]
    failed = [each for each in line.get("steps") or () if "error" in each]
    named = {str(each.get("extension")) for each in (*steps, *failed)}
    return frozenset(named | {str(line[k]) for k in ("extension", "blocked_by") if line.get(k)})


def _essence(line: Line, with_value: bool) -> tuple[Any, ...]:
    verdict = verdict_of(line)
    asked = verdict["action"] == "ask"
    came_out = line["digests"]["out"] if with_value else None
    # Whoever's question was refused: all who ask have a say.
    askers = tuple(each.get("extension") for each in _asks(line))
    return (
        askers if asked else verdict["extension"],
        *(verdict[key] for key in ("action", "message", "failure")),
        came_out,
        canonical_digest(verdict["confines"]),
        canonical_digest(verdict["injections"]),
        canonical_digest(verdict["would_have"]),
    )


def _asks(line: Line) -> list[Mapping[str, Any]]:
    """What handlers ask; of a call that cannot be confined the turn asks too, last of all."""
    asks = [*(line.get("asks") or ())]
    return asks[:-1] if (line.get("confined") or {}).get("asked") else asks


def _injections(line: Line) -> Iterator[dict[str, Any]]:
    for where, entries in (line.get("injections") or {}).items():
        for each in entries:
            yield {"where": where, **{key: each.get(key) for key in ("extension", "text", "keep")}}


def _would_have(line: Line) -> Iterator[dict[str, Any]]:
    for step in line.get("steps") or ():
        if step.get("observed") and (step.get("action") != "pass" or "error" in step):
            yield {key: step.get(key) for key in ("extension", "action", "reason")}
