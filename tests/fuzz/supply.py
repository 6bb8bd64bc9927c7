"""Values out of bytes: what a fuzzer knows how to change becomes what a program is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

_TEXTS: Final = (
    "", " ", "path", "a.py", "command", "ls", "pass", "block", "\ud800", "\0", "\x1b[2J", "é",
    "\u200b",
)  # fmt: skip
_NUMBERS: Final = (
    0, 1, -1, 2**63, -(2**70), 10**400, 0.0, -0.0, 1e308, float("nan"), float("inf"), True, False,
    1j, None,
)  # fmt: skip


class Text(str):
    """A text of a class of its own, which tells other things than it holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return "told"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def strip(self, *_: Any) -> str:
        return "told"


class Number(int):
    """A number of a class of its own."""

    def __index__(self) -> int:
        return 7

    def __int__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Dict(dict[Any, Any]):
    """A dict whose methods tell nothing of what it holds."""

    def items(self) -> Any:
        return ()

    def values(self) -> Any:
        return ()

    def keys(self) -> Any:
        return ()

    def get(self, *_: Any) -> Any:
        return "told"

    def __getitem__(self, _: Any) -> Any:
        return "told"

    def __iter__(self) -> Any:
        return iter(())


class List(list[Any]):
    """A list whose methods tell nothing of what it holds."""

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class Hostile:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        return 3

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __deepcopy__(self, _: Any) -> Any:
        raise SystemExit("deepcopy")

    def __reduce_ex__(self, _: Any) -> Any:
        raise RuntimeError("reduce")


class HostileDict(dict[Any, Any]):
    """A dict that cannot be walked through."""

    def items(self) -> Any:
        raise RuntimeError("items")

    def values(self) -> Any:
        raise RuntimeError("values")

    def keys(self) -> Any:
        raise RuntimeError("keys")

    def __iter__(self) -> Any:
        raise SystemExit("iter")


class Supply:
    """Takes bytes one after the other; when they are used up, all further ones are zero."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def empty(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        if self.empty:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def flag(self) -> bool:
        return bool(self.byte() & 1)

    def pick(self, of: Sequence[_T]) -> _T:
        return of[self.byte() % len(of)]

    def rest(self) -> bytes:
        at, self._at = self._at, len(self._data)
        return self._data[at:]

    def raw(self, most: int) -> bytes:
        length = min(self.byte(), most)
        taken = self._data[self._at : self._at + length]
        self._at += len(taken)
        return taken

    def text(self, most: int = 20) -> str:
        """A text; what is not UTF-8 becomes lone surrogates."""
        if self.flag():
            return self.pick(_TEXTS)
        return self.raw(most).decode("utf-8", "surrogateescape")

    def json(self, depth: int = 3) -> Any:
        """A JSON value."""
        kind = self.byte() % (7 if depth else 5)
        if kind < 2:
            return self.text()
        if kind < 4:
            return self.pick((0, 1, -1, 10**20, 0.5, True, False, None))
        if kind == 4:
            return None
        size = self.byte() % 4
        if kind == 5:
            return [self.json(depth - 1) for _ in range(size)]
        return {self.text(): self.json(depth - 1) for _ in range(size)}

    def key(self) -> Any:
        """A key of a dict, mostly a text."""
        odd = self.byte()
        if odd < 200:
            return self.text()
        return self.pick((Text("key"), 1, None, b"key", (1, "a"), Number(5), Hostile(), 1.5))

    def value(self, depth: int = 4) -> Any:  # noqa: PLR0911 - one for each kind
        """Anything at all."""
        kind = self.byte() % (16 if depth else 6)
        if kind < 3:
            return self.text()
        if kind < 5:
            return self.pick(_NUMBERS)
        if kind == 5:
            return self.odd()
        if kind == 6:
            return self.deep()
        if kind == 7:
            return Text(self.text())
        items = [self.value(depth - 1) for _ in range(self.byte() % 4)]
        if kind == 8:
            return tuple(items)
        if kind == 9:
            return List(items)
        if kind < 12:
            return items
        if kind == 12:
            return self.looped(items)
        pairs = {}
        for item in items:
            try:
                pairs[self.key()] = item
            except RuntimeError:  # a hostile key beside another one
                continue
        return {13: Dict, 14: HostileDict}.get(kind, dict)(pairs)

    def odd(self) -> Any:
        """Something that is no value of JSON."""
        return self.pick(
            (
                object(), Hostile(), b"bytes", bytearray(b"x"), {1, 2}, frozenset("ab"), range(3),
                ..., int, len, Exception("x"), HostileDict({"a": 1}), Dict({"a": 1}), List([1]),
                Text("x"), Number(3), (lambda: None), iter([1]), memoryview(b"x"), NotImplemented,
            )
        )  # fmt: skip

    def deep(self) -> Any:
        """A value in which very many are nested."""
        inside: Any = self.text()
        levels = (self.byte() + 1) * self.pick((1, 1, 10, 200))
        for _ in range(levels):
            inside = [inside] if levels & 1 else {"in": inside}
        return inside

    def looped(self, items: list[Any]) -> Any:
        """A value that contains itself."""
        items.append(items)
        return items
