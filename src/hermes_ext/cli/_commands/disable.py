"""`disable`: turns an extension or one hook of it off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_ext.cli._commands.enable import arguments, switched
from hermes_ext.cli._page import Page
from hermes_ext.cli._request import Request, Result, not_in_force
from hermes_ext.loading import switches

__all__ = ["arguments", "page", "work"]


def work(request: Request) -> Result:
    switched = switches.disable(request.home, request.cwd, request.name, hook=request.hook)
    return Result(0, switched.to_json() | {"not_in_force": not_in_force(request)})


def page(payload: Mapping[str, Any], page: Page) -> None:
    switched(payload, page, "disabled")
