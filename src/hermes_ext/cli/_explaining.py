"""A line of the decision log in words: who decided what, by which setting, what would change it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hermes_ext._hooks.source import OWN
from hermes_ext._hooks.text import printable
from hermes_ext._install.inventory import Inventory, inventory
from hermes_ext._install.records import Prog, Status, canonical_name
from hermes_ext._install.switches import by_use
from hermes_ext._turns.decisions import canonical_digest
from hermes_ext.cli._settings import settings_of

_OBJECTS: Final = {
    "transform_user_input": "the input",
    "before_llm_call": "the request to the model",
    "transform_tool_result": "the result of {tool}",
    "intercept_tool_call": "{tool}",
}
_VERBS: Final = {
    "block": "blocked {it}",
    "answer": "answered {it} itself",
    "rewrite": "rewrote {it}",
    "inject_system": "added to {it}, in the system prompt",
    "inject_user": "added to {it}, as a message",
    "ask": "asked about {it}",
    "pass": "let {it} pass",
}
_ANSWERS: Final = {
    ("person", True): "a person said yes",
    ("person", False): "a person said no",
    ("setting", True): "nobody was there, and ask_without_human says yes",
    ("nobody", False): "nobody was there to say yes",
}
_WITHOUT_HUMAN: Final = "extensions.ask_without_human"
_PREFIX: Final = "extensions."
_NOTHING: Final = canonical_digest("")
_PLACE: Final = re.compile(r"\[\d+\]")  # of `rules[0]`
_MOST_LEAVES: Final = 4
_OWN_ADVICE: Final = "no setting does; do it yourself, in a terminal or an editor of your own"


class Explaining:
    """Explains lines of one log; what is installed is looked at once for each directory."""

    def __init__(self, home: Path, prog: Prog) -> None:
        self._home = home
        self._prog = prog
        self._seen: dict[Path | None, Inventory] = {}

    def of(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line, and what it means."""
        who = line.get("extension") or line.get("blocked_by")
        settings = [*self._settings(line, who)]
        return {
            "says": printable(says(line)),
            "reason": _reason(line),
            "extension": who and printable(str(who)),
            "handler": line.get("handler"),
            "file": line.get("file") and printable(str(line["file"])),
            "line": line.get("line"),
            "settings": settings,
            "to_change": [*self._to_change(line, who, settings)],
            "decision": dict(line),
        }

    def _inventory(self, line: Mapping[str, Any]) -> Inventory:
        cwd = Path(str(line["cwd"])) if line.get("cwd") else None
        if cwd not in self._seen:
            self._seen[cwd] = inventory(self._home, cwd)
        return self._seen[cwd]

    def _settings(self, line: Mapping[str, Any], who: Any) -> Iterator[dict[str, Any]]:
        """The settings that decided, with their values now and where these are from."""
        named = line.get("setting")
        for key in [named] if isinstance(named, str) else named or ():
            yield from self._setting(str(key), line, str(who))
        if line.get("decided_by") in ("setting", "nobody"):
            config = self._inventory(line).config
            at = config.line_of("ask_without_human")
            origin = f"{config.file.name}:{at}" if at else "default"
            yield {"key": _WITHOUT_HUMAN, "value": config.ask_without_human, "from": origin}

    def _setting(self, key: str, line: Mapping[str, Any], who: str) -> Iterator[dict[str, Any]]:
        path = _PLACE.sub("", key).removeprefix(_PREFIX).split(".")
        first, rest = path[0], path[1:]
        name = first if canonical_name(first) == canonical_name(who) else who
        rest = rest if name == first else path
        leaves = self._leaves(line, name)
        wanted = ".".join(rest)
        found = [each for each in leaves if each["key"] == wanted]
        found = found or [each for each in leaves if each["key"].startswith(f"{wanted}.")]
        if rest and 0 < len(found) <= _MOST_LEAVES:
            for each in found:
                yield {**each, "key": f"{_PREFIX}{printable(name)}.{each['key']}"}
        else:
            yield {"key": printable(key), "value": None, "from": None}

    def _leaves(self, line: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        seen = self._inventory(line)
        wanted = canonical_name(name)
        records = [each for each in seen.records if canonical_name(each.name) == wanted]
        if not records:
            return []
        record = min(records, key=by_use)
        same = (record.source, record.name, record.path)
        found = next((e for e in seen.found if (e.source, e.name, e.path) == same), None)
        leaves: list[dict[str, Any]] = settings_of(record, found, seen)["settings"]
        return leaves

    def _to_change(
        self, line: Mapping[str, Any], who: Any, settings: list[dict[str, Any]]
    ) -> Iterator[str]:
        if who is None:
            return
        if who == OWN:
            yield _OWN_ADVICE if line.get("handler") else self._prog("doctor")
            return
        seen = self._inventory(line)
        name = printable(str(who))
        for each in settings:
            if each["from"] is not None:
                at = str(each["from"])
                project = at.startswith(".hermes/")
                where = at if project else printable(seen.config.file)
                yield f"{each['key'].removeprefix(_PREFIX) if project else each['key']} in {where}"
        yield self._prog(f"info {name}")
        on = [r for r in seen.records if canonical_name(r.name) == canonical_name(str(who))]
        if any(each.status is not Status.DISABLED for each in on):
            yield self._prog(f"disable {name}")


def says(line: Mapping[str, Any]) -> str:
    """Who did what, on what: `workflow-guard blocked terminal`."""
    hook = str(line.get("hook"))
    # No text of a line is a format itself.
    it = _OBJECTS.get(hook, "{hook}").format(tool=line.get("tool") or "a tool", hook=hook)
    who = line.get("extension") or line.get("blocked_by") or "every extension"
    if line.get("asks"):
        said = _ANSWERS.get((str(line.get("decided_by")), bool(line.get("approved"))))
        said = said or ("it was approved" if line.get("approved") else "it was not approved")
        return f"{who} asked about {it}: {said}"
    action = str(line.get("action"))
    if action == "block" and line.get("hook") == "transform_tool_result":
        return f"{who} withheld {it}"
    observed = next((e for e in observed_in(line) if e.get("action") != "pass"), None)
    if action == "pass" and observed is not None:
        would = done(str(observed.get("action")), it).split(" ", 1)
        return f"{observed.get('extension')} would have {would[0]} {would[1]}; it is only observed"
    why = ", because its handler failed" if line.get("failure") else ""
    if action == "answer" and (line.get("digests") or {}).get("out") == _NOTHING:
        return f"{who} answered {it} with nothing"
    return f"{who} {done(action, it)}{why}"


def done(action: str, it: str) -> str:
    """What was done: `blocked terminal`."""
    return _VERBS.get(action, "{action} {it}").format(action=action, it=it)


def observed_in(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What handlers would have done that are only observed."""
    for key in ("by", "steps"):
        for each in line.get(key) or ():
            if isinstance(each, Mapping) and each.get("observed"):
                yield each


def _reason(line: Mapping[str, Any]) -> str | None:
    if isinstance(line.get("message"), str):
        return str(line["message"])
    asked = [str(each.get("reason")) for each in line.get("asks") or ()]
    observed = [str(each["reason"]) for each in observed_in(line) if each.get("reason")]
    return "; ".join(asked or observed) or None
