"""The hooks as pluggy knows them: a specification for each row of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pluggy

from hermes_ext.hooks.table import EVERYWHERE, TABLE, HookDef

__all__ = ["PROJECT", "HookSpecs"]

PROJECT: Final = "hermes_ext"


def _spec(row: HookDef) -> Callable[..., None]:
    """A function with the hook's name, arguments and documentation."""
    # pluggy reads the arguments off the code; the text is made of the table and nothing else.
    arguments = ", ".join(
        f"{one.name}: {(row.event if one.name == 'event' else one.type)!r}"
        for one in (*row.arguments, *EVERYWHERE)
    )
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def {row.name.value}({arguments}): ...", names)
    function = names[row.name.value]
    function.__doc__ = f"{row.does}\n\n{row.fires}"
    return pluggy.HookspecMarker(PROJECT)(function)  # type: ignore[no-any-return]


class HookSpecs:
    """What `pluggy.PluginManager.add_hookspecs` takes."""

    def __init__(self) -> None:
        vars(self).update({name.value: _spec(row) for name, row in TABLE.items()})

    def __dir__(self) -> list[str]:
        # pluggy looks at every attribute.
        return [*vars(self)]
