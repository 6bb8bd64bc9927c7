"""Confinement by the kernel: what the processes of a call may change, whatever they run.

Nothing here needs the rest of the package, so that other hosts can use it.
"""

from __future__ import annotations

from hermes_ext.confine._model import Confinement, Network, Reason
from hermes_ext.exceptions import ConfinementError

__all__ = ["Confinement", "ConfinementError", "Network", "Reason"]
