"""The decision log, as it is asked for: where it is, which of its lines are meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from hermes_ext._hooks.source import OWN
from hermes_ext._hooks.text import printable
from hermes_ext._install.config import read_config
from hermes_ext._install.inventory import inventory
from hermes_ext._install.records import canonical_name, did_you_mean
from hermes_ext._redaction import redacted
from hermes_ext._turns.decisions import read_decisions
from hermes_ext.cli._patience import patience
from hermes_ext.exceptions import HermesExtError

Line = Mapping[str, Any]

SHOWN: Final = 20  # lines, where nobody says how many
_TEXTS: Final = frozenset(
    {"time", "turn", "session", "conversation", "cwd", "hook", "tool", "tool_call_id", "action",
     "blocked_by", "message", "decided_by", "extension", "handler", "file", "failure", "reason",
     "kind"}
)  # fmt: skip
_ENTRIES: Final = frozenset({"by", "steps", "asks"})
_OFF: Final = "off"
_PAYLOADS: Final = frozenset({"payloads", "event", "context", "metadata", "injections"})


class NothingFoundError(HermesExtError):
    """The log is not there, or has nothing of what was asked for."""


@frozen
class Query:
    """Which lines of the decision log are meant.

    last: the newest so many. session, turn: as their ids begin. chat: only of this session, and of
    the subagents that it started; "" for a chat whose session is not known, which sees nothing.
    since: seconds since the epoch. follow: go on with each line that is written. brief: nobody
    looks at payloads, which can be long.
    """

    last: int = SHOWN
    session: str | None = None
    turn: str | None = None
    hook: str | None = None
    extension: str | None = None
    action: str | None = None
    since: float | None = None
    follow: bool = False
    chat: str | None = None
    brief: bool = False

    def shown(self, line: Line) -> dict[str, Any]:
        """A line as it is shown: without secrets and, if brief, without payloads."""
        kept = {key: value for key, value in line.items() if not self.brief or key not in _PAYLOADS}
        told: dict[str, Any] = redacted(kept)
        return told

    def chosen(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Those of the lines that are meant, however many."""
        family: set[Any] = set()
        for line in lines:
            if self.chat and line.get("session") == self.chat:
                family.add(line.get("conversation"))
            if self._is_of_chat(line, family) and self._is_meant(line):
                yield line

    def numbers(self, lines: Iterable[Line]) -> list[int]:
        """The places of those of the lines that are meant, in a log that is no chat's."""
        return [number for number, line in enumerate(lines) if self._is_meant(line)]

    def _is_of_chat(self, line: Line, family: set[Any]) -> bool:
        if self.chat is None:
            return True
        return bool(self.chat) and (
            line.get("session") == self.chat or line.get("conversation", "") in family
        )

    def _is_meant(self, line: Line) -> bool:
        return (
            str(line.get("session", "")).startswith(self.session or "")
            and str(line.get("turn", "")).startswith(self.turn or "")
            and self.hook in (None, line.get("hook"))
            and (self.extension is None or canonical_name(self.extension) in names_in(line))
            and (self.action is None or self.action in actions_in(line))
            and (self.since is None or when(line) >= self.since)
        )

    def in_words(self) -> str:
        """What is asked for, as in ` of session abc`; empty for everything."""
        asked = {
            "session": self.session,
            "turn": self.turn,
            "hook": self.hook,
            "extension": self.extension,
            "action": self.action,
        }
        told = [f"{name} {printable(value)}" for name, value in asked.items() if value]
        if self.since is not None:
            told.append(f"since {datetime.fromtimestamp(self.since):%Y-%m-%d %H:%M:%S}")
        return f" with {', '.join(told)}" if told else ""


