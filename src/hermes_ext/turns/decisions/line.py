"""One line of the decision log: what is written of a chain at which level."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from hermes_ext._values import field, frozen
from hermes_ext.chain.outcome import is_taken_away
from hermes_ext.hooks.payloads import Event, Scope, ToolCall, ToolResult
from hermes_ext.hooks.table import ENDING
from hermes_ext.turns.decisions.canonical import canonical_digest, canonical_json, readable
from hermes_ext.turns.decisions.changes import call_of, changes_of
from hermes_ext.turns.decisions.level import LogLevel
from hermes_ext.turns.decisions.recorded import context_of, details_of

_TEXT_LIMIT: Final = 500


Outcome: TypeAlias = Mapping[str, Any]
"""`ChainOutcome.to_json()`."""


@frozen
class DecisionEvent:
    """One chain that has run. Must not be changed afterwards: it is read when the line is built.

    Attributes:
        hook: the hook's name.
        before: the value that went in: text or parts, messages, tool arguments or a tool's result.
        outcome: what came out, as a mapping or as a function that gives it (called off the turn).
            Known keys: action, value, changed, blocked_by, message, asks, approved, decided_by,
            decider (the number of a step), confines, confined, missing, setting, settings, file,
            line, metadata, steps, system_injections, user_injections, duration_ns; others are
            ignored.
        turn: the turn's id; None where there is none, as for the following.
        session: the session's id.
        conversation: the conversation's id.
        tool: the tool's name.
        tool_call_id: the id of the tool call.
        event: what the hook was called with, for a line from which the chain can be run again.
        scope: likewise what the turn knew.
        directory: the session's; a tool call's own may be another, and is in `scope`.
        time: seconds since the epoch.
    """

    hook: str
    before: Any
    outcome: Outcome | Callable[[], Outcome]
    turn: str | None = None
    session: str | None = None
    conversation: str | None = None
    tool: str | None = None
    tool_call_id: str | None = None
    event: Event | None = None
    scope: Scope | None = None
    directory: Path | None = None
    time: float = field(factory=time.time)


_ASK_KEYS: Final = ("extension", "handler", "reason", "key")
_CONFINE_KEYS: Final = ("extension", "handler", "reason", "writable", "network", "or_exact")
_STEP_KEYS: Final = (
    "extension",
    "handler",
    "guard",
    "action",
    "changed",
    "observed",
    "skipped",
    "reason",
    "bounds",
    "error",
    "mutated",
    "setting",
    "settings",
    "file",
    "line",
    "duration_ns",
)
_ERROR_KEYS: Final = ("kind", "message")
_PLACE_KEYS: Final = ("extension", "handler", "setting", "settings", "file", "line")
_BY_KEYS: Final = (
    "extension",
    "handler",
    "action",
    "changed",
    "observed",
    "setting",
    "file",
    "line",
)


def build_line(event: DecisionEvent, level: LogLevel) -> dict[str, Any]:
    """What is logged for a chain, in the order in which it is written.

    Keys that have nothing to say are left out, except `time`, `hook`, `action` and `digests`.
    """
    outcome = event.outcome() if callable(event.outcome) else event.outcome
    payloads = level is LogLevel.PAYLOADS
    steps = outcome.get("steps") or ()
    decider = _decider(outcome, steps)
    others = [step for step in steps if _acts(step) and step is not decider]
    values = _values(event.before, outcome, payloads)
    # What a handler raised may quote what was taken away, which is to be in no log.
    blocked, changed = outcome.get("action") == "block", bool(outcome.get("changed"))
    quiet = is_taken_away(event.hook, blocked, changed, "error" in decider)
    line: dict[str, Any] = {
        "time": iso(event.time),
        "turn": event.turn,
        "session": event.session,
        "conversation": event.conversation,
        "cwd": None if event.directory is None else str(event.directory),
        "hook": str(event.hook),
        "tool": event.tool,
        "tool_call_id": event.tool_call_id,
        "call": call_of(_args(event)),
        "action": str(outcome.get("action", "pass")),
        "blocked_by": outcome.get("blocked_by"),
        "message": _text(outcome.get("message"), payloads),
        "decided_by": outcome.get("decided_by"),
        "missing": [*(outcome.get("missing") or ())],
        **{key: decider[key] for key in _PLACE_KEYS if key in decider},
        "failure": _kind(decider.get("error")),
        "changed": bool(outcome.get("changed")),
        "change": _change(event, outcome),
        "asks": [_only(ask, _ASK_KEYS, payloads) for ask in outcome.get("asks") or ()],
        "approved": outcome.get("approved") if outcome.get("asks") else None,
        "confines": [
            _only(each, _CONFINE_KEYS, payloads) for each in outcome.get("confines") or ()
        ],
        "confined": outcome.get("confined"),
        "digests": values.pop("digests"),
    }
    if level is LogLevel.DECISIONS:
        line["by"] = [_by(step) for step in others]
    if level in (LogLevel.STEPS, LogLevel.PAYLOADS):
        line["steps"] = [_step(step, payloads, quiet) for step in steps]
    # From here on it can be long: of a line that is too long only what comes before is read.
    line |= {"injections": _injections(outcome, payloads), **values}
    if payloads:
        line["metadata"] = readable(outcome.get("metadata"))
        line |= {} if event.event is None else {"event": details_of(event.event)}
        line |= {} if event.scope is None else {"context": context_of(event.scope)}
    line["duration_ns"] = outcome.get("duration_ns")
    kept = ("event", "context")  # their presence says that the chain can be run again
    return {key: value for key, value in line.items() if key in kept or value not in (None, [], {})}


def iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _text(text: Any, everything: bool) -> Any:
    """A text of a handler: cut short and, unless payloads are wanted, without secrets."""
    if not isinstance(text, str):
        return text
    shown = text
    if not everything:
        from hermes_ext._redaction import redacted

        # Looked at before it is cut: half a secret is known by nobody.
        shown = redacted(text[: 4 * _TEXT_LIMIT])
    return shown if len(text) <= _TEXT_LIMIT else f"{shown[:_TEXT_LIMIT]}… ({len(text)} characters)"


def _step(step: Any, everything: bool, quiet: bool) -> Any:
    """What a handler did; if quiet, without the text of its error."""
    found = _only(step, _STEP_KEYS, everything)
    if quiet and not everything and isinstance(found, dict) and "error" in found:
        found["error"] = {"kind": _kind(found["error"])}
    return found


def _only(entry: Any, keys: tuple[str, ...], everything: bool) -> Any:
    """An ask or a step; without payloads only the keys that cannot hold one, texts cut short."""
    if not isinstance(entry, Mapping) or everything:
        return entry
    found = {key: _brief(key, entry[key]) for key in keys if entry.get(key) is not None}
    if "error" in found:
        found["error"] = _only(found["error"], _ERROR_KEYS, everything)
    return found


def _brief(key: str, value: Any) -> Any:
    return _text(value, everything=False) if key in ("reason", "message") else value


def _acts(step: Any) -> bool:
    """Whether a handler did more than to let pass."""
    if not isinstance(step, Mapping):
        return False
    return step.get("action") != "pass" or "error" in step or "setting" in step


def _decider(outcome: Outcome, steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The step that decided, as the chain recorded; without one, in whose name it was refused."""
    number = outcome.get("decider")
    if isinstance(number, int) and number < len(steps):
        return steps[number]
    if outcome.get("blocked_by") is None:
        return {}
    return {"extension": outcome["blocked_by"]} | {
        key: outcome[key] for key in _PLACE_KEYS if outcome.get(key)
    }


