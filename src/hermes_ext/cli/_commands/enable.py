"""`enable`: turns an extension or one hook of it on."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli import _options
from hermes_ext.cli._options import add
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import changes, in_force
from hermes_ext.cli._request import Request, Result, not_in_force
from hermes_ext.cli._values import hook
from hermes_ext.loading import switches


def arguments(command: ArgumentParser) -> None:
    _options.name(command)
    add(command, "--hook HOOK", "only this hook of it", type=hook)


def work(request: Request) -> Result:
    switched = switches.enable(
        request.home, request.cwd, request.name, hook=request.hook, prog=request.prog
    )
    return Result(0, switched.to_json() | {"not_in_force": not_in_force(request)})


def page(payload: Mapping[str, Any], page: Page) -> None:
    switched(payload, page, "enabled")


def switched(payload: Mapping[str, Any], page: Page, verb: str) -> None:
    name = printable(payload["name"]) + (f", hook {payload['hook']}" if payload["hook"] else "")
    if not payload["changed"]:
        page.line(f"{name} is {verb} already; nothing was changed.")
    else:
        page.line((f"{verb.capitalize()} {name}.", "bold"))
        changes(payload, page)
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    in_force(payload, page, takes_effect=payload["changed"])
