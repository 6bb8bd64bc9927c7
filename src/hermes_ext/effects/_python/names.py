"""Python's own names by what `python.yaml` says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes_ext.effects._knowledge import data
from hermes_ext.effects._table import ToolKind, ToolTable

_DATA: Final = data("python.yaml")
MODULES: Final[Mapping[str, frozenset[str]]] = {
    module: frozenset((names or "").split()) for module, names in _DATA["modules"].items()
}
ATTRIBUTES: Final = frozenset[str](_DATA["attributes"].split())
BUILTINS: Final = frozenset[str](_DATA["builtins"].split())
LEADS_AWAY: Final = frozenset[str](_DATA["leads_away"].split())
NEVER_IMPORTED: Final = frozenset[str](_DATA["never_imported"].split())
OF_ANY_MODULE: Final = frozenset[str](_DATA["of_any_module"].split())
OWN_DUNDERS: Final = frozenset[str](_DATA["own_dunders"].split())


def with_tools(tools: ToolTable | None) -> Mapping[str, frozenset[str]]:
    """`MODULES`, and the module that code calls the host's tools by."""
    if tools is None or not tools.module:
        return MODULES
    harmless = (row.name for row in tools.of(ToolKind.HARMLESS) if row.parameters is not None)
    return {**MODULES, tools.module: frozenset((*tools.functions, *harmless))}
