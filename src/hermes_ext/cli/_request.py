"""What a command is asked, and what it comes to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hermes_ext._prog import Prog
from hermes_ext._text import printable
from hermes_ext._values import field, frozen
from hermes_ext.cli._decisions import Query
from hermes_ext.exceptions import HermesExtError

if TYPE_CHECKING:
    from hermes_ext.loading.finding.projects import ProjectStack
    from hermes_ext.rules import Rules
    from hermes_ext.settings.config import ExtensionsConfig
    from hermes_ext.trust.store import Verdict

Look = Literal["diff", "digest", "list"]


class UsageError(HermesExtError):
    """The command line cannot be right."""


@frozen
class Request:
    """What was asked. cwd: None where there is no directory. prog: what the user calls.

    live: what this process has loaded, if that is to be shown. not_taken: as its runtime says.
    path: as it was typed, None where it was left out. look: only this of `trust`, and nothing is
    recorded. full: nothing is cut. ask: shows the person what is to be trusted and asks; None where
    nobody is to be asked. query: which lines of the decision log. emit: takes lines that are still
    to come, one by one. expect: the only digest that may be trusted, None for any. unseen: a person
    is there who has seen nothing yet and cannot be asked. hooks, guard: of a new extension.
    project: it is the project's. event, last, chain: what an extension is tried on, and whether
    with all the others. config: another config.yaml. limit: of the newest so many events, 0 for
    all. deadline: in seconds, None for what is usual. canary: the hooks are tried in the real
    Hermes. ci: it is for a pipeline. junit: the file that gets JUnit XML. every: `list` shows
    hidden files too. sentinel: `install` writes the sentinel.
    """

    home: Path
    cwd: Path | None
    prog: Prog
    name: str = ""
    hook: str | None = None
    order: str | None = None
    every: bool = False
    sentinel: bool = False
    load: bool = False
    deadline: float | None = None
    canary: bool = False
    ci: bool = False
    junit: Path | None = None
    live: Rules | None = None
    not_taken: str | None = None
    path: Path | None = None
    look: Look | None = None
    full: bool = False
    ask: Callable[[Mapping[str, Any]], bool] | None = None
    unseen: bool = False
    hooks: tuple[str, ...] = ()
    guard: bool = False
    project: bool = False
    event: Path | None = None
    last: bool = False
    chain: bool = False
    config: Path | None = None
    limit: int = 0
    expect: str | None = None
    query: Query = field(factory=Query)
    emit: Callable[[Mapping[str, Any]], None] | None = None

    def directory(self) -> Path:
        """The folder that is meant: the one that was named, else the working directory."""
        if self.path is not None:
            return self.path
        if self.cwd is None:
            raise UsageError("the working directory is no longer there", hint="Name a PATH")
        return self.cwd


@frozen
class Result:
    """exit_code: 0, 1 (something wrong was found) or 2 (usage). payload: what `--json` prints."""

    exit_code: int
    payload: dict[str, Any]


def not_in_force(request: Request, config: ExtensionsConfig | None = None) -> str | None:
    """Why extensions of this home, or hooks of theirs, are not in force in Hermes; None without
    Hermes here, since another host may be the one that runs them.
    """
    from hermes_ext.hosts.hermes.facts.host_package import is_here
    from hermes_ext.hosts.hermes.home.installing import plugin_off, plugins_unreadable
    from hermes_ext.hosts.hermes.home.lost_hooks import lost_hooks

    if not is_here():
        return None
    off = plugin_off(request.home, config)
    if off is None:
        return plugins_unreadable() or "; ".join(lost_hooks(request.home)) or None
    return f"{off}; run {request.prog('install')}" if off.hint is None else str(off)


def projects_of(stack: ProjectStack) -> dict[str, Any]:
    """The projects that were found, as `--json` prints them: the nearest, and all."""
    nearest = stack.nearest
    return {
        "project": None if nearest is None else _project(nearest),
        "projects": [*map(_project, stack.all)],
    }


def _project(verdict: Verdict) -> dict[str, Any]:
    return {
        "root": printable(verdict.project.root),
        "folder": printable(verdict.project.folder),
        "standing": str(verdict.standing),
        "reason": verdict.reason,
        "names": [*verdict.names],
        "digest": None if verdict.tree is None else verdict.tree.digest,
        "pinned": verdict.pinned,
        "changed": [*map(printable, verdict.changed)],
    }


def error_payload(error: HermesExtError) -> dict[str, Any]:
    return {
        "error": printable(str(error)),
        "file": None if error.path is None else printable(error.path),
        "line": error.line,
        "key": error.key,
        "hint": error.hint,
    }


def usage_error(prog: str, message: str, usage: str) -> str:
    """That the command line is wrong, as the one JSON value on stdout."""
    wrong = HermesExtError(message, hint=usage)
    payload = error_payload(wrong) | {"error": printable(f"{prog}: {message}")}
    return json.dumps(payload, indent=2) + "\n"
