"""A tool call, read by the table of its host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_ext.effects._other_tools import announce_by_names
from hermes_ext.effects._record import Recorder

__all__ = ["announce"]


def announce(tool_name: str, tool_args: Mapping[str, Any], rec: Recorder) -> None:
    """Announce what a call touches. A tool that is not in the table may do anything."""
    tools = rec.machine.tools
    row = None if tools is None else tools.get(tool_name)
    if row is None:
        announce_by_names(tool_name.strip(), tool_args, rec)
    else:
        row.does.announce(row.name, tool_args, rec)
