"""`test`: one extension on a few events, and what each of its handlers made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext._text import is_same_name, printable
from hermes_ext.chain.outcome import Step
from hermes_ext.confine import Confinement, Reason
from hermes_ext.hooks.bounds import Bounds
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import Event, LLMRequest, ToolResult
from hermes_ext.loading.ended import Loaded
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.records import ExtensionRecord
from hermes_ext.replay.comparing import line_of, verdict_of
from hermes_ext.replay.events import Recorded
from hermes_ext.replay.trial import Judged, Trial, judged, one
from hermes_ext.settings.config import ExtensionsConfig


def attempt(
    name: str,
    found: Sequence[Candidate],
    events: Iterable[Recorded],
    *,
    hook: str | None,
    chain: bool,
    last: bool,
    samples: bool,
    home: Path,
    cwd: Path | None,
    config: ExtensionsConfig,
    import_seconds: float,
    progress: Callable[[int, int, str], object],
) -> dict[str, Any]:
    """Load it and run its handlers on the events of their hooks.

    found: what there is, beside the project's. events: those that some are chosen from. hook: only
    its handlers for this. chain: as part of all that is on. last: only on the last of the events
    that it is called for. samples: nobody chose the events, so only those that it is called for.
    """
    trial, loaded = one(home, cwd, config, name, found, import_seconds, alone=not chain)
    record = _record(loaded, name)
    own = [each for each in trial.runtime.handlers if is_same_name(each.extension, name)]
    own = [each for each in own if hook in (None, each.hook.value)]
    hooks = {handler.hook for handler in own}
    meant = (each for each in events if each.event.hook in hooks)
    if last or samples:
        meant = (each for each in meant if _is_for(each, own, trial))
    # Of a log there can be more than fit into memory.
    chosen = [*(deque(meant, 1) if last else meant)]

    told: list[dict[str, Any]] = []
    called: set[Handler] = set()
    if record is not None and record.loaded:
        for each in judged(trial, chosen, each=True, progress=progress):
            told.append(_told(each))
            called |= {one_of.handler for one_of in each.handled}
    return {
        "extension": None if record is None else record.to_json(),
        "problems": [problem.to_json() for problem in _problems(loaded, record)],
        "refusal": trial.runtime.refusal,
        "notices": sorted(trial.told),
        "events": told,
        "not_called": [_uncalled(each, events) for each in own if each not in called and not last],
        "failed": sum("error" in step for each in told for step in each["handlers"]),
    }


def _record(loaded: Loaded, name: str) -> ExtensionRecord | None:
    same = [each for each in loaded.records if is_same_name(each.name, name)]
    return next((each for each in same if each.loaded), same[0] if same else None)


def _problems(loaded: Loaded, record: ExtensionRecord | None) -> Iterable[Any]:
    """Of this extension's settings alone."""
    if record is None:
        return ()
    keys = (f"extensions.{record.name}", record.name)
    return [each for each in loaded.problems if each.key and each.key.startswith(keys)]


def _is_for(recorded: Recorded, own: Sequence[Handler], trial: Trial) -> bool:
    """Whether one of the handlers is called for an event."""
    tool = getattr(recorded.event, "tool_name", None)
    origin = str(recorded.context.get("origin", "user"))
    chain = trial.runtime.manager.chain(recorded.event.hook, tool, origin)
    return not chain.members.isdisjoint(own)


def _uncalled(handler: Handler, events: Iterable[Recorded]) -> dict[str, Any]:
    return {
        "handler": handler.name,
        "hook": handler.hook.value,
        "tools": None if handler.tools is None else [*handler.tools],
        "origins": None if handler.origins is None else [*handler.origins],
        "file": printable(handler.file),
        "line": handler.line,
        "why": _why_uncalled(handler, events),
    }


def _why_uncalled(handler: Handler, events: Iterable[Recorded]) -> str:
    same = [each for each in events if each.event.hook is handler.hook]
    if not same:
        return "no event is of its hook"
    if handler.tools is not None or handler.origins is not None:
        return "no event is of the tools or origins that it is for"
    return "the chain ended before it"


def _told(each: Judged) -> dict[str, Any]:
    event = each.recorded.event
    line = line_of(each.recorded, each.outcome)
    steps = each.outcome.steps
    injected = iter((*each.outcome.system_injections, *each.outcome.user_injections))
    texts: dict[tuple[str, str], list[str]] = {}
    for text in injected:
        texts.setdefault((text.extension, text.handler), []).append(str(text))
    return {
        "label": printable(each.recorded.label),
        "hook": event.hook.value,
        "tool": getattr(event, "tool_name", None),
        "input": _shown(event),
        **({"tool_args": event.tool_args} if isinstance(event, ToolResult) else {}),
        "output": None if each.outcome.blocked else each.outcome.final(event.value),
        "verdict": verdict_of(line),
        "duration_ns": sum(step.duration_ns or 0 for step in steps),
        "looked_at": each.touched.to_json(),
        "handlers": [*_handlers(each, steps, texts)],
    }


def _handlers(
    tried: Judged, steps: Sequence[Step], texts: Mapping[tuple[str, str], list[str]]
) -> Iterator[dict[str, Any]]:
    for each in tried.handled:
        who = (each.handler.extension, each.handler.name)
        step = steps[each.place]
        data = step.to_json()
        if step.error is not None:
            data["error"]["traceback"] = step.error.traceback or ""
        if step.bounds is not None:
            data["may_change"] = _on_disk(step.bounds, tried.root)
        yield {
            "guard": False,
            "changed": False,
            "setting": [],
            **data,
            "in": _shown(each.shown),
            "out": _shown(each.left) if step.changed and not step.observed else None,
            "injected": texts.get(who, []),
            "looked_at": each.touched.to_json(),
        }


def _on_disk(bounds: Bounds, root: Path | None) -> dict[str, Any]:
    """What of the writable paths a call could change here, and why not the others."""
    reason = Reason("", bounds.reason)
    found = Confinement.of(bounds.writable, root=root, network=bounds.network, reason=reason)
    return {
        "writable": [*map(str, found.writable)],
        "left_out": [{"path": path, "why": why} for path, why in found.left_out],
    }


def _shown(event: Event) -> Any:
    return [*event.messages] if isinstance(event, LLMRequest) else event.value
