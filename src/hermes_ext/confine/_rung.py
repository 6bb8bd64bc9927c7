"""What a machine offers for confinement."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

from attrs import frozen

from hermes_ext.confine._model import Confinement

Minimum: TypeAlias = Literal["namespaces", "landlock"]


class Rung(StrEnum):
    """How confinement is kept, the strongest first."""

    NAMESPACES_AND_LANDLOCK = "namespaces and Landlock"
    NAMESPACES = "namespaces"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "Landlock alone"


_LATE: Final = (
    "a socket outside of daemons' usual folders that is not in /proc/net/unix when a call starts"
    " (made later, or by another network namespace) takes orders"
)
_ABSTRACT: Final = "processes outside take orders through abstract sockets"
_PIPES: Final = "processes outside take orders through named pipes"
_ALONE: Final = (
    "modes, owners, times and attributes of files outside can be changed",
    "processes outside take orders through sockets with a path: docker, tmux, D-Bus, ssh-agent",
    "shared memory and queues of System V are those of all processes",
    "other terminals of the user can be written to",
    'network="none" closes TCP; UDP stays open',
)


def gaps(rung: Rung, abi: int) -> tuple[str, ...]:
    """What a rung does not hold, by the version of Landlock that is used; 0 for none."""
    return (
        *(_ALONE if rung is Rung.LANDLOCK else (_LATE,)),
        *((_ABSTRACT,) if abi < 6 else ()),
        *((_PIPES,) if not abi else ()),
    )


@frozen
class Support:
    """What this machine offers.

    Attributes:
        rung: how confinement is kept, or None where it is not available.
        why: what was found, or why there is none, in one line.
        advice: what a person can do to get more, a line each.
        gaps: what the rung does not hold, a line each.
        abi: the version of Landlock that is used; 0 for none.
    """

    rung: Rung | None
    why: str
    advice: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    abi: int = 0

    def reason_not(self, confinement: Confinement) -> str | None:
        """Why this confinement is not available, or None where it is."""
        if self.rung is None:
            return self.why
        if confinement.network == "none" and self.rung is Rung.LANDLOCK and self.abi < 4:
            return f"Landlock ABI {self.abi} cannot close the network (4 or newer can)"
        return None
