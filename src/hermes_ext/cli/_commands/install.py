"""`install`: puts the plugin into a Hermes home."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from hermes_ext.cli._options import add
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import changes
from hermes_ext.cli._request import Request, Result
from hermes_ext.hosts.hermes.home import installing as hermes_home


def arguments(command: ArgumentParser) -> None:
    told = "also a plugin that refuses tools if this package is gone"
    told += " (written anyway where extensions.required names any)"
    add(command, "--sentinel", told)


def work(request: Request) -> Result:
    return Result(0, hermes_home.install(request.home, sentinel=request.sentinel).to_json())


def page(payload: Mapping[str, Any], page: Page) -> None:
    if payload["changed"]:
        page.line(("Installed.", "bold"))
        changes(payload, page)
        if payload["folder_made"]:
            page.lines(f"made the folder {payload['folder']}", indent=4)
        if payload["sentinel_changed"]:
            told = "refuses tools if this package is gone; to remove it, delete it"
            page.lines(f"wrote the sentinel {payload['sentinel']}, which {told}", indent=4)
    else:
        page.line("Installed already; nothing was changed.")
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    page.line("What next:")
    page.lines(f"put an extension into {payload['folder']}", indent=4)
    page.line(f"see what is there: {page.prog('list')}", indent=4)
    page.line(f"check that all is well: {page.prog('doctor')}", indent=4)
