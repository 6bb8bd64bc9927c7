"""A line of the decision log in words: who decided what, by which setting, what would change it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from hermes_ext._prog import Prog
from hermes_ext._text import printable
from hermes_ext.cli._decisions import entries
from hermes_ext.hooks.settings import PREFIX, Setting, settings_named
from hermes_ext.hooks.source import OWN, Source
from hermes_ext.hooks.table import ACTIONS, TABLE
from hermes_ext.loading.inventory import Inventory, inventory
from hermes_ext.loading.switches import named
from hermes_ext.records import Status
from hermes_ext.turns.decisions.canonical import canonical_digest

_HOOKS: Final = {row.name.value: row for row in TABLE.values()}
_VERBS: Final = {action.value: row.did for action, row in ACTIONS.items()}
_ANSWERS: Final = {
    ("person", True): "a person said yes",
    ("person", False): "a person said no",
    ("setting", True): "nobody was there, and ask_without_human says yes",
    ("nobody", False): "nobody was there to say yes",
}
_OF_THE_SETTING: Final = {"setting": "approve", "nobody": "block"}  # of ask_without_human
_OF_OURS: Final = ("ask_without_human", "confine_unavailable", "required")
_KEPT_BY: Final = {
    "kernel": "the kernel",
    "effects": "its effects: what it changes is known, and is in the writable folders",
    "server": "the tool's server says that it only reads",
    "refusal": "a block",
    "nothing": "nothing: it cannot be confined",
}
_WHO: Final = ("extension", "handler", "file", "line", "setting", "settings")
_VALUE: Final = ("value", "from", "file")
_SETTING: Final = ("key", *_VALUE)
_NOTHING: Final = canonical_digest("")
_OWN_ADVICE: Final = "no setting does; do it yourself, in a terminal or an editor of your own"


class Explaining:
    """Explains lines of one log; what is installed is looked at once for each directory."""

    def __init__(self, home: Path, prog: Prog, here: Path | None) -> None:
        self._home = home
        self._prog = prog
        self._here = here
        self._seen: dict[Path | None, Inventory] = {}

    def of(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line, and what it means."""
        who = _decider(line)
        name = who.get("extension")
        return {
            "says": printable(says(line)),
            "reason": _reason(line),
            "extension": name and printable(str(name)),
            "handler": who.get("handler"),
            "file": who.get("file") and printable(str(who["file"])),
            "line": who.get("line"),
            "settings": [*self._settings(line, who)],
            "asked": [*_asked(line)],
            "to_change": [*self._to_change(line, who)],
            "advice": _OWN_ADVICE if name == OWN and who.get("handler") else None,
            "decision": dict(line),
        }

    def _inventory(self, cwd: Any) -> Inventory:
        place = Path(str(cwd)) if cwd else None
        if place not in self._seen:
            self._seen[place] = inventory(self._home, place)
        return self._seen[place]

    # -- settings -------------------------------------------------------------------------------

    def _settings(
        self, line: Mapping[str, Any], who: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """The settings that decided as they were then, and today's values where these differ."""
        name = str(who.get("extension"))
        recorded = who.get("settings") or ()
        for each in recorded:
            yield self._compared({key: each.get(key) for key in _SETTING}, name, line)
        if not recorded:  # of an earlier version, which wrote down the keys alone
            for each in self._today(who.get("setting") or [], name, line):
                today = None if each["from"] is None else {key: each[key] for key in _VALUE}
                yield {"key": each["key"], **dict.fromkeys(_VALUE), "today": today}
        if line.get("decided_by") in _OF_THE_SETTING:
            value = _OF_THE_SETTING[str(line["decided_by"])]
            yield self._compared(_own("ask_without_human", value), name, line)
        confined = line.get("confined") or {}
        if confined.get("kept_by") == "nothing":
            value = "ask" if confined.get("asked") else "block"
            yield self._compared(_own("confine_unavailable", value), name, line)

    def _compared(self, then: dict[str, Any], name: str, line: Mapping[str, Any]) -> dict[str, Any]:
        """A setting as it was, with today's value unless it is the same."""
        found = self._today([str(then["key"])], name, line)
        if len(found) != 1 or found[0]["from"] is None:  # not known
            return then | {"today": None}
        now = {key: found[0][key] for key in _VALUE}
        # As they are written: to Python `true` and 1 are equal.
        if canonical_digest(now["value"]) != canonical_digest(then["value"]):
            return then | {"today": now}
        return then | ({} if then["from"] else now) | {"today": None}

    def _today(self, keys: list[str], name: str, line: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The values of settings now; without a place those that are not known."""
        seen = self._inventory(line.get("cwd"))
        found: list[Setting] = []
        for key in keys:
            of_ours = key.removeprefix(PREFIX)
            if key.startswith(PREFIX) and of_ours in _OF_OURS:
                found.append(seen.config.own_setting(of_ours))
            else:
                found += settings_named(key, name, None, partial(_leaves, seen, name))
        return [each.to_json() for each in found]

    # -- what to do -----------------------------------------------------------------------------

    def _to_change(self, line: Mapping[str, Any], who: Mapping[str, Any]) -> Iterator[str]:
        """Commands, each as it can be typed."""
        name = who.get("extension")
        if name is None:
            return
        if name == OWN:
            if not who.get("handler"):
                yield self._prog("doctor")
            return
        typed = shlex.quote(printable(str(name)))
        there = named(self._inventory(line.get("cwd")), str(name))
        info = self._prog(f"info {typed}")
        if there and there[0].source is Source.PROJECT:
            here = named(self._inventory(self._here), str(name))
            if there[0].path not in [each.path for each in here]:
                # Nobody finds a project's extension in a directory outside of the project.
                info = f"cd {shlex.quote(printable(str(line['cwd'])))} && {info}"
        yield info
        # What is only observed has decided nothing.
        if not who.get("observed") and any(r.status is not Status.DISABLED for r in there):
            yield self._prog(f"disable {typed}")


def _own(key: str, value: str) -> dict[str, Any]:
    """A key of the package's own as it was, of which the line has no place."""
    return {"key": f"{PREFIX}{key}", "value": value, "from": None, "file": None}


def _leaves(seen: Inventory, name: str) -> Iterator[Setting]:
    """All settings of an extension; nothing where it is not there."""
    for record in named(seen, name)[:1]:
        found = seen.found_of(record)
        if found is not None:
            yield from seen.merged(record, found).leaves()


def _decider(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Who decided, as the line has it; where nobody did, who would have and is only observed."""
    observed = _would_have(line)
    if observed is not None:
        return observed
    who = {key: line[key] for key in _WHO if key in line}
    return {"extension": line.get("blocked_by")} | who


def _would_have(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if line.get("action") != "pass" or line.get("asks"):
        return None
    return next((each for each in observed_in(line) if each.get("action") != "pass"), None)


def _asked(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Who asked as well, and did not decide."""
    for each in line.get("asks") or ():
        is_decider = was_answered(line) and (
            line.get("approved")
            or (each.get("extension"), each.get("handler"))
            == (line.get("extension"), line.get("handler"))
        )
        if not is_decider:
            yield {key: printable(str(each.get(key))) for key in ("extension", "handler", "reason")}


def was_answered(line: Mapping[str, Any]) -> bool:
    """Whether somebody answered a question; one that a block came after was put to nobody."""
    return bool(line.get("asks")) and "approved" in line


def confining(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a confined call may change, and what kept it to that, as labels and texts."""
    for each in line.get("confines") or ():
        yield "Confined by", f"{each.get('extension')}/{each.get('handler')}: {each.get('reason')}"
    found = line.get("confined") or {}
    if not found:
        return
    yield "Writable", ", ".join(found.get("writable") or ()) or "nothing"
    for each in found.get("left_out") or ():
        yield "Not writable", f"{each.get('path')}: {each.get('why')}"
    yield "Network", "none" if found.get("network") == "none" else "the host's"
    kept_by = str(found.get("kept_by"))
    level = f" ({found['level']})" if found.get("level") else ""
    yield "Kept by", _KEPT_BY.get(kept_by, kept_by) + level


def says(line: Mapping[str, Any]) -> str:
    """Who did what, on what: `workflow-guard blocked terminal`."""
    hook = str(line.get("hook"))
    # No text of a line is a format itself.
    row = _HOOKS.get(hook)
    it = hook if row is None else row.object.format(tool=line.get("tool") or "a tool")
    who = line.get("extension") or line.get("blocked_by") or "every extension"
    if was_answered(line):
        if line.get("approved"):
            askers = dict.fromkeys(str(each.get("extension")) for each in line["asks"])
            who = " and ".join(askers)
        said = _ANSWERS.get((str(line.get("decided_by")), bool(line.get("approved"))))
        said = said or ("it was approved" if line.get("approved") else "it was not approved")
        return f"{who} asked about {it}: {said}"
    action = str(line.get("action"))
    if action == "block" and row is not None and row.refused != "blocked":
        return f"{who} {row.refused} {it}"
    observed = _would_have(line)
    if observed is not None:
        would = done(str(observed.get("action")), it).split(" ", 1)
        return f"{observed.get('extension')} would have {would[0]} {would[1]}; it is only observed"
    why = ", because its handler failed" if line.get("failure") else ""
    if line.get("missing"):
        verb = "is" if len(line["missing"]) == 1 else "are"
        why = f", because {' and '.join(line['missing'])} {verb} required and not loaded"
    if action == "answer" and (line.get("digests") or {}).get("out") == _NOTHING:
        return f"{who} answered {it} with nothing"
    return f"{who} {done(action, it)}{why}"


def done(action: str, it: str) -> str:
    """What was done: `blocked terminal`."""
    return _VERBS.get(action, "{action} {it}").format(action=action, it=it)


def observed_in(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What handlers would have done that are only observed."""
    return (each for each in entries(line, "by", "steps") if each.get("observed"))


def _reason(line: Mapping[str, Any]) -> str | None:
    if isinstance(line.get("message"), str):
        return str(line["message"])
    observed = _would_have(line)
    if observed is not None:
        return str(observed["reason"]) if observed.get("reason") else None
    wanted = (line.get("asks") if was_answered(line) else line.get("confines")) or ()
    return "; ".join(dict.fromkeys(str(each.get("reason")) for each in wanted)) or None
