"""Confinement by the kernel: what the processes of a call may change, whatever they run.

Nothing here needs the rest of the package, so that other hosts can use it.
"""

from __future__ import annotations

from hermes_ext.confine._model import Confinement, Network, Reason
from hermes_ext.exceptions import ConfinementError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermes_ext.confine._inside import Run, current, inside, outside
    from hermes_ext.confine._private import PrivateFolder
    from hermes_ext.confine._rung import Minimum, Rung, Support
    from hermes_ext.confine._sandbox import Sandbox, Start
    from hermes_ext.confine._support import support

# Imported when it is asked for: most processes confine nothing.
_LATER = {
    "Minimum": "_rung",
    "PrivateFolder": "_private",
    "Run": "_inside",
    "Rung": "_rung",
    "Sandbox": "_sandbox",
    "Start": "_sandbox",
    "Support": "_rung",
    "current": "_inside",
    "inside": "_inside",
    "outside": "_inside",
    "support": "_support",
}

__all__ = [
    "Confinement",
    "ConfinementError",
    "Minimum",
    "Network",
    "PrivateFolder",
    "Reason",
    "Run",
    "Rung",
    "Sandbox",
    "Start",
    "Support",
    "current",
    "inside",
    "outside",
    "support",
]


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