def sound_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines as they are shown; one that does not say when it was written is none."""
    return (sound(line) for line in lines if isinstance(line.get("time"), str))


def sound(line: Line) -> Line:
    """A line in which each value is of the kind that is written, whoever wrote it.

    Others can append to the file: what they may have put in place of a name is shown as text, and
    what cannot be shown is left out.
    """
    return {key: each for key, value in line.items() if (each := _sound(key, value)) is not None}


def _sound(key: str, value: Any) -> Any:
    if key in _TEXTS:
        return value if value is None or isinstance(value, str) else json.dumps(value)
    if key in _ENTRIES:
        entries = value if isinstance(value, list) else []
        return [sound(each) for each in entries if isinstance(each, Mapping)]
    if key == "error":
        return sound(value) if isinstance(value, Mapping) else value and str(value)
    if key == "setting":
        names = value if isinstance(value, list) else [value]
        return [each for each in names if isinstance(each, str)]
    if key == "line":
        return value if isinstance(value, int) else None
    return value


def when(line: Line) -> float:
    """Seconds since the epoch; 0 where a line says nothing of it."""
    try:
        seconds = datetime.fromisoformat(str(line.get("time"))).timestamp()
        datetime.fromtimestamp(seconds)  # a year that is none in this time zone
    except (ValueError, OverflowError, OSError):
        return 0.0
    return seconds


def names_in(line: Line) -> set[str]:
    """The extensions that a line tells of, in the form in which names are compared."""
    found = {line.get("extension"), line.get("blocked_by")}
    for key in ("by", "steps", "asks"):
        found |= {each.get("extension") for each in _entries(line, key)}
    return {canonical_name(str(name)) for name in found if name}


def actions_in(line: Line) -> set[str]:
    """The chain's action, `ask` where a person was asked, and `error` where a handler failed."""
    found = {str(line.get("action"))}
    if line.get("asks"):
        found.add("ask")
    if line.get("failure") or any(
        "error" in each for key in ("by", "steps") for each in _entries(line, key)
    ):
        found.add("error")
    return found


def _entries(line: Line, key: str) -> Iterator[Line]:
    entries = line.get(key)
    return (each for each in entries or () if isinstance(each, Mapping))


def log_file(home: Path) -> Path:
    """The decision log of a Hermes home."""
    return home / "logs" / "extensions.jsonl"


def note_on(home: Path) -> str | None:
    """That the log is off, and how to turn it on; None where it is on."""
    config = read_config(home)
    if config.log != _OFF:
        return None
    line = config.line_of("log")
    where = printable(config.file) + (f":{line}" if line else "")
    return (
        f"The decision log is off: extensions.log is {_OFF} in {where}. "
        'Set it to "decisions" and start Hermes again'
    )


def lines_of(
    home: Path, query: Query, known: Callable[[], Iterable[str]]
) -> tuple[list[Line], list[Line]]:
    """All lines of the log, and those that are meant.

    known: the names of extensions that there are, for one that the log does not know.

    Raises:
        NothingFoundError: there is none; says why, as far as that is known.
    """
    try:
        with patience("Reading the decision log"):
            everything: list[Line] = [*sound_lines(read_decisions(log_file(home)))]
    except OSError as error:
        raise unreadable(home, error) from error
    if query.chat == "":
        raise NothingFoundError(
            "the session of this chat is not known here, and others' decisions are not shown",
            hint="In a terminal: hermes extensions log",
        )
    if not everything:
        raise NothingFoundError(_why_empty(home))
    found = [*query.chosen(everything)]
    if not found:
        raise NothingFoundError(
            f"the decision log has no line{query.in_words()}",
            path=log_file(home),
            hint=_meant(query, everything, known),
        )
    return everything, found


def unreadable(home: Path, error: OSError) -> HermesExtError:
    """That the log is there and cannot be read."""
    told = error.strerror or type(error).__name__
    return HermesExtError(f"the decision log cannot be read: {told}", path=log_file(home))


def _why_empty(home: Path) -> str:
    off = note_on(home)
    if off is not None:
        return off
    return (
        f"there is no decision log yet ({printable(log_file(home))}): it begins with the first "
        "turn in which an extension is called"
    )


def _meant(query: Query, lines: list[Line], known: Callable[[], Iterable[str]]) -> str | None:
    """What was probably meant; nothing of other sessions in a chat."""
    if query.extension is not None:
        in_log = {name for line in lines for name in names_in(line)}
        if canonical_name(query.extension) not in in_log:
            # The log has names in their canonical form, which is told only of what is gone.
            there = {canonical_name(name): name for name in (*in_log, *known(), OWN)}
            names = sorted(there.values())
            if canonical_name(query.extension) not in there:
                return did_you_mean(query.extension, names) or f"Extensions: {', '.join(names)}"
            return "It is there, and has decided nothing yet"
    if query.chat is not None:
        return None
    for name, asked in (("session", query.session), ("turn", query.turn)):
        ids = {str(line[name]) for line in lines if name in line}
        if asked and not any(each.startswith(asked) for each in ids):
            return did_you_mean(asked, ids) or f"Its last {name} is {_last(lines, name)}"
    return None


def _last(lines: list[Line], name: str) -> str:
    return printable(next((str(line[name]) for line in reversed(lines) if name in line), "unknown"))


def installed_names(home: Path, cwd: Path | None) -> list[str]:
    """The names of all extensions that are found."""
    return [record.name for record in inventory(home, cwd).records]
