"""`Arguments`: what a tool is called with, taken once for all who look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from hermes_ext.hooks.isolation import identical, is_flat, own_copy

__all__ = ["Arguments"]


class Arguments:
    """The arguments of one tool call. They never change: whoever may change them gets a copy.

    Args:
        shared: plain arguments that nobody else has.

    Attributes:
        shared: the arguments, for code that only reads them.
        flat: whether they hold nothing that can be changed in place.
    """

    __slots__ = ("flat", "shared")

    def __init__(self, shared: dict[str, Any]) -> None:
        self.shared = shared
        self.flat = is_flat(shared)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The arguments that a host or an author gives: a copy of a mapping.

        Raises:
            TypeError: it is not a mapping.
        """
        if isinstance(value, Mapping):
            return cls(own_copy(value if isinstance(value, dict) else dict(value)))
        if value is None or value == "":
            return cls({})
        raise TypeError(f"tool_args must be a dict, got {type(value).__name__}")

    def copy(self) -> dict[str, Any]:
        """A dict that is the caller's own."""
        if self.flat:
            return self.shared.copy()
        own: dict[str, Any] = own_copy(self.shared)
        return own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and identical(self.shared, other.shared)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Arguments({self.shared!r})"
