"""Lines of earlier versions in today's form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_OF_THE_DECIDER: Final = ("extension", "handler", "setting", "file", "line", "failure")


def as_written_now(line: dict[str, Any]) -> dict[str, Any]:
    """The line, with the handler that decided in the place of one that had only asked before.

    They named the handler that asked, as if its question had been refused, also where a later one
    blocked or answered.
    """
    if "approved" not in line or "decided_by" in line or line.get("action") not in _ENDED:
        return line
    decider: Mapping[str, Any] = next(_ends(line), {"extension": line.get("blocked_by")})
    asker = {key: line[key] for key in _OF_THE_DECIDER if key in line and key != "failure"}
    kept = {key: value for key, value in line.items() if key not in (*_OF_THE_DECIDER, "approved")}
    kept |= {key: decider[key] for key in _OF_THE_DECIDER if decider.get(key) is not None}
    if isinstance(decider.get("error"), Mapping):
        kept["failure"] = decider["error"].get("kind")
    others = line.get("by")
    if isinstance(others, list):
        kept["by"] = [{**asker, "action": "ask"}, *(each for each in others if each is not decider)]
    return kept


_ENDED: Final = ("block", "answer")


def _ends(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The handlers that did what came out."""
    for key in ("by", "steps"):
        entries = line.get(key)
        for each in entries if isinstance(entries, list) else ():
            if not isinstance(each, Mapping) or each.get("observed"):
                continue
            named = line["action"] != "block" or each.get("extension") == line.get("blocked_by")
            if each.get("action") == line["action"] and named:
                yield each
