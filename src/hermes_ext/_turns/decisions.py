"""The decision log: who decided what and why, one JSON line per chain.

A line holds digests of what went in and came out, not the values, unless the level is `payloads`.
Nothing here costs the turn more than putting one event in a queue: a thread builds and writes the
lines. Nothing here raises to a turn: a full or read-only disk costs lines, which the next line that
can be written counts.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from attrs import field, frozen

_QUEUE_LIMIT: Final = 2_000
_IDLE_SECONDS: Final = 2.0
_TEXT_LIMIT: Final = 500


class LogLevel(StrEnum):
    """How much of a chain is written; each level has all of those before it."""

    OFF = "off"
    DECISIONS = "decisions"
    STEPS = "steps"
    PAYLOADS = "payloads"


Outcome: TypeAlias = Mapping[str, Any]
"""`ChainOutcome.to_json()`."""


@frozen
class DecisionEvent:
    """One chain that has run. Must not be changed afterwards: it is read when the line is built.

    Attributes:
        hook: the hook's name.
        before: the value that went in: text, `{"messages": …, "system_prompt": …}`, tool arguments
            or a tool's result.
        outcome: what came out, as a mapping or as a function that gives it (called off the turn).
            Known keys: action, value, changed, blocked_by, message, asks, approved, decided_by,
            metadata, steps, system_injections, user_injections, duration_ns; others are ignored.
        turn: the turn's id; None where there is none, as for the following.
        session: the session's id.
        conversation: the conversation's id.
        tool: the tool's name.
        tool_call_id: the id of the tool call.
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
    time: float = field(factory=time.time)


# -- canonical JSON -------------------------------------------------------------------------------


