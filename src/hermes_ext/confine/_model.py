"""What a confined call may change, and who wants it so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from attrs import field, frozen

from hermes_ext.confine._resolving import NotWritable, resolved
from hermes_ext.exceptions import ConfinementError

Network: TypeAlias = Literal["host", "none"]

_T = TypeVar("_T")


@frozen
class Reason:
    """Who confines a call, and why.

    Attributes:
        extension: the extension.
        text: why, for the model and the person: "no plan yet".
    """

    extension: str
    text: str


def _network(value: object) -> Network:
    if value == "host" or value == "none":  # noqa: PLR1714 - the type checker follows this
        return value
    raise ConfinementError(
        f"network= is {value!r}",
        hint="Write 'host' for the host's network, or 'none' for no network",
    )


def _writable(value: object) -> tuple[Path, ...]:
    for each in listed(value, "writable="):
        if not isinstance(each, Path) or not each.is_absolute():
            raise ConfinementError(
                f"writable= has {each!r}",
                hint="Write absolute paths (Path), or use Confinement.of(…) with a root",
            )
    return listed(value, "writable=")


def _reasons(value: object) -> tuple[Reason, ...]:
    for each in listed(value, "reasons="):
        if not isinstance(each, Reason):
            raise ConfinementError(
                f"a reason is {each!r}", hint="Write Reason('my-extension', 'no plan yet')"
            )
    return listed(value, "reasons=")


def _text_of_path(value: object) -> str:
    if isinstance(value, (str, Path)):
        return str(value)
    raise ConfinementError(f"writable= has {value!r}", hint="A path is a str or a Path")


def of_kind(value: _T, kind: type, needed: str, hint: str) -> _T:
    """A value that has to be of this class.

    Raises:
        ConfinementError: it is of another one; `needed` says where, `hint` what to write.
    """
    if not isinstance(value, kind):
        raise ConfinementError(f"{needed}, got {type(value).__name__}", hint=hint)
    return value


def listed(value: object, what: str) -> tuple[Any, ...]:
    """What a list holds.

    Raises:
        ConfinementError: it is one text, or no list at all; `what` names it.
    """
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
        inner = repr(value) if what == "writable=" and isinstance(value, (str, Path)) else "…"
        raise ConfinementError(f"{what} needs a list, got {value!r}", hint=f"Write {what}[{inner}]")
    return tuple(value)


@frozen
class Confinement:
    """What the processes of a call may change.

    Attributes:
        writable: the directories below which they may write; absolute, without links. Beside
            these only a private folder for temporary files is writable.
        network: `host` for the host's network, `none` for no network.
        reasons: who wants it, in the order of the handlers.
        left_out: paths that were to be writable and are not, each with why.

    Raises:
        ConfinementError: a value is of another kind.
    """

    writable: tuple[Path, ...] = field(default=(), converter=_writable)
    network: Network = field(default="host", converter=_network)
    reasons: tuple[Reason, ...] = field(default=(), converter=_reasons)
    left_out: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        writable: Iterable[str | Path],
        *,
        root: str | Path | None,
        network: Network = "host",
        reason: Reason,
    ) -> Confinement:
        """A confinement whose writable paths are looked up on the disk.

        Only real directories of the project become writable: below the root no part of the path is
        a link, `.git` or `.hermes`, and no file in it has a hard link outside of it. Never
        writable are the whole disk, the home, and shared temporary folders. What is not so is in
        `left_out`.

        Args:
            writable: the paths; relative ones start at `root`, and `.` is all of it, `.git` and
                `.hermes` included.
            root: the project's directory; None where it is not known: nothing is writable.
            network: `host` for the host's network, `none` for no network.
            reason: who wants it, and why.

        Raises:
            ConfinementError: an argument is of another kind. What is on the disk raises nothing.
        """
        found: dict[Path, None] = {}
        left_out: list[tuple[str, str]] = []
        start = None if root is None else Path(root)
        for text in map(_text_of_path, listed(writable, "writable=")):
            try:
                found[resolved(text, start)] = None
            except NotWritable as why:
                left_out.append((text, str(why)))
        return cls(tuple(found), network, (reason,), tuple(left_out))

    @property
    def why(self) -> str:
        """The texts of its reasons, each once."""
        return "; ".join(dict.fromkeys(reason.text for reason in self.reasons))

    def covers(self, path: Path) -> bool:
        """Whether a path, absolute and without links, may be changed."""
        return any(path.is_relative_to(each) for each in self.writable)

    def holds(self, other: Confinement) -> bool:
        """Whether this is at least as strict as another."""
        return all(map(other.covers, self.writable)) and (
            self.network == "none" or other.network == "host"
        )

    def __and__(self, other: Confinement) -> Confinement:
        """What both allow."""
        return Confinement(
            writable=_common(self.writable, other.writable),
            network="none" if "none" in (self.network, other.network) else "host",
            reasons=tuple(dict.fromkeys((*self.reasons, *other.reasons))),
            left_out=tuple(dict.fromkeys((*self.left_out, *other.left_out))),
        )


def _common(mine: Iterable[Path], theirs: Iterable[Path]) -> tuple[Path, ...]:
    """The directories that are below one of each side."""
    mine, theirs = tuple(mine), tuple(theirs)
    both = [
        path
        for paths, others in ((mine, theirs), (theirs, mine))
        for path in paths
        if any(path.is_relative_to(each) for each in others)
    ]
    return tuple(dict.fromkeys(both))
