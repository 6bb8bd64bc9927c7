"""`test`: runs an extension's handlers on events, without a model and without a tool."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._decisions import NothingFoundError, log_file
from hermes_ext.cli._loading import Loading, run_in_child
from hermes_ext.cli._options import LOAD_SECONDS, add
from hermes_ext.cli._request import Request, Result
from hermes_ext.cli._settings import settings_of
from hermes_ext.cli._streams import regular
from hermes_ext.cli._trying_pages import test as page
from hermes_ext.cli._values import hook
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import found_at
from hermes_ext.loading.finding.projects import verdict_of
from hermes_ext.loading.inventory import Inventory, inventory
from hermes_ext.loading.switches import UnknownExtensionError, named, unknown_extension
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.trust.place import EXTENSIONS, HERMES, find_project
from hermes_ext.trust.store import Standing, Verdict
from hermes_ext.turns.decisions.reading import LogFiles

__all__ = ["arguments", "came_of", "check_readable", "how_to_record", "page", "work"]

_HOW_TO_RECORD: Final = (
    "Put `log: payloads` into the section extensions of {file}: from the next turn on the log has "
    "what is needed to run events again"
)


class ChildError(HermesExtError):
    """The child process did not come to an end."""


def arguments(command: ArgumentParser) -> None:
    add(command, "NAME", "its name, or the path of its folder or file")
    events = command.add_mutually_exclusive_group()
    told = "on the events of a JSON or YAML file instead of samples; - is standard input"
    add(events, "--event FILE", told, type=Path)
    add(events, "--last", "on the newest event of the decision log that it is called for")
    add(command, "--hook HOOK", "only its handlers for this hook", type=hook)
    add(command, "--chain", "as part of the whole chain, with everything else that is on")
    _options.deadline(command)


def work(request: Request) -> Result:
    from hermes_ext.replay.events import LONGEST_RECORDED, of_file

    if request.event is None:
        return _test(request)
    with regular(request.event, LONGEST_RECORDED) as given:
        of_file(given.file, given.shown)  # says what is wrong with it
        return _test(evolve(request, event=given.file))


def _test(request: Request) -> Result:
    seen = inventory(request.home, request.cwd)
    name, path, cwd = _which(request, seen)
    if request.last:
        check_readable(log_file(request.home), log_file(request.home))
    told = _tried(request, name, path, cwd)
    record = told["extension"]
    if record is None:
        raise UnknownExtensionError(f'"{printable(name)}" is gone')
    if request.last and not told["events"] and record["loaded"]:
        raise NothingFoundError(
            f"the decision log has no events with payloads that {record['name']} is called for",
            path=log_file(request.home),
            hint=how_to_record(request),
        )
    payload = {
        "home": printable(request.home),
        "chain": request.chain,
        "settings": _settings(seen, record, path),
        **told,
        "events": [redacted(each) for each in told["events"]],
    }
    fine = record["loaded"] and not told["failed"]
    return Result(0 if fine else 1, payload)


def _tried(request: Request, name: str, path: Path | None, cwd: Path | None) -> dict[str, Any]:
    asked = {
        "name": name,
        "path": None if path is None else str(path),
        "hook": request.hook,
        "chain": request.chain,
        "last": request.last,
        "event": None if request.event is None else str(request.event),
    }
    seconds = request.deadline or LOAD_SECONDS
    doing = f"Running {printable(name)}"
    return came_of(run_in_child("test", request.home, cwd, seconds, asked, doing))


def came_of(loading: Loading) -> dict[str, Any]:
    """What the child wrote; raises ChildError where it did not come to an end."""
    if loading.failure is None:
        return loading.data
    slow = "was stopped after" in loading.failure
    hint = "--deadline SECONDS gives it more time" if slow else None
    raise ChildError(loading.failure, extension=loading.culprit, hint=hint)


def _which(request: Request, seen: Inventory) -> tuple[str, Path | None, Path | None]:
    """The name, the place where it was named by one, and the directory to try it in."""
    name = request.name
    records = [each for each in named(seen, name) if each.source is not None]
    is_path = os.sep in name or name in {".", ".."} or name.endswith(".py")
    if not is_path and records:
        record = records[0]
        if record.status is Status.UNTRUSTED:
            raise _untrusted(record.name, record.reason, request)
        return record.name, None, request.cwd
    path = Path(name).expanduser().absolute()
    if not is_path and not path.exists():
        raise unknown_extension(seen, name)
    path = Path(os.path.normpath(path.parent if path.name == "__init__.py" else path))
    if not path.exists():
        raise UnknownExtensionError(f"there is nothing at {printable(path)}")
    verdict = _project_of(path, request, seen)
    if verdict is not None:
        if verdict.standing is not Standing.TRUSTED:
            raise _untrusted(path.stem, verdict.reason, request)
        return path.stem, None, verdict.project.root
    found = _found(path, request.home)
    return found.name, path, request.cwd


def _project_of(path: Path, request: Request, seen: Inventory) -> Verdict | None:
    """What is thought of the project whose `.hermes` a path lies in; None where it lies in none.

    Of that project and no other: one further up may be trusted, and says nothing about this code.
    """
    places = (path, Path(os.path.realpath(path)))
    for place, folder in ((each, above) for each in places for above in each.parents):
        if folder.name == HERMES and place.is_relative_to(folder / EXTENSIONS):
            project = find_project(
                folder.parent, home=request.home, global_dir=seen.config.global_dir
            )
            return None if project is None else verdict_of(project, seen.config, request.home)
    return None


def _found(path: Path, home: Path) -> Candidate:
    try:
        found = found_at(path, home)
    except OSError as error:
        raise UnknownExtensionError(f"{printable(path)}: {error.strerror or error}") from None
    if found is None or found.status is Status.NOT_AN_EXTENSION:
        raise UnknownExtensionError(
            f"{printable(path)} is not an extension",
            hint="An extension is a folder with an __init__.py, or a single file NAME.py",
        )
    return found


def _untrusted(name: str, reason: str, request: Request) -> HermesExtError:
    return HermesExtError(
        f"{printable(name)} is a project's, and not trusted: {reason}. None of it is run",
        hint=f"To look at it and decide: {request.prog('trust')}",
    )


def _settings(seen: Inventory, record: Mapping[str, Any], path: Path | None) -> list[Any]:
    """As they were given to it; of one that was named by its place, those that its name has."""
    if path is None:
        those = [(each, seen.found_of(each)) for each in named(seen, record["name"])[:1]]
    else:
        own = ExtensionRecord(record["name"], Source.GLOBAL, Status.ENABLED, "", path=path)
        those = [(own, found_at(path, seen.config.file.parent))]
    return [row for each in those for row in settings_of(*each, seen)["settings"]]


def how_to_record(request: Request) -> str:
    """What to do so that the log has events that can be run again."""
    return _HOW_TO_RECORD.format(file=printable(request.home / "config.yaml"))


def check_readable(log: Path, shown: Path) -> None:
    """Before a child reads it, whose end would be blamed on an extension."""
    try:
        LogFiles(log).close()
    except OSError as error:
        told = error.strerror or type(error).__name__
        raise HermesExtError(f"the decision log cannot be read: {told}", path=shown) from error
