"""Processes that a handler starts by `multiprocessing`, and the extension's modules in them.

With the start methods `spawn` and `forkserver` a child begins empty and imports what it is handed,
a function of the extension for one, by the name of its module. Nobody else knows that name, so each
child is told, before it imports anything, where these modules come from: a project's out of the
files that were verified, which go along, all others from their files, as far as those are as they
were when the extension was loaded.

`multiprocessing.spawn.get_preparation_data` makes what a child reads first. A key is added to it.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from hermes_ext.loading.imports import import_name
from hermes_ext.loading.imports.importing import adopt, carried

_SPAWN: Final = "multiprocessing.spawn"
_STARTERS: Final = frozenset(
    {
        "multiprocessing.popen_forkserver",
        "multiprocessing.popen_spawn_posix",
        "multiprocessing.popen_spawn_win32",
    }
)
_KEY: Final = "hermes_ext"


def watch() -> None:
    """Have the children of this process find the extensions' modules. Twice is once."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if _SPAWN in sys.modules:
        _wrap()


class _Finder:
    """Finds nothing; notices when `multiprocessing` is about to start its first child."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if fullname in _STARTERS:
            _wrap()


class _Parcel:
    """Stands for what is loaded at the moment in which it is pickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        from multiprocessing.spawn import get_executable

        # Another Python may not have this package, and must start even so.
        here = os.fsencode(get_executable()) == os.fsencode(sys.executable)
        packages = carried() if here else []
        if not packages:
            return dict, ()
        given = {"path": [*sys.path], "packages": pickle.dumps(packages)}
        return exec, (_UNPACKING, given)


# What the child runs before it has the parent's `sys.path`, where this package may be found.
_UNPACKING: Final = """
import pickle, sys
sys.path[:] = path
try:
    from hermes_ext.loading.imports.children import unpack
except ImportError:
    pass
else:
    unpack(pickle.loads(packages))
"""


def unpack(packages: Sequence[tuple[Any, ...]]) -> None:
    """In the child: make the parent's extensions importable here, and in its own children."""
    import_name.install()
    for package in packages:
        adopt(*package)
    watch()


def _wrap() -> None:
    from multiprocessing import spawn

    prepared = spawn.get_preparation_data
    if hasattr(prepared, "_hermes_ext"):
        return

    @functools.wraps(prepared)
    def with_extensions(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return {_KEY: _Parcel(), **prepared(*args, **kwargs)}

    with_extensions._hermes_ext = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = with_extensions


_FINDER: Any = _Finder()