def _args(event: DecisionEvent) -> Any:
    """The arguments of the tool call that it is about."""
    called = event.event
    return called.tool_args if isinstance(called, ToolCall | ToolResult) else event.before


def _change(event: DecisionEvent, outcome: Outcome) -> list[dict[str, Any]]:
    """What was changed; of a text that goes no further nothing."""
    stopped = outcome.get("action") in ENDING
    if not outcome.get("changed") or (stopped and not isinstance(event.before, Mapping)):
        return []
    return changes_of(event.before, outcome.get("value"))


def _kind(error: Any) -> Any:
    return error.get("kind") if isinstance(error, Mapping) else None


def _by(step: Mapping[str, Any]) -> dict[str, Any]:
    """Another handler that did something; of one that is observed also why, and by what value."""
    more = ("reason", "bounds", "settings") if step.get("observed") else ()
    found = _only(step, (*_BY_KEYS, *more), False)
    if "error" in step:
        found["error"] = {"kind": _kind(step["error"])}
    return dict(found)


def _injections(outcome: Outcome, payloads: bool) -> dict[str, Any]:
    found = {where: outcome.get(f"{where}_injections") or () for where in ("system", "user")}
    return {
        where: [_injection(text, payloads) for text in texts]
        for where, texts in found.items()
        if texts
    }


def _injection(entry: Any, payloads: bool) -> Any:
    """Who injected, and the text or its digest."""
    if payloads:
        return entry
    known = entry if isinstance(entry, Mapping) else {"text": entry}
    who = {key: value for key, value in known.items() if key != "text"}
    return {**who, "digest": canonical_digest(known.get("text"))}


def _values(before: Any, outcome: Outcome, payloads: bool) -> dict[str, Any]:
    came_in = canonical_digest(before)
    digests: dict[str, Any] = {"in": came_in}
    values: dict[str, Any] = {"in": before}
    if outcome.get("action") != "block":
        replaced = outcome.get("changed") or outcome.get("action") == "answer"
        values["out"] = outcome.get("value") if replaced else before
        digests["out"] = canonical_digest(values["out"]) if replaced else came_in
    if not payloads:
        return {"digests": digests}
    return {"digests": digests, "payloads": {key: readable(each) for key, each in values.items()}}


def encoded(line: Mapping[str, Any]) -> bytes:
    # Value by value, so that time and hook come first and only what is inside is sorted.
    pairs = (f"{json.dumps(key)}:{canonical_json(value)}" for key, value in line.items())
    return b"{" + ",".join(pairs).encode("ascii") + b"}\n"
