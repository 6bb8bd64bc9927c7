"""What MCP servers say of their tools: which of them only read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from hermes_ext._log import logger

_TOOLSET: Final = "mcp-"  # and the name of the server: Hermes keeps these for servers' tools
_HINTS: Final = ("readOnlyHint", "read_only_hint")  # before and since version 2 of the library


def only_reads(tool: str) -> bool:
    """Whether the server of a tool says that it changes nothing (`readOnlyHint`).

    False for every other tool, whatever its name says, and where the server is not connected.
    """
    mcp = sys.modules.get("tools.mcp_tool")
    registry = sys.modules.get("tools.registry")
    if mcp is None or registry is None:
        return False
    try:
        toolset = str(registry.registry.get_toolset_for_tool(tool) or "")
        if not toolset.startswith(_TOOLSET):
            return False
        said = [_hint(each) for each in _tools_called(mcp, toolset.removeprefix(_TOOLSET), tool)]
        return bool(said) and all(said)
    except Exception:  # names of another Hermes: then nothing is known
        logger.debug("cannot tell what its server says of %s", tool, exc_info=True)
        return False


def _tools_called(mcp: Any, name: str, tool: str) -> Iterator[Any]:
    """The tools of a server that the model calls by this name."""
    for server in list(mcp._servers.values()):
        if server.name == name:
            yield from (each for each in server._tools if tool in _names(name, each.name))


def _names(server: str, tool: str) -> tuple[str, str]:
    """What the model calls a tool of a server: in 0.17, and since."""
    words = [re.sub(r"[^A-Za-z0-9_]", "_", word) for word in (server, tool)]
    return f"mcp_{'_'.join(words)}", f"mcp__{'__'.join(words)}"


def _hint(tool: Any) -> bool:
    said = getattr(tool, "annotations", None)
    found = (
        said.get(name) if isinstance(said, dict) else getattr(said, name, None) for name in _HINTS
    )
    return any(hint is True for hint in found)
