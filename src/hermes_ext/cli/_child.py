"""The child process of `list --load`, `doctor`, `test` and `replay`: loads extensions, examines or
runs them, writes the result to a file.

Its request is JSON on stdin. Its stdout is the parent's stderr.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve

from hermes_ext._prog import Prog
from hermes_ext._text import canonical_name, printable
from hermes_ext.cli._decisions import Query, log_file
from hermes_ext.doctor import examine, in_order, is_broken
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey, host_commands, survey
from hermes_ext.hosts.hermes.checks import host_findings, taken_command
from hermes_ext.loading.directories import own_guards
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import discover, found_at
from hermes_ext.loading.loader import load
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.names import HOOKS

if TYPE_CHECKING:
    from hermes_ext.replay.events import Recorded


def main() -> None:
    """Runs the part that the first argument names, then leaves without waiting for anything."""
    request = json.load(sys.stdin)
    data = _PARTS[sys.argv[1]](request)
    Path(request["result"]).write_text(json.dumps(data, default=str), encoding="ascii")
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that an extension or the host left behind must not keep the process alive.
    os._exit(0)


def _load(request: dict[str, Any]) -> dict[str, Any]:
    home, cwd = _places(request)
    trail = Path(request["trail"])
    _leave_trail(home, cwd, trail)
    loaded = load(home, cwd, everything=True, import_seconds=request["import_seconds"])
    trail.unlink(missing_ok=True)
    seen, prog = Survey(**(request["host"] or {})), Prog(*request["prog"])
    findings = in_order(
        (
            *examine(home, cwd, loaded, host_tools=seen.tools, ci=request["ci"], prog=prog),
            *host_findings(home, loaded, seen, prog),
        )
    )
    return {
        "extensions": [record.to_json() for record in _with_taken(loaded.records)],
        "problems": [problem.to_json() for problem in loaded.problems],
        "refusal": loaded.refusal,
        "broken": [record.name for record in loaded.records if is_broken(record, loaded.config)],
        "checked": sum(record.status is not Status.MISSING for record in loaded.records),
        "orders": _orders((*loaded.handlers, *own_guards(loaded))),
        "findings": [finding.to_json() for finding in findings],
    }


def _with_taken(records: Iterable[ExtensionRecord]) -> Iterator[ExtensionRecord]:
    """The records, with a warning for each slash command that the host itself has."""
    taken: frozenset[str] | None = None
    for record in records:
        if record.commands and taken is None:
            taken = frozenset(host_commands())
        told = (taken_command(each.name) for each in record.commands if each.name in (taken or ()))
        yield evolve(record, warnings=(*record.warnings, *told))


def _orders(handlers: Any) -> dict[str, Any]:
    from hermes_ext.chain.manager import HookManager

    manager = HookManager(handlers)
    orders: dict[str, Any] = {}
    for hook in HOOKS:
        try:
            orders[hook] = [asdict(row) for row in manager.order(hook)]
        except HermesExtError as error:
            orders[hook] = [{"error": str(error)}]
    return orders


def _leave_trail(home: Path, cwd: Path | None, trail: Path, more: Iterable[Candidate] = ()) -> None:
    """Writes down which extension's file is about to run, for when the process does not survive."""
    found = (*discover(read_config(home), home=home, cwd=cwd).found, *more)
    roots = {str(each.path): each.name for each in found if each.path is not None}

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "exec" or not hasattr(arguments[0], "co_filename"):
            return
        file = arguments[0].co_filename
        for root, name in roots.items():
            if file == root or file.startswith(root + os.sep):
                last = {"extension": name, "file": printable(file)}
                trail.write_text(json.dumps(last), encoding="ascii")

    sys.addaudithook(watch)


def _test(request: dict[str, Any]) -> dict[str, Any]:
    from hermes_ext.replay.trying import attempt

    home, cwd = _places(request)
    config = read_config(home)
    found, events = _found(request, config, home), _events(request, home)
    _leave_trail(home, cwd, Path(request["trail"]), found)
    _quietly()
    return attempt(
        request["name"],
        found,
        events,
        hook=request["hook"],
        chain=request["chain"],
        last=request["last"],
        samples=request["event"] is None,
        home=home,
        cwd=cwd,
        config=config,
        import_seconds=request["import_seconds"],
        progress=_telling(Path(request["progress"])),
    )


def _found(request: Mapping[str, Any], config: ExtensionsConfig, home: Path) -> list[Candidate]:
    """What is to be loaded beside the project's own: the one that is tried, or all with it."""
    found = [*discover(config, home=home).found]
    name = canonical_name(request["name"])
    if request["path"] is not None:
        tried = found_at(Path(request["path"]), home)
        found = [each for each in found if canonical_name(each.name) != name]
        found += [] if tried is None else [tried]
    if request["chain"]:
        return found
    return [each for each in found if canonical_name(each.name) == name]


def _events(request: Mapping[str, Any], home: Path) -> Iterable[Recorded]:
    from hermes_ext.replay.events import of_file, samples

    if request["event"] is not None:
        return [*of_file(Path(request["event"]))]
    return _recorded(home) if request["last"] else [*samples()]


def _recorded(home: Path) -> Iterator[Recorded]:
    from hermes_ext.replay.events import LONGEST_RECORDED, NotReplayableError, of_line
    from hermes_ext.turns.decisions.reading import LogFiles

    with LogFiles(log_file(home), LONGEST_RECORDED) as files:
        for line in files.oldest_first():
            with contextlib.suppress(NotReplayableError):
                yield of_line(line)


def _replay(request: dict[str, Any]) -> dict[str, Any]:
    from hermes_ext.replay.events import LONGEST_RECORDED
    from hermes_ext.replay.replaying import replay
    from hermes_ext.turns.decisions.reading import LogFiles, LogLines

    home, cwd = _places(request)
    file = None if request["config"] is None else Path(request["config"])
    with LogFiles(request["log"], LONGEST_RECORDED) as files:
        lines = LogLines(files)
        numbers = Query(**request["query"]).numbers(lines)
        newest = numbers[-request["limit"] :] if request["limit"] else numbers
        _leave_trail(home, cwd, Path(request["trail"]))
        _quietly()
        return replay(
            lines,
            frozenset(newest),
            extension=request["extension"],
            home=home,
            cwd=cwd,
            config=read_config(home, file),
            import_seconds=request["import_seconds"],
            prog=Prog(*request["prog"]).name,
            progress=_telling(Path(request["progress"])),
        )


def _places(request: Mapping[str, Any]) -> tuple[Path, Path | None]:
    return Path(request["home"]), None if request["cwd"] is None else Path(request["cwd"])


def _telling(file: Path) -> Callable[[int, int, str], None]:
    """Writes down which event is about to run, so that one that never ends has a name."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)

    def tell(number: int, events: int, label: str) -> None:
        told = json.dumps([number, events, printable(label)]).encode().ljust(400)
        os.pwrite(descriptor, told, 0)

    return tell


def _quietly() -> None:
    """What goes wrong with handlers is in the result; it is not to be on stderr too."""
    logger = logging.getLogger("hermes_ext")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


_PARTS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "load": _load,
    "host": lambda _: survey().to_json(),
    "test": _test,
    "replay": _replay,
}


if __name__ == "__main__":
    main()
