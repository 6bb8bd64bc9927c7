"""`new`: an extension to begin with."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
import unicodedata
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hermes_ext._text import canonical_name, printable
from hermes_ext.cli._options import add
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import in_force
from hermes_ext.cli._request import Request, Result, UsageError, not_in_force
from hermes_ext.cli._values import hook
from hermes_ext.exceptions import ConfigError, HermesExtError
from hermes_ext.loading.finding.discovery import bundled_dir
from hermes_ext.scaffold import DEFAULT_HOOK, extension_files, write_extension
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.names import name_fault
from hermes_ext.trust.place import Project, find_project, project_of, real_path, refusal

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_LONGEST: Final = 64


def arguments(command: ArgumentParser) -> None:
    add(command, "NAME", "what it is to be called: a-z, 0-9, - and _")
    told = "a hook that it has a handler for; may be given more than once"
    told += " (default: intercept_tool_call, as a guard)"
    add(command, "--hook HOOK", told, type=hook, dest="hooks", action="append")
    told = "its handlers are guards: they see the final value, and may only refuse"
    add(command, "--guard", told)
    where = command.add_mutually_exclusive_group()
    add(where, "--project", "for this project only: into its .hermes/extensions")
    told = "for all your work: into the Hermes home (the default)"
    add(where, "--global", told, action="store_false", dest="project")


def work(request: Request) -> Result:
    """Writes a new extension into the user's or the project's folder."""
    name = request.name
    fault = _fault(name)
    if fault is not None:
        raise UsageError(f'no extension can be called "{name}": {fault}', hint=_hint(name))
    config = read_config(request.home)
    if not config.readable:
        told = "; ".join(map(str, config.problems))
        raise ConfigError(f"the configuration cannot be read: {told}")
    root = _project(request, config).extensions if request.project else config.global_dir
    # A handler that judges tool calls is a guard unless another hook was chosen.
    hooks = tuple(dict.fromkeys(request.hooks)) or (DEFAULT_HOOK,)
    guard = request.guard or not request.hooks
    files = extension_files(name, hooks, guard=guard)
    folder = write_extension(root, name, files)
    payload = {
        "name": name,
        "scope": "project" if request.project else "global",
        "folder": printable(folder),
        "files": [*files],
        "hooks": [*hooks],
        "guard": guard,
        "next": _next(request, config, folder),
        "not_in_force": not_in_force(request),
    }
    return Result(0, payload)


def _fault(name: str) -> str | None:
    if not name.strip():
        return "the name is empty"
    words = {name.lower(), name.replace("-", "_"), name.replace("-", "_").lower()}
    faults = (
        ("/" in name or "\\" in name or name in {".", ".."}, "it is a path"),
        (not _NAME.fullmatch(name), "a name begins with one of a-z, followed by a-z, 0-9, - and _"),
        (len(name) > _LONGEST, f"it is longer than {_LONGEST} characters"),
        (any(map(keyword.iskeyword, words)), "it is a word of Python itself"),
        (
            canonical_name(name) in _bundled(),
            "one that comes with this package is called so, and this would take its place",
        ),
    )
    return next((told for holds, told in faults if holds), name_fault(name))


def _bundled() -> set[str]:
    root = bundled_dir()
    return set() if root is None else {canonical_name(each.name) for each in root.iterdir()}


def _hint(name: str) -> str:
    """A name like it that can be used."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:_LONGEST]
    if words[:1].isdigit():
        words = f"my-{words}"
    for tried in (words, f"my-{words}", f"{words}-rules"):
        if words and _fault(tried) is None:
            return f'Call it "{tried}", say'
    return 'Call it "my-rules", say'


def _project(request: Request, config: ExtensionsConfig) -> Project:
    if request.cwd is None:
        raise UsageError("the working directory is no longer there", hint="Change into the project")
    there = find_project(request.cwd, home=request.home, global_dir=config.global_dir)
    root = there.root if there is not None else project_of(real_path(request.cwd))
    project = None if root is None else Project(root, refusal(root))
    mine = {real_path(request.home), real_path(config.global_dir).parent}
    if project is None or real_path(project.folder) in mine:
        raise UsageError(
            f"{printable(request.cwd)} is not a project",
            hint="Change into one, or leave --project out: then it holds in all of them",
        )
    if project.refused is not None:
        raise HermesExtError(project.refused, path=project.folder)
    return project


def _next(request: Request, config: ExtensionsConfig, folder: Path) -> list[dict[str, str]]:
    """What to do now: in words, and what to type."""
    cd = f"cd {shlex.quote(printable(folder))}"
    pytest = "" if importlib.util.find_spec("pytest") else "pip install pytest && "
    steps = [("run its test", f"{cd} && {pytest}pytest")]
    if request.project:
        steps.append(("let it run in this project, after each change", request.prog("trust")))
    elif config.is_disabled(request.name):
        steps.append(("turn it on", request.prog(f"enable {request.name}")))
    steps.append(("see what it registers", request.prog("list --load")))
    steps.append(("check that all is well", request.prog("doctor")))
    return [{"what": what, "command": command} for what, command in steps]


def page(payload: Mapping[str, Any], page: Page) -> None:
    page.line((f"Made {payload['name']}.", "bold"))
    page.lines(payload["folder"], indent=4)
    for file in payload["files"]:
        page.line(file, indent=6)
    in_force(payload, page, takes_effect=payload["scope"] == "global")
    page.line("What next:")
    for step in payload["next"]:
        page.line(f"{step['what']}: {step['command']}", indent=4)
