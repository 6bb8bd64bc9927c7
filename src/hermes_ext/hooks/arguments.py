"""`Arguments`: what a tool is called with, taken once for all who look at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from hermes_ext.hooks.isolation import ATOMS, identical, is_flat, own_copy

_new: Final = object.__new__


class Arguments:
    """The arguments of one tool call. They never change: whoever may change them gets a copy.

    Args:
        shared: plain arguments that nobody else has.

    Attributes:
        shared: the arguments, for code that only reads them.
        copy: makes a dict that is the caller's own.
    """

    __slots__ = ("copy", "shared")

    copy: Callable[[], dict[str, Any]]

    def __init__(self, shared: dict[str, Any]) -> None:
        self.shared = shared
        self.copy = shared.copy if is_flat(shared) else partial(own_copy, shared)

    @classmethod
    def of(cls, value: Any) -> Arguments:
        """The arguments that a host or an author gives: a copy of a mapping, or what is taken.

        Raises:
            TypeError: it is not a mapping.
        """
        if type(value) is dict:
            for key, item in value.items():  # `is_flat`, without a call
                if type(item) not in ATOMS or type(key) is not str:
                    break
            else:
                taken = _new(cls)  # not `__init__`, which would look at all of it once more
                taken.shared = shared = value.copy()
                taken.copy = shared.copy
                return taken
        if type(value) is Arguments:
            return value
        if isinstance(value, Mapping):
            return cls(own_copy(value if isinstance(value, dict) else dict(value)))
        if value is None or value == "":
            return cls({})
        raise TypeError(f"tool_args must be a dict, got {type(value).__name__}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and identical(self.shared, other.shared)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Arguments({self.shared!r})"
