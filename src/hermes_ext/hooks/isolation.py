"""What keeps handlers apart: copies of JSON-like values, and message lists that copy when read."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from operator import is_
from typing import Any, SupportsIndex, overload

from hermes_ext._interrupts import let_through

ATOMS = frozenset({str, int, float, bool, type(None), bytes, complex})


def is_flat(value: dict[Any, Any]) -> bool:
    """Whether a dict holds nothing that can be changed in place: `dict.copy` is enough."""
    for key, item in value.items():  # noqa: SIM110 - much faster than a generator, or a set
        if type(item) not in ATOMS or type(key) is not str:
            return False
    return True


def own_copy(value: Any) -> Any:
    """A copy that shares nothing that can be changed; subclasses of JSON types become plain.

    Never raises: what cannot be copied (a lock, an open file) is shared.
    """
    try:
        return _copied(value)
    except RecursionError:
        return _copied_iteratively(value)


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is dict:
        if is_flat(value):
            return value.copy()
        return {_plain_key(key): _copied(item) for key, item in value.items()}
    if kind is list:
        if ATOMS.issuperset(map(type, value)):
            return value.copy()
        return [_copied(item) for item in value]
    return _copied_other(value)


def _plain_key(key: Any) -> Any:
    return str.__str__(key) if isinstance(key, str) else key


def _copied_other(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        return {_plain_key(key): _copied(item) for key, item in dict.items(value)}
    if isinstance(value, list):
        return [_copied(item) for item in list.__iter__(value)]
    if type(value) is tuple:
        return tuple(_copied(item) for item in value)
    try:
        return copy.deepcopy(value)
    except RecursionError:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign __deepcopy__; sharing is documented
        let_through(error)
        return value


def _copied_iteratively(value: Any) -> Any:
    """As `_copied`, for nesting deeper than the stack allows (a model can send such arguments).

    What contains itself comes out the same way.
    """
    holder: list[Any] = [None]
    copies: dict[int, Any] = {}
    todo: list[tuple[Any, Any, Any]] = [(value, holder, 0)]
    while todo:
        item, container, key = todo.pop()
        if id(item) in copies:
            container[key] = copies[id(item)]
        elif isinstance(item, dict):
            fresh: dict[Any, Any] = dict.fromkeys(map(_plain_key, dict.__iter__(item)))
            copies[id(item)] = container[key] = fresh
            todo.extend((inner, fresh, _plain_key(name)) for name, inner in dict.items(item))
        elif isinstance(item, list):
            row: list[Any] = [None] * list.__len__(item)
            copies[id(item)] = container[key] = row
            todo.extend((inner, row, index) for index, inner in enumerate(list.__iter__(item)))
        else:
            container[key] = item
    return holder[0]


def identical(one: Any, other: Any) -> bool:
    """Whether two JSON-like values are the same, `1`, `1.0` and `True` being different.

    Never raises: what cannot be compared differs, which is the safe answer.
    """
    try:
        return _identical(one, other)
    except BaseException as error:  # noqa: BLE001 - too deep, or a foreign __eq__
        let_through(error)
        return False


def _identical(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            key in other and _identical(item, other[key]) for key, item in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            mine is theirs or _identical(mine, theirs)
            for mine, theirs in zip(list.__iter__(one), list.__iter__(other), strict=True)
        )
    return type(one) is type(other) and bool(one == other)


class Messages(list[Any]):
    """A handler's own list of messages, which copies a message when it is first looked at.

    To its handler it is a list of dicts of its own. The messages that nobody looked at are the
    host's, so a megabyte of them costs as much as a kilobyte. The list's own storage always holds
    real messages, so that C code which reads it directly (a JSON encoder) sees them too.
    """

    __slots__ = ("_own",)

    def __init__(self, messages: Iterable[Any] = ()) -> None:
        super().__init__(raw(messages) if isinstance(messages, Messages) else messages)
        self._own: set[int] = set()

    def _mine(self, index: int) -> Any:
        item = list.__getitem__(self, index)
        if type(item) in ATOMS or id(item) in self._own:
            return item
        made = own_copy(item)
        self._own.add(id(made))
        list.__setitem__(self, index, made)
        return made

    def _all_mine(self) -> None:
        for index in range(len(self)):
            self._mine(index)

    def _adopt(self, items: Iterable[Any]) -> list[Any]:
        adopted = list(items)
        self._own.update(map(id, adopted))
        return adopted

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return [self._mine(place) for place in range(*index.indices(len(self)))]
        return self._mine(index.__index__())

    def __iter__(self) -> Iterator[Any]:
        index = 0
        while index < len(self):
            yield self._mine(index)
            index += 1

    def __reversed__(self) -> Iterator[Any]:
        return iter(self[::-1])

    def __add__(self, other: list[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * times

    __rmul__ = __mul__

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, self._adopt(value) if isinstance(index, slice) else value)
        if not isinstance(index, slice):
            self._own.add(id(value))

    def __iadd__(self, other: Iterable[Any]) -> Messages:
        self.extend(other)
        return self

    def append(self, item: Any) -> None:
        """As for a list."""
        self._own.add(id(item))
        super().append(item)

    def insert(self, index: SupportsIndex, item: Any) -> None:
        """As for a list."""
        self._own.add(id(item))
        super().insert(index, item)

    def extend(self, items: Iterable[Any]) -> None:
        """As for a list."""
        super().extend(self._adopt(items))

    def pop(self, index: SupportsIndex = -1) -> Any:
        """As for a list."""
        if len(self):
            self._mine(index.__index__())
        return super().pop(index)

    def copy(self) -> list[Any]:
        """A plain list of the same messages."""
        return list(self)

    def sort(self, **options: Any) -> None:
        """As for a list."""
        self._all_mine()
        super().sort(**options)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        copied: list[Any] = own_copy(list(self))
        return copied

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (list(self),)


def raw(messages: list[Any]) -> list[Any]:
    """A plain list of the very same messages, none of them copied."""
    return list.__getitem__(messages, _ALL)


_ALL = slice(None)


def own_messages(messages: list[Any], known: list[Any]) -> list[Any]:
    """A handler's rewritten messages, made ours: those of `known` that it left alone are shared.

    Args:
        messages: what the handler returned; it may keep it and change it later.
        known: the messages that it was given.
    """
    theirs, ours = raw(messages), raw(known)
    if len(theirs) == len(ours):
        return [
            old if same else own_copy(new)
            for same, old, new in zip(map(is_, theirs, ours), ours, theirs, strict=True)
        ]
    known_ids = set(map(id, ours))
    return [item if id(item) in known_ids else own_copy(item) for item in theirs]
