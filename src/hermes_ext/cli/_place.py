"""Where was looked, as `list` and `info` say it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli._request import Request, not_in_force, projects_of
from hermes_ext.loading.finding.projects import ProjectStack, notices
from hermes_ext.loading.inventory import Inventory
from hermes_ext.loading.reloading.not_taken import with_old_rules
from hermes_ext.settings.config import OFF_SWITCH, switched_off


def place(request: Request, seen: Inventory) -> dict[str, Any]:
    """Where was looked, and what there makes every `enabled` mean less than it says."""
    return {
        "home": printable(request.home),
        "file": printable(seen.config.file),
        "global_dir": printable(seen.config.global_dir),
        "readable": seen.config.readable,
        "off": OFF_SWITCH if switched_off() else None,
        "not_in_force": not_in_force(request, seen.config),
        **projects_of(seen.projects),
        "notices": _notices(request, seen.projects),
        "old_rules": _old_rules(request),
    }


def _notices(request: Request, stack: ProjectStack) -> list[str]:
    if request.live is not None:
        return [text for text in (*request.live.notices, request.not_taken) if text]
    return [*notices(stack, request.prog)]


def _old_rules(request: Request) -> list[dict[str, Any]]:
    """The running processes that have not taken a change; this one says so in its notices."""
    own = os.getpid() if request.live is not None else None
    return [each.to_json() for each in with_old_rules(request.home) if each.pid != own]


def from_next_start(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What would stop a process that starts now, and does not stop this one."""
    return {"not_in_force": None, "next_start": payload["not_in_force"]}
