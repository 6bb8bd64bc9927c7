"""Adapters: each folder here knows one host, and nothing else in the package does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_ext.effects import ToolTable


def default_tools() -> ToolTable:
    """The tools of the host that a runtime is for, unless it is told of others: Hermes."""
    from hermes_ext.hosts.hermes.facts.tools import TOOLS

    return TOOLS