def canonical_digest(value: Any) -> str:
    """SHA-256, in hex, of a value's canonical JSON.

    Equal JSON values have equal digests, in every process and whatever the order of their keys.
    A value that is not JSON counts by its content where that is plain (bytes, sets, paths), else
    by its type's name alone. Never raises for a value that does not change meanwhile.
    """
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def canonical_json(value: Any) -> str:
    """One line of strict ASCII JSON: keys sorted, no spaces, every control character escaped.

    Tuples are written as lists, keys that are not text as text. What is no JSON (NaN too) becomes
    an object with the single key `$type` or `$<type>`.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        # Keys of several types, NaN, a cycle, or deeper than the C encoder goes. What both can
        # write comes out the same, so a digest does not depend on the depth of the stack.
        text = _slow_json(value)
    # The one control character that JSON lets stand.
    return text.replace("\x7f", "\\u007f")


def _stand_in(value: Any) -> dict[str, Any]:
    """What is written for a value that JSON does not have."""
    if isinstance(value, bytes | bytearray):
        return {"$bytes": value.hex()}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if isinstance(value, set | frozenset):
        return {"$set": sorted(canonical_json(item) for item in value)}
    kind = type(value)
    return {"$type": f"{kind.__module__}.{kind.__qualname__}"}


_encoder: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, default=_stand_in
)


def _slow_json(value: Any) -> str:
    """As `_encoder`, without recursion: a stack of what is to be written next."""
    written: list[str] = []
    open_ids: set[int] = set()
    stack: list[tuple[str, Any]] = [("value", value)]
    while stack:
        kind, item = stack.pop()
        if kind == "text":
            written.append(item)
        elif kind == "end":
            open_ids.discard(item)
        elif isinstance(item, list | tuple | dict):
            if id(item) in open_ids:
                written.append('{"$type":"cycle"}')
                continue
            open_ids.add(id(item))
            stack.append(("end", id(item)))
            stack.extend(reversed(_parts(item)))
        elif isinstance(text := _scalar(item), str):
            written.append(text)
        else:
            stack.append(("value", text))
    return "".join(written)


def _parts(item: Any) -> list[tuple[str, Any]]:
    parts: list[tuple[str, Any]] = []
    if not isinstance(item, dict):
        for value in item:
            parts += [("text", "," if parts else ""), ("value", value)]
        return [("text", "["), *parts, ("text", "]")]
    for key, value in _sorted_pairs(item):
        name = json.dumps(key if isinstance(key, str) else canonical_json(key))
        parts += [("text", f"{',' if parts else ''}{name}:"), ("value", value)]
    return [("text", "{"), *parts, ("text", "}")]


def _sorted_pairs(item: dict[Any, Any]) -> list[tuple[Any, Any]]:
    try:
        return sorted(item.items(), key=lambda pair: pair[0])
    except TypeError:
        return sorted(item.items(), key=lambda pair: canonical_json(pair[0]))


def _scalar(item: Any) -> Any:
    """The JSON of a value without members, or a container that stands for it."""
    try:
        if item is None or isinstance(item, str | int | float):
            return _encoder.encode(item)
    except ValueError:
        # NaN and infinities; an integer of more digits than Python turns into decimal.
        if isinstance(item, float):
            return {"$float": float.__repr__(item)}
        return {"$int": hex(item)}
    return _stand_in(item)


# -- one line -------------------------------------------------------------------------------------


_ASK_KEYS: Final = ("extension", "handler", "reason", "key")
_STEP_KEYS: Final = (
    "extension",
    "handler",
    "guard",
    "action",
    "changed",
    "observed",
    "skipped",
    "reason",
    "error",
    "mutated",
    "duration_ns",
)
_ERROR_KEYS: Final = ("kind", "message")
_PLACE_KEYS: Final = ("extension", "handler", "file", "line", "setting")


def build_line(event: DecisionEvent, level: LogLevel) -> dict[str, Any]:
    """What is logged for a chain, in the order in which it is written.

    Keys that have nothing to say are left out, except `time`, `hook`, `action` and `digests`.
    """
    outcome = event.outcome() if callable(event.outcome) else event.outcome
    payloads = level is LogLevel.PAYLOADS
    line: dict[str, Any] = {
        "time": _iso(event.time),
        "turn": event.turn,
        "session": event.session,
        "conversation": event.conversation,
        "hook": str(event.hook),
        "tool": event.tool,
        "tool_call_id": event.tool_call_id,
        "action": str(outcome.get("action", "pass")),
        "blocked_by": outcome.get("blocked_by"),
        "message": _short(outcome.get("message")),
        "decided_by": outcome.get("decided_by"),
        **_place(outcome),
        "changed": bool(outcome.get("changed")),
        "asks": [_only(ask, _ASK_KEYS, payloads) for ask in outcome.get("asks") or ()],
        "approved": bool(outcome.get("approved")) if outcome.get("asks") else None,
        "injections": _injections(outcome, payloads),
        **_values(event.before, outcome, payloads),
    }
    if level in (LogLevel.STEPS, LogLevel.PAYLOADS):
        steps = outcome.get("steps") or ()
        line["steps"] = [_only(step, _STEP_KEYS, payloads) for step in steps]
    if payloads:
        line["metadata"] = outcome.get("metadata")
    line["duration_ns"] = outcome.get("duration_ns")
    return {key: value for key, value in line.items() if value not in (None, [], {})}


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _short(text: Any) -> Any:
    if not isinstance(text, str) or len(text) <= _TEXT_LIMIT:
        return text
    return f"{text[:_TEXT_LIMIT]}… ({len(text)} characters)"


def _only(entry: Any, keys: tuple[str, ...], everything: bool) -> Any:
    """An ask or a step; without payloads only the keys that cannot hold one, texts cut short."""
    if not isinstance(entry, Mapping) or everything:
        return entry
    found = {key: _short(entry[key]) for key in keys if entry.get(key) is not None}
    if "error" in found:
        found["error"] = _only(found["error"], _ERROR_KEYS, everything)
    return found


def _place(outcome: Outcome) -> dict[str, Any]:
    """Which extension, handler, line or setting decided, where the chain's metadata says so."""
    metadata = outcome.get("metadata")
    if not isinstance(metadata, Mapping):
        return {}
    found = {key: metadata[key] for key in _PLACE_KEYS if key in metadata}
    return {key: _short(value) for key, value in found.items() if isinstance(value, str | int)}


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
    return {"digests": digests, "payloads": values} if payloads else {"digests": digests}


