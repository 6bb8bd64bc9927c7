"""What a machine offers for confinement."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

from attrs import frozen

from hermes_ext.confine._model import Confinement

Minimum: TypeAlias = Literal["namespaces", "landlock"]


class Rung(StrEnum):
    """The levels of confinement, the strongest first."""

    NAMESPACES_AND_LANDLOCK = "namespaces and Landlock"
    NAMESPACES = "namespaces"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "Landlock alone"


# What a program can still do: each goes on after "A confined program can still".
_NETWORK: Final = 'ask a daemon over TCP or UDP to write for it, unless network="none" is set'
_LATE: Final = (
    "ask a daemon to write for it through a socket outside the usual folders, if the socket"
    " appears after the call starts or belongs to another network namespace"
)
_ABSTRACT: Final = "ask a daemon to write for it through an abstract socket"
_PIPES: Final = "ask a daemon to write for it through a named pipe"
_ALONE: Final = (
    "change modes, owners, times and attributes of any file of its user",
    "ask a daemon such as docker, tmux, D-Bus or ssh-agent to write for it through its socket",
    "use the System V shared memory and message queues of other processes",
    "write to the user's other terminals",
    'use UDP in spite of network="none", which closes only TCP',
)


def gaps(rung: Rung, abi: int) -> tuple[str, ...]:
    """What a program can still do on a level, by the version of Landlock in use; 0 for none."""
    return (
        _NETWORK,
        *(_ALONE if rung is Rung.LANDLOCK else (_LATE,)),
        *((_ABSTRACT,) if abi < 6 else ()),
        *((_PIPES,) if not abi else ()),
    )


@frozen
class Support:
    """What this machine offers.

    Attributes:
        rung: the level of confinement, or None where none is available.
        why: what was found, or why there is none, in one line.
        advice: what a person can do to get a stronger level; each line is one way.
        gaps: what a confined program can still do, a line each.
        abi: the version of Landlock in use; 0 for none.
        bubblewrap: its program, without links; empty where it is not used.
    """

    rung: Rung | None
    why: str
    advice: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    abi: int = 0
    bubblewrap: str = ""

    def reason_not(self, confinement: Confinement) -> str | None:
        """Why this confinement is not available, or None where it is."""
        if self.rung is None:
            return self.why
        if confinement.network == "none" and self.rung is Rung.LANDLOCK and self.abi < 4:
            return f"Landlock ABI {self.abi} cannot close the network (4 or newer can)"
        return None
