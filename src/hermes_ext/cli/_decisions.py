"""The decision log, as it is asked for: where it is, which of its lines are meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hermes_ext._problems import did_you_mean
from hermes_ext._redaction import redacted
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import frozen
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.source import OWN

Line = Mapping[str, Any]

SHOWN: Final = 20  # lines, where nobody says how many
_TEXTS: Final = frozenset(
    {"time", "turn", "session", "conversation", "cwd", "hook", "tool", "tool_call_id", "action",
     "blocked_by", "message", "decided_by", "extension", "handler", "file", "failure", "reason",
     "kind", "call", "argument", "from", "to", "added", "key", "network", "kept_by", "path",
     "why"}
)  # fmt: skip
_NUMBERS: Final = frozenset({"line", "removed", "more", "too_long"})
_ENTRIES: Final = frozenset({"by", "steps", "asks", "confines", "change", "settings", "left_out"})
_NAMES: Final = frozenset({"setting", "missing", "writable"})
_MAPPINGS: Final = frozenset({"confined", "bounds", "error"})
_FILTERS: Final = ("session", "turn", "hook", "extension", "action")
_MOST_IDS: Final = 5_000  # sessions or turns that a hint chooses from
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
        return dict(redacted(kept))

    def chosen(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Those of the lines that are meant, however many; not for a chat."""
        return filter(self._is_meant, lines)

    def begun_in(self, lines: Iterable[Line]) -> Mapping[Any, int]:
        """Of each conversation of the chat, the number of its session's first line.

        lines: all of the log, the newest first, as their numbers are counted.
        """
        if self.chat is None:
            return {}
        return {
            sound(line).get("conversation"): number
            for number, line in enumerate(lines)
            if line.get("session") == self.chat
        }

    def wants(self, line: Line, number: int, begun: Mapping[Any, int]) -> bool:
        """Whether a line is meant. begun: as `begun_in` gave it."""
        # Of a subagent, which has the chat's conversation; what was before it is not its own.
        is_own = self.chat is None or line.get("session") == self.chat
        return (is_own or number <= begun.get(line.get("conversation", ""), -1)) and (
            self._is_meant(line)
        )

    def numbers(self, lines: Iterable[Line]) -> list[int]:
        """The places of those of the lines that are meant, in a log that is no chat's."""
        return [number for number, line in enumerate(lines) if self._is_meant(line)]

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
        asked = [(name, getattr(self, name)) for name in _FILTERS]
        told = [f"{name} {printable(value)}" for name, value in asked if value]
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
        found = value if isinstance(value, list) else []
        return [sound(each) for each in found if isinstance(each, Mapping)]
    if key in _MAPPINGS:
        told = value and str(value) if key == "error" else None
        return sound(value) if isinstance(value, Mapping) else told
    if key in _NAMES:
        names = value if isinstance(value, list) else [value]
        return [each for each in names if isinstance(each, str)]
    if key in _NUMBERS:
        return value if type(value) is int and value > 0 else None
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
    found = [line.get("extension"), line.get("blocked_by"), *(line.get("missing") or ())]
    found += [each.get("extension") for each in entries(line, "by", "steps", "asks", "confines")]
    return {canonical_name(str(name)) for name in found if name}


def actions_in(line: Line) -> set[str]:
    """The chain's action, `ask` where a person was asked, `confine` where somebody confines, and
    `error` where a handler failed.
    """
    found = {str(line.get("action"))}
    found |= {action for action, key in _WANTED if line.get(key)}
    if line.get("failure") or any("error" in each for each in entries(line, "by", "steps")):
        found.add("error")
    return found


_WANTED: Final = (("ask", "asks"), ("confine", "confines"))


def entries(line: Line, *keys: str) -> Iterator[Line]:
    """What a line has in lists under these keys."""
    found = (each for key in keys for each in line.get(key) or ())
    return (each for each in found if isinstance(each, Mapping))


def log_file(home: Path) -> Path:
    return home / "logs" / "extensions.jsonl"


def note_on(home: Path) -> str | None:
    """That the log is off, and how to turn it on; None where it is on."""
    from hermes_ext.settings.config import read_config

    config = read_config(home)
    if config.log != _OFF:
        return None
    line = config.line_of("log")
    where = printable(config.file) + (f":{line}" if line else "")
    return (
        f"The decision log is off: extensions.log is {_OFF} in {where}. "
        'Set it to "decisions"; it takes effect on the next turn'
    )


def newest_first(home: Path, query: Query) -> Iterator[Line]:
    """The lines that are meant, the newest first, however large the log is.

    Raises:
        NothingFoundError: it is asked for a chat whose session is not known.
        HermesExtError: the log cannot be read.
    """
    if query.chat == "":
        raise NothingFoundError(
            "the session of this chat is not known here, and others' decisions are not shown",
            hint="In a terminal: hermes extensions log",
        )
    from hermes_ext.turns.decisions.reading import LogFiles

    try:
        with LogFiles(log_file(home)) as files:
            begun = query.begun_in(files.newest_first())
            for number, raw in enumerate(files.newest_first()):
                if isinstance(raw.get("time"), str):
                    line = sound(raw)
                    if query.wants(line, number, begun):
                        yield line
    except OSError as error:
        raise unreadable(home, error) from error


def nothing_found(home: Path, query: Query, known: Callable[[], Iterable[str]]) -> HermesExtError:
    """Why no line of the log is meant, as far as that is known.

    known: the names of extensions that there are, for one that the log does not know.
    """
    there = False
    names: set[str] = set()
    ids: dict[str, dict[str, None]] = {"session": {}, "turn": {}}  # the newest first
    for line in newest_first(home, Query()):
        there = True
        names |= names_in(line)
        for name, seen in ids.items():
            if name in line and len(seen) < _MOST_IDS:
                seen[str(line[name])] = None
    if not there:
        return NothingFoundError(
            note_on(home)
            or f"there is no decision log yet ({printable(log_file(home))}): it begins with the "
            "first turn in which an extension is called"
        )
    return NothingFoundError(
        f"the decision log has no lines{query.in_words()}",
        path=log_file(home),
        hint=_meant(query, names, ids, known),
    )


def unreadable(home: Path, error: OSError) -> HermesExtError:
    """That the log is there and cannot be read."""
    told = error.strerror or type(error).__name__
    return HermesExtError(f"the decision log cannot be read: {told}", path=log_file(home))


def _meant(
    query: Query,
    seen: Iterable[str],
    ids: Mapping[str, Mapping[str, None]],
    known: Callable[[], Iterable[str]],
) -> str | None:
    """What was probably meant; nothing of other sessions in a chat. seen: names in the log."""
    if query.extension is not None and canonical_name(query.extension) not in seen:
        # The log has names in their canonical form, which is told only of what is gone.
        there = {canonical_name(name): name for name in (*seen, *known(), OWN)}
        names = sorted(there.values())
        if canonical_name(query.extension) not in there:
            return did_you_mean(query.extension, names) or f"Extensions: {', '.join(names)}"
        return "It is there, and has decided nothing yet"
    if query.chat is not None:
        return None
    for name, asked in (("session", query.session), ("turn", query.turn)):
        if asked and not any(each.startswith(asked) for each in ids[name]):
            last = printable(next(iter(ids[name]), "unknown"))
            return did_you_mean(asked, ids[name]) or f"Its last {name} is {last}"
    return None


def installed_names(home: Path, cwd: Path | None) -> list[str]:
    from hermes_ext.loading.inventory import inventory

    return [record.name for record in inventory(home, cwd).records]