def _encoded(line: Mapping[str, Any]) -> bytes:
    # Value by value, so that time and hook come first and only what is inside is sorted.
    pairs = (f"{json.dumps(key)}:{canonical_json(value)}" for key, value in line.items())
    return b"{" + ",".join(pairs).encode("ascii") + b"}\n"


# -- the log --------------------------------------------------------------------------------------


class DecisionLog:
    """Appends decisions to a file, off the turn, from any number of threads and processes.

    The file is made by the first line, with mode 0600, its directory too. When it is full it
    becomes `<name>.1`, that one `<name>.2`, and the oldest goes. A line is written by one system
    call at the end of the file, so lines of two processes never mix. Events wait in a queue of
    at most `queue_limit`; when it is full the oldest are dropped, and a line
    `{"time": …, "dropped": n}` says how many. What waits is written when the process ends in an
    orderly way; `kill -9` and `os._exit` lose it unless `flush` was called.

    Args:
        path: the file.
        level: what is written: `off`, `decisions`, `steps` or `payloads`.
        max_bytes: size of one file; a single longer line still gets written.
        files: how many files there are at most, the current one among them; at least 1.
        queue_limit: how many events wait at most.
        notify: called with each new notice, from the writing thread.

    Attributes:
        notices: what the person should know, each text once: that lines cannot be written.

    Raises:
        ValueError: `level` is none of the four.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        level: LogLevel | str = LogLevel.DECISIONS,
        *,
        max_bytes: int = 5_000_000,
        files: int = 3,
        queue_limit: int = _QUEUE_LIMIT,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.level = LogLevel(level)
        self.notices: list[str] = []
        self._max_bytes = max_bytes
        self._files = files
        self._queue_limit = queue_limit
        self._notify = notify
        self._start_afresh()
        _logs[id(self)] = self

    def _start_afresh(self) -> None:
        """An empty queue and no thread: at first, and in a child after a fork.

        What waited in the parent is the parent's to write, and its locks may be held for ever here.
        """
        self._changed = threading.Condition()
        self._queue: deque[DecisionEvent] = deque()
        self._lost = 0
        self._busy = False
        self._writer: threading.Thread | None = None

    @property
    def on(self) -> bool:
        """Whether anything is written: False at level `off`."""
        return self.level is not LogLevel.OFF

    def write(self, event: DecisionEvent) -> None:
        """Put an event in the queue. Returns at once and never raises."""
        if self.level is LogLevel.OFF:
            return
        with self._changed:
            if len(self._queue) >= self._queue_limit:
                self._queue.popleft()
                self._lost += 1
            self._queue.append(event)
            if self._writer is None:
                self._start_writer()
            else:
                self._changed.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until every event put in so far is written, or given up on.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether nothing waits any more.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    # -- the writing thread -----------------------------------------------------------------

    def _start_writer(self) -> None:
        self._writer = threading.Thread(
            target=self._write_all, name="hermes-ext-decisions", daemon=True
        )
        try:
            self._writer.start()
        except RuntimeError:
            # The interpreter is ending and starts no more threads.
            self._writer = None
            while self._queue:
                self._deliver(self._queue.popleft())

    def _write_all(self) -> None:
        try:
            while (event := self._next()) is not None:
                self._deliver(event)
        finally:
            with self._changed:
                if self._writer is threading.current_thread():
                    self._writer = None
                    self._busy = False
                    self._changed.notify_all()

    def _next(self) -> DecisionEvent | None:
        """Wait for an event; None, and no writer any more, where none came for a while.

        A log that nobody uses so has no thread that would keep it alive.
        """
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: bool(self._queue), _IDLE_SECONDS):
                self._writer = None
                return None
            self._busy = True
            return self._queue.popleft()

    def _deliver(self, event: DecisionEvent) -> None:
        with self._changed:
            lost, self._lost = self._lost, 0
        line = self._line(event)
        try:
            if lost:
                self._append(_encoded({"time": _iso(time.time()), "dropped": lost}))
                lost = 0
            self._append(line)
        except OSError as error:
            with self._changed:
                self._lost += lost + 1
            self._say(
                f"{self.path}: the decision log cannot be written ({error}). The agent goes on; "
                "what cannot be written is dropped and counted. Make the file writable, or free "
                "space."
            )

    def _line(self, event: DecisionEvent) -> bytes:
        try:
            return _encoded(build_line(event, self.level))
        except Exception as error:  # noqa: BLE001  # values and outcome are the host's; one bad one costs one line
            kind = type(error).__name__
            failed = {"time": _iso(event.time), "turn": event.turn, "hook": str(event.hook)}
            return _encoded({**failed, "error": f"the line could not be built: {kind}"})

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)
            if self._notify is not None:
                self._notify(notice)

    # -- the file ---------------------------------------------------------------------------

    def _append(self, line: bytes) -> None:
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if size and size + len(line) > self._max_bytes:
                self._rotate(size)
                os.close(descriptor)
                descriptor = self._open()
                size = os.fstat(descriptor).st_size
            if size and _last_byte(descriptor) != b"\n":
                # A writer was killed, or the disk filled up, in the middle of a line.
                line = b"\n" + line
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        # For each line: another process may have rotated the file.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def _rotate(self, size: int) -> None:
        from filelock import FileLock

        # A log that is too long is better than none: where it cannot be rotated it grows.
        with suppress(OSError), FileLock(f"{self.path}.lock", timeout=1, mode=0o600):
            if os.stat(self.path).st_size < size:
                return  # Another process has just done it.
            names = [self.path, *(_rotated(self.path, n) for n in range(1, self._files))]
            for newer, older in reversed(list(pairwise(names))):
                with suppress(FileNotFoundError):
                    os.replace(newer, older)
            if self._files == 1:
                os.unlink(self.path)


def _last_byte(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1)


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


_logs: WeakValueDictionary[int, DecisionLog] = WeakValueDictionary()


def _open_logs() -> list[DecisionLog]:
    # valuerefs() copies in one step; iterating fails when another thread makes a log meanwhile.
    return [log for ref in _logs.valuerefs() if (log := ref()) is not None]


def _after_fork() -> None:
    for log in _open_logs():
        log._start_afresh()


def _flush_all() -> None:
    deadline = time.monotonic() + 2.0
    for log in _open_logs():
        log.flush(max(0.0, deadline - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_flush_all)


# -- reading --------------------------------------------------------------------------------------


def read_decisions(
    path: str | os.PathLike[str], last: int | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of a decision log, oldest first, across its rotated files.

    Lines that are torn or no JSON object are left out. A log that does not exist has none.

    Args:
        path: the current file.
        last: only the newest so many; None gives all.

    Raises:
        OSError: a file is there and cannot be read.
    """
    newest_first: list[list[dict[str, Any]]] = []
    missing = last
    for content in _newest_first(Path(path)):
        if missing is not None and missing <= 0:
            break
        lines = [line for raw in content.split(b"\n") if (line := _parsed(raw)) is not None]
        newest_first.append(lines if missing is None else lines[-missing:])
        missing = None if missing is None else missing - len(newest_first[-1])
    for lines in reversed(newest_first):
        yield from lines


def _newest_first(path: Path) -> Iterator[bytes]:
    """The content of each file once, also when they are rotated while this reads."""
    seen: set[tuple[int, int]] = set()
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)")
    found = [pattern.fullmatch(name) for name in _names_in(path.parent)]
    numbers = sorted(int(match[1]) for match in found if match)
    # One more than there are: the current file may become number 1 in between.
    for candidate in [path, *(_rotated(path, n) for n in [*numbers, (numbers or [0])[-1] + 1])]:
        try:
            with open(candidate, "rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                yield file.read()
        except (FileNotFoundError, IsADirectoryError):
            continue


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None
