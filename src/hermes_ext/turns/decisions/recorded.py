"""An event and its surroundings as plain data, and back: what is needed to run a chain again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hermes_ext.hooks.payloads import EVENT_OF, SCOPE_FACTS, Event, Scope
from hermes_ext.hooks.table import TABLE, HookName
from hermes_ext.turns.decisions.canonical import readable

_PATHS: Final = ("cwd", "project_root")


def context_of(scope: Scope) -> dict[str, Any]:
    """What a turn knew; what it did not know is left out."""
    known = {name: getattr(scope, name) for name in SCOPE_FACTS if name not in scope.unknown}
    for name in _PATHS:
        if known.get(name) is not None:
            known[name] = str(known[name])
    return {name: value for name, value in known.items() if value is not None}


def details_of(event: Event) -> dict[str, Any]:
    """What an event has beside the value that flows, the tool and the id of its call."""
    found = {name: readable(getattr(event, name)) for name in event.details}
    return {name: value for name, value in found.items() if value is not None}


def recorded_context(line: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for `Runtime.turn` that give the turn of a line again.

    `line["context"]["cwd"]` is where a tool call's own paths begin: for `judge_tool_call(cwd=…)`.

    Raises:
        ValueError: the line has no payloads.
    """
    context = dict(_of(line, "context"))
    context.pop("cwd", None)
    if "cwd" in line:
        context["cwd"] = line["cwd"]
    for name in _PATHS:
        if name in context:
            context[name] = Path(context[name])
    ids = {"session_id": "session", "conversation_id": "conversation", "turn_id": "turn"}
    return {name: line[key] for name, key in ids.items() if key in line} | context


def recorded_event(line: Mapping[str, Any]) -> Event:
    """The event of a line, as it was before any handler had it.

    JSON values are the same again; of others (bytes, NaN) there is what stands for them.

    Raises:
        ValueError: the line has no payloads, they are nested too deeply, or the hook is not known.
    """
    value = _whole(_of(line, "payloads")["in"])
    details = {name: _whole(each) for name, each in _of(line, "event").items()}
    hook = HookName(line["hook"])
    call = {}
    if TABLE[hook].tools:
        call = {"tool_name": line["tool"], "tool_call_id": line.get("tool_call_id", "")}
    return EVENT_OF[hook].recorded(value, call, details)


def _whole(value: Any) -> Any:
    """The reverse of `readable`."""
    if not isinstance(value, Mapping) or value.keys() != {"$deep"}:
        return value
    try:
        return json.loads(value["$deep"])
    except RecursionError:
        raise ValueError("what was recorded is nested too deeply to be made again") from None


def _of(line: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = line.get(key)
    if not isinstance(found, Mapping):
        raise ValueError("the line was written without payloads (extensions.log: payloads)")
    return found
