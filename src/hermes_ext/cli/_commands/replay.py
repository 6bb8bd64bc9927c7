"""`replay`: runs recorded events through the extensions of today."""

from __future__ import annotations

from argparse import ArgumentParser
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Final

from attrs import asdict

from hermes_ext._problems import did_you_mean
from hermes_ext._redaction import redacted
from hermes_ext._text import is_same_name, printable
from hermes_ext.cli import _options
from hermes_ext.cli._commands.test import came_of, check_readable, how_to_record
from hermes_ext.cli._decisions import NothingFoundError, installed_names, log_file
from hermes_ext.cli._loading import REPLAY_SECONDS, run_in_child
from hermes_ext.cli._options import add
from hermes_ext.cli._request import Request, Result, UsageError
from hermes_ext.cli._streams import regular
from hermes_ext.cli._trying_pages import replay as page
from hermes_ext.cli._values import at_least_one
from hermes_ext.exceptions import HermesExtError
from hermes_ext.loading.switches import UnknownExtensionError

__all__ = ["arguments", "page", "work"]

_LARGEST_LOG: Final = 1_000_000_000  # bytes of a log that comes through a pipe


def arguments(command: ArgumentParser) -> None:
    told = "a decision log with payloads (default: the Hermes home's); - is standard input"
    add(command, "LOG", told, type=Path, nargs="?", dest="path")
    told = "take the settings from this file instead of the home's config.yaml"
    add(command, "--config FILE", told, type=Path)
    add(command, "--turn ID", "only of this turn; its begin is enough", dest="query_turn")
    add(command, "--limit N", "only the newest N (default: all)", type=at_least_one, default=0)
    _options.filters(command, actions=False)
    _options.deadline(command, REPLAY_SECONDS)


def work(request: Request) -> Result:
    """Runs the recorded events through today's extensions and tells what changed."""
    if request.path is None:
        log = log_file(request.home)
        return _replay(request, log, log)
    with regular(request.path, _LARGEST_LOG) as given:
        if given.file != given.shown and given.file.stat().st_size > _LARGEST_LOG:
            told = f"the log is larger than {_LARGEST_LOG:,} bytes"
            raise HermesExtError(told, path=given.shown, hint="Save it as a file and name that")
        return _replay(request, given.file, given.shown)


def _replay(request: Request, log: Path, shown: Path) -> Result:
    check_readable(log, shown)
    if not log.is_file() and not log.with_name(f"{log.name}.1").is_file():
        raise NothingFoundError("there is no decision log", path=shown, hint=how_to_record(request))
    _check_encoding(log, shown)
    if request.config is not None and not request.config.is_file():
        raise UsageError("there is no such file", path=request.config, hint="--config takes one")
    query = request.query
    _check_extension(request)
    asked = {
        "log": str(log),
        "config": None if request.config is None else str(request.config.absolute()),
        "query": asdict(query) | {"extension": None, "chat": None},
        "extension": query.extension,
        "limit": request.limit,
        "prog": [request.prog.name, request.prog.home],
    }
    doing = f"Replaying {printable(shown)}"
    seconds = request.deadline or REPLAY_SECONDS
    told = came_of(run_in_child("replay", request.home, request.cwd, seconds, asked, doing))
    if not told["lines"]:
        raise NothingFoundError(f"the decision log has no lines{query.in_words()}", path=shown)
    if not told["compared"] and told["not_replayable"] and not query.extension:
        first = told["not_replayable"][0]
        raise NothingFoundError(
            f"none of {told['lines']:,} lines can be replayed: {first['reason']}",
            path=shown,
            hint=how_to_record(request) if first["without_payloads"] else None,
        )
    too_old = any(each["without_payloads"] for each in told["not_replayable"])
    payload = {
        "file": printable(shown),
        "config": printable(request.config or request.home / "config.yaml"),
        **told,
        "note": how_to_record(request) if too_old else None,
        "changed": [redacted(each) for each in told["changed"]],
    }
    return Result(1 if told["changed"] else 0, payload)


def _check_encoding(log: Path, shown: Path) -> None:
    """A copy that a shell made may be in another encoding, in which no line of it can be read."""
    if not log.is_file():  # only its rotated files are there
        return
    with log.open("rb") as file:
        begin = file.read(2)
    if begin in (BOM_UTF16_LE, BOM_UTF16_BE):
        raise HermesExtError(
            "the decision log is UTF-16, expected UTF-8", path=shown, hint="Save it as UTF-8"
        )


def _check_extension(request: Request) -> None:
    """A name that is mistyped would find that nothing changed."""
    asked = request.query.extension
    if asked is None:
        return
    names = [*installed_names(request.home, request.cwd), "hermes-ext"]
    if not any(is_same_name(asked, each) for each in names):
        raise UnknownExtensionError(
            f'there is no extension "{printable(asked)}"',
            hint=did_you_mean(asked, names) or f"Installed: {', '.join(sorted(names))}",
        )
