"""attrs, with classes that are made in half the time.

attrs writes and compiles the methods of each class, and half of what importing this package costs
is that. Its `__repr__`, `__eq__` and `__hash__` are here the same three functions for all classes.
"""

from __future__ import annotations

from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs
from attrs import Factory, asdict, evolve, field, fields

__all__ = ["Factory", "asdict", "define", "evolve", "field", "fields", "frozen"]

if TYPE_CHECKING:
    from attrs import define, frozen
else:

    def define(
        cls: Any = None,
        *,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - as in attrs
        frozen: bool = False,
        **options: Any,
    ) -> Any:
        """As `attrs.define`."""
        if cls is None:
            return lambda cls: define(cls, eq=eq, repr=repr, frozen=frozen, **options)
        if repr and "__repr__" not in vars(cls):
            cls.__repr__ = _repr
        if eq and "__eq__" not in vars(cls):
            cls.__eq__ = _eq
            cls.__hash__ = _hash if frozen else None
        return attrs.define(cls, eq=False, repr=False, frozen=frozen, **options)

    def frozen(cls: Any = None, **options: Any) -> Any:
        """As `attrs.frozen`."""
        return define(cls, frozen=True, **options)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(type(self)) if one.repr)
    return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _compared(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, one.name) for one in fields(type(value)) if one.eq)
