"""What a test finds out about an extension beside what it asks for: the strict mode."""

from __future__ import annotations

import collections
import inspect
import itertools
import os
import reprlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Final, Literal, Self

from hermes_ext._values import frozen
from hermes_ext.loading.imports.importing import modules_of

Kind = Literal["failed", "mutated", "coroutine", "state", "slow", "unanswered", "warning"]

_ATOMS: Final = (str, bytes, int, bool, complex, type(None))
_DEPTH: Final = 8


@frozen
class Finding:
    """Something that is wrong with an extension, though nobody asserted anything about it.

    Attributes:
        kind: `failed` (a handler failed), `mutated` (it changed what it was given, in place, and
            did not return it), `coroutine` (never awaited), `state` (kept over turns outside of
            `state` and `session_state`), `slow`, `unanswered` (asked more often than the test
            answers), `warning` (of loading).
        text: what, where, and what to do.
    """

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class CoroutineWatch:
    """Finds out which coroutines of an extension end without having been awaited.

    Python tells of them as a warning that names no place. While this watches, it tells us instead.
    """

    def __init__(self, folder: Path, found: Callable[[Finding], None]) -> None:
        self._folder = os.path.realpath(folder)
        self._found = found
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = getattr(warnings, "_warn_unawaited_coroutine", None)
        if self._before is not None:
            warnings._warn_unawaited_coroutine = self._told  # type: ignore[attr-defined]
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            warnings._warn_unawaited_coroutine = self._before  # type: ignore[attr-defined]

    def _told(self, coroutine: Any) -> None:
        code = getattr(coroutine, "cr_code", None)
        if code is None or not is_below(code.co_filename, self._folder):
            self._before(coroutine)
            return
        told = f"{code.co_qualname}() was called and never awaited"
        place = f"{code.co_filename}:{code.co_firstlineno}"
        self._found(Finding("coroutine", f"{told} ({place}). Write `await {code.co_name}(…)`"))


def is_below(file: str, folder: str) -> bool:
    """Whether a file is a folder's, or that file itself; `folder` has no links in it."""
    real = os.path.realpath(file)
    return real == folder or real.startswith(folder + os.sep)


class StateWatch:
    """Compares what an extension's modules hold before and after turns.

    Globals, attributes of its classes and of objects of these, closures, attributes and default
    values of its functions. What it cannot look into (a lock, a client, `functools.cache`) counts
    as the same as long as it is the same object.

    Args:
        package: the name of its package in `sys.modules`.
        allowed: names, with or without their module's in front, that may change.
    """

    def __init__(self, package: str, allowed: tuple[str, ...] = ()) -> None:
        self._package = package
        self._allowed = frozenset(allowed)
        self._lock = threading.Lock()
        self._seen = self._look()

    def begin(self) -> None:
        """Take things as they are now: what a test changes between turns is its own affair."""
        with self._lock:
            self._seen = self._look()

    def changes(self) -> list[Finding]:
        """What has changed since the last look, each once."""
        with self._lock:
            before, self._seen = self._seen, self._look()
            return [
                self._told(module, name, before[module].get(name), now)
                for module, names in self._seen.items()
                if module in before  # one that was imported in the meantime is new as a whole
                for name, now in names.items()
                if before[module].get(name, (None, ""))[0] != now[0]
            ]

    def _look(self) -> dict[str, dict[str, tuple[Any, str]]]:
        modules = [(name, sys.modules.get(name)) for name in modules_of(self._package)]
        return {
            name: dict(self._of(name, module)) for name, module in modules if module is not None
        }

    def _of(self, module: str, held: ModuleType) -> Iterator[tuple[str, tuple[Any, str]]]:
        short = module.rpartition(".")[2]
        for name, value in list(vars(held).items()):
            if name.startswith("__") or isinstance(value, ModuleType):
                continue
            for part, inner in self._parts(name, value):
                whole = part.partition(" ")[0]
                names = {name, whole, f"{short}.{name}", f"{short}.{whole}"}
                if self._allowed.isdisjoint(names):
                    yield part, (_Shape(self._package).of(inner), _repr(inner))

    def _parts(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """What a global holds that can change, in parts that have names of their own."""
        if isinstance(value, type) and _is_of(self._package, value):
            for key, inner in list(vars(value).items()):
                if isinstance(inner, FunctionType | staticmethod | classmethod):
                    function: Any = getattr(inner, "__func__", inner)
                    yield from self._parts(f"{name}.{key}", inspect.unwrap(function))
                elif not key.startswith("_abc") and not key.startswith("__"):
                    yield f"{name}.{key}", inner
        elif isinstance(value, FunctionType) and _is_of(self._package, value):
            for variable, cell in zip(
                value.__code__.co_freevars, value.__closure__ or (), strict=False
            ):
                yield f"{name} (its variable {variable})", _inside(cell)
            defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
            yield f"{name} (its default values)", defaults
            yield f"{name} (its attributes)", dict(vars(value))
        else:
            yield name, value

    def _told(
        self, module: str, name: str, before: tuple[Any, str] | None, now: tuple[Any, str]
    ) -> Finding:
        file = getattr(sys.modules.get(module), "__file__", None) or module
        was = "was not there" if before is None else f"was {before[1]}"
        return Finding(
            "state",
            f"{name} in {file} {was}, and is {now[1]} after a turn. All sessions of a process "
            "share it. Keep it in `state` (one turn) or `session_state` (one conversation); if it "
            f'is meant to stay: load_extension(…, allow_state=("{name.partition(" ")[0]}",))',
        )


class _Shape:
    """A value as something that can be compared later, when the value itself has changed."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._inside: set[int] = set()

    def of(self, value: Any, depth: int = _DEPTH) -> Any:
        """Equal for two values that hold the same."""
        kind = type(value)
        if kind in _ATOMS:
            return kind, value
        if kind is float or kind is itertools.count:
            return kind, repr(value)
        if depth == 0 or id(value) in self._inside:
            return kind, id(value)
        self._inside.add(id(value))
        try:
            return kind, self._contents(value, depth - 1)
        finally:
            self._inside.discard(id(value))

    def _contents(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict | MappingProxyType):
            found: Any = ((self.of(k, depth), self.of(v, depth)) for k, v in list(value.items()))
        elif isinstance(value, list | tuple | collections.deque):
            found = (self.of(item, depth) for item in list(value))
        elif isinstance(value, set | frozenset):
            return frozenset(self.of(item, depth) for item in list(value))
        elif isinstance(value, bytearray):
            return bytes(value)
        elif isinstance(value, FunctionType):
            cells = value.__closure__ or ()
            found = (id(value), *(self.of(_inside(cell), depth) for cell in cells))
        elif _is_of(self._package, type(value)):
            found = ((name, self.of(item, depth)) for name, item in _attributes(value))
        else:
            return id(value)
        return tuple(found)


def _is_of(package: str, value: Any) -> bool:
    module = str(getattr(value, "__module__", ""))
    return module == package or module.startswith(f"{package}.")


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__weakref__", "__dict__"} and hasattr(value, name):
                yield name, getattr(value, name)


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _repr(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001 - an author's own __repr__
        return f"a {type(value).__name__}"
