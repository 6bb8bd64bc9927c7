"""`uninstall`: takes the plugin out of a Hermes home."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import changes
from hermes_ext.cli._request import Request, Result
from hermes_ext.hosts.hermes.home import installing as hermes_home


def arguments(command: ArgumentParser) -> None:
    """Nothing of its own."""


def work(request: Request) -> Result:
    return Result(0, hermes_home.uninstall(request.home).to_json())


def page(payload: Mapping[str, Any], page: Page) -> None:
    if payload["changed"]:
        page.line(("Uninstalled.", "bold"))
        changes(payload, page)
        if payload["sentinel_changed"]:
            page.line("removed the sentinel", indent=4)
    else:
        page.line("Not installed; nothing was changed.")
    for note in payload["notes"]:
        page.lines(f"Note: {note}", style="yellow")
    page.lines(f"Your extensions in {payload['folder']} and their settings stay as they are.")
