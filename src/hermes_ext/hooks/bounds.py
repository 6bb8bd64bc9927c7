"""`Bounds`: what a handler lets a confined call change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_ext._problems import did_you_mean
from hermes_ext._values import field, frozen
from hermes_ext.exceptions import ResultError
from hermes_ext.hooks.sendable import sendable_text

if TYPE_CHECKING:
    from hermes_ext.confine import Network

HOW_TO_CONFINE: Final = "Write HookResult.confine(writable=['plans/'], reason='no plan yet')"
_NETWORKS: Final = ("host", "none")
_KEYS: Final = ("writable", "network", "reason", "or_exact", "advice")


def _paths(value: object) -> tuple[str, ...]:
    if isinstance(value, (str, bytes, os.PathLike)):
        raise ResultError(
            f"writable= of 'confine' needs a list of paths, got one {type(value).__name__}",
            hint=f"Write writable=[{os.fspath(value)!r}]",
        )
    if not isinstance(value, Sequence):
        raise ResultError(
            f"writable= of 'confine' needs a list of paths, got {_named(value)}",
            hint="Write writable=['plans/'], or writable=[] for nothing",
        )
    return tuple(_path(each, place) for place, each in enumerate(value))


def _path(value: object, place: int) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise ResultError(
            f"writable[{place}] of 'confine' needs a path, got {_named(value)}",
            hint="A path is a str or a Path",
        )
    text = str.__str__(text)
    if not text.strip() or "\0" in text:
        fault = "not a path" if text.strip() else "an empty path"
        raise ResultError(
            f"writable[{place}] of 'confine' is {fault}",
            hint="Leave it out, or write '.' for the whole project",
        )
    return text


def _network(value: object) -> Network:
    if not isinstance(value, str) or value not in _NETWORKS:
        raise ResultError(
            f"network= of 'confine' is {value!r}",
            hint="Write network='host' for the host's network, or network='none' for none",
        )
    return cast("Network", str.__str__(value))


def _reason(value: object) -> str:
    if not isinstance(value, str) or not str.strip(value):
        raise ResultError(
            "HookResult 'confine' needs a reason, "
            + ("the reason is empty" if isinstance(value, str) else f"got {_named(value)}"),
            hint="Write reason='no plan yet': the model and the person see it",
        )
    return sendable_text(str.__str__(value))


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ResultError(f"or_exact= of 'confine' needs True or False, got {_named(value)}")
    return value


def _advice(value: object) -> str:
    if not isinstance(value, str):
        raise ResultError(f"advice= of 'confine' needs a text, got {_named(value)}")
    return sendable_text(str.__str__(value)).strip()


@frozen
class Bounds:
    """What a handler lets a call change: the value of `HookResult.confine`.

    Attributes:
        writable: the directories that may be written, as the handler names them: relative ones
            start at the project's root.
        network: `host` for the host's network, `none` for none.
        reason: why, for the model and the person.
        or_exact: whether a call runs that cannot be confined, but whose effects are exact and
            change nothing outside of `writable`.
        advice: sentences for the model if the call is blocked; "" for none.

    Raises:
        ResultError: `writable` is not a list of paths, `network` is unknown, `reason` is blank,
            `or_exact` is not a bool, or `advice` is not a text.
    """

    writable: tuple[str, ...] = field(default=(), converter=_paths)
    network: Network = field(default="host", converter=_network)
    reason: str = field(default="", converter=_reason)
    or_exact: bool = field(default=False, converter=_flag)
    advice: str = field(default="", converter=_advice)

    @classmethod
    def of(cls, value: object) -> Bounds:
        """The bounds that an author gives: a mapping of the attributes, or what is `Bounds`.

        Raises:
            ResultError: it is neither, or has an unknown key.
        """
        if type(value) is cls:
            return value
        if not isinstance(value, Mapping):
            raise ResultError(
                f"HookResult 'confine' needs Bounds or a dict, got {_named(value)}",
                hint=HOW_TO_CONFINE,
            )
        _check_keys(value)
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the texts."""
        data: dict[str, Any] = {"writable": [*self.writable], "network": self.network}
        return {**data, "or_exact": True} if self.or_exact else data


def _check_keys(keys: Iterable[object]) -> None:
    for key in keys:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) if isinstance(key, str) else None
            raise ResultError(
                f"'confine' has no {key!r}", hint=hint or f"It takes {', '.join(_KEYS)}"
            )


def wrong_arguments(
    error: TypeError, values: Sequence[object], named: Mapping[str, object]
) -> ResultError:
    """What `HookResult.confine` raises for arguments that it does not take."""
    if len(values) > 3:  # the class, writable, network
        return ResultError("reason= has to be named", hint=HOW_TO_CONFINE)
    known = (*_KEYS, "metadata")
    near = next((did_you_mean(name, known) for name in named if name not in known), None)
    return ResultError(str(error), hint=near or HOW_TO_CONFINE)


def _named(value: object) -> str:
    return "None" if value is None else type(value).__name__
